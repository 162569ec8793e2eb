package postgres

import (
	"encoding/binary"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"nightshift/models"
)

// Scalars and arrays of scalars in PostgreSQL's binary form.

func int8Param(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

func int4Param(v int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(v)) }

func idParam(v models.ID) []byte { return v[:] }

// array makes a one-dimensional array; size is that of an element, for the buffer alone.
func array[T any](element uint32, size int, of []T, put func(b []byte, v T) []byte) []byte {
	b := make([]byte, 0, 20+len(of)*(4+size))
	for _, v := range [...]uint32{1, 1, element, uint32(len(of)), 1} {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	for _, v := range of {
		at := len(b)
		b = put(append(b, 0, 0, 0, 0), v)
		binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	}
	return b
}

func int2Array[T any](of []T, value func(T) int16) []byte {
	return array(pgtype.Int2OID, 2, of, func(b []byte, v T) []byte { return binary.BigEndian.AppendUint16(b, uint16(value(v))) })
}

func int4Array[T any](of []T, value func(T) int32) []byte {
	return array(pgtype.Int4OID, 4, of, func(b []byte, v T) []byte { return binary.BigEndian.AppendUint32(b, uint32(value(v))) })
}

func int8Array[T any](of []T, value func(T) int64) []byte {
	return array(pgtype.Int8OID, 8, of, func(b []byte, v T) []byte { return binary.BigEndian.AppendUint64(b, uint64(value(v))) })
}

func float8Array[T any](of []T, value func(T) float64) []byte {
	return array(pgtype.Float8OID, 8, of, func(b []byte, v T) []byte {
		return binary.BigEndian.AppendUint64(b, math.Float64bits(value(v)))
	})
}

func idArray[T any](of []T, value func(T) models.ID) []byte {
	return array(pgtype.UUIDOID, 16, of, func(b []byte, v T) []byte { id := value(v); return append(b, id[:]...) })
}

func textArray[T any](of []T, value func(T) string) []byte {
	return array(pgtype.TextOID, 16, of, func(b []byte, v T) []byte { return append(b, value(v)...) })
}

func bytesArray[T any](of []T, value func(T) []byte) []byte {
	return array(pgtype.ByteaOID, 512, of, func(b []byte, v T) []byte { return append(b, value(v)...) })
}

// jsonArray is an array of opaque texts in which nil is NULL.
func jsonArray[T any](of []T, value func(T) []byte) []byte {
	b := textArray(of[:0], func(T) string { return "" })
	binary.BigEndian.PutUint32(b[12:], uint32(len(of)))
	for _, v := range of {
		text := value(v)
		if text == nil {
			b = binary.BigEndian.AppendUint32(b, math.MaxUint32)
			continue
		}
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
	}
	return b
}

// elements calls read for each element of an array, nil for NULL.
func elements(v []byte, read func([]byte)) {
	if len(v) < 20 { // NULL or of no dimension
		return
	}
	n := binary.BigEndian.Uint32(v[12:])
	at := 20
	for range n {
		size := int(int32(binary.BigEndian.Uint32(v[at:])))
		at += 4
		if size < 0 {
			read(nil)
			continue
		}
		read(v[at : at+size])
		at += size
	}
}

// texts reads text[]; an empty one is nil.
func (c *columns) texts() (out []string) {
	elements(c.raw(), func(e []byte) { out = append(out, string(e)) })
	return out
}

func (c *columns) float8() float64 {
	if v := c.raw(); v != nil {
		return math.Float64frombits(binary.BigEndian.Uint64(v))
	}
	return 0
}
