package postgres

import (
	"encoding/binary"
	"math"

	"github.com/jackc/pgx/v5/pgtype"

	"nightshift/models"
)

// rows is a parameter of the hot statements: an array of a composite type in PostgreSQL's binary form. Its buffer is
// kept from batch to batch.
type rows struct {
	buf []byte
	row int // where the length of the row being written stands; 0: none is
	n   uint32
}

// begin empties it for rows of a type.
func (r *rows) begin(element uint32) {
	r.buf, r.row, r.n = r.buf[:0], 0, 0
	r.uint32(1) // dimensions
	r.uint32(0) // no element is null
	r.uint32(element)
	r.uint32(0) // how many, known at the end
	r.uint32(1) // the first index
}

// next begins a row of as many fields.
func (r *rows) next(fields uint32) {
	r.close()
	r.row = len(r.buf)
	r.uint32(0)
	r.uint32(fields)
	r.n++
}

func (r *rows) close() {
	if r.row > 0 {
		binary.BigEndian.PutUint32(r.buf[r.row:], uint32(len(r.buf)-r.row-4))
	}
}

// param is the finished array.
func (r *rows) param() []byte {
	r.close()
	binary.BigEndian.PutUint32(r.buf[12:], r.n)
	return r.buf
}

func (r *rows) uint32(v uint32) { r.buf = binary.BigEndian.AppendUint32(r.buf, v) }

func (r *rows) head(oid, size uint32) {
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(oid)<<32|uint64(size))
}

func (r *rows) null(oid uint32) { r.head(oid, math.MaxUint32) }

func (r *rows) int2(v int16) {
	r.head(pgtype.Int2OID, 2)
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(v))
}

func (r *rows) int4(v int32) {
	r.head(pgtype.Int4OID, 4)
	r.uint32(uint32(v))
}

func (r *rows) int8(v int64) {
	r.head(pgtype.Int8OID, 8)
	r.buf = binary.BigEndian.AppendUint64(r.buf, uint64(v))
}

// The forms below write NULL for the zero value: a NULL costs a row nothing.

func (r *rows) some4(v int32) {
	if v == 0 {
		r.null(pgtype.Int4OID)
		return
	}
	r.int4(v)
}

func (r *rows) some8(v int64) {
	if v == 0 {
		r.null(pgtype.Int8OID)
		return
	}
	r.int8(v)
}

func (r *rows) instant(v models.Instant) { r.some8(int64(v)) }

func (r *rows) id(v models.ID) {
	if v.IsZero() {
		r.null(pgtype.UUIDOID)
		return
	}
	r.head(pgtype.UUIDOID, 16)
	r.buf = append(r.buf, v[:]...)
}

// mustID writes the zero id as itself.
func (r *rows) mustID(v models.ID) {
	r.head(pgtype.UUIDOID, 16)
	r.buf = append(r.buf, v[:]...)
}

func (r *rows) text(v string) {
	if v == "" {
		r.null(pgtype.TextOID)
		return
	}
	r.mustText(v)
}

func (r *rows) mustText(v string) {
	r.head(pgtype.TextOID, uint32(len(v)))
	r.buf = append(r.buf, v...)
}

// json writes opaque text; nil is NULL.
func (r *rows) json(v []byte) {
	if v == nil {
		r.null(pgtype.TextOID)
		return
	}
	r.head(pgtype.TextOID, uint32(len(v)))
	r.buf = append(r.buf, v...)
}

// columns reads the values of one row in order, in PostgreSQL's binary form; NULL reads as the zero value.
type columns struct {
	values [][]byte
	next   int
}

func (c *columns) raw() []byte {
	v := c.values[c.next]
	c.next++
	return v
}

func (c *columns) int2() int16 {
	if v := c.raw(); v != nil {
		return int16(binary.BigEndian.Uint16(v))
	}
	return 0
}

func (c *columns) int4() int32 {
	if v := c.raw(); v != nil {
		return int32(binary.BigEndian.Uint32(v))
	}
	return 0
}

func (c *columns) int8() int64 {
	if v := c.raw(); v != nil {
		return int64(binary.BigEndian.Uint64(v))
	}
	return 0
}

func (c *columns) instant() models.Instant { return models.Instant(c.int8()) }

func (c *columns) id() (id models.ID) {
	copy(id[:], c.raw())
	return id
}

func (c *columns) text() string { return string(c.raw()) }

func (c *columns) bool() bool {
	v := c.raw()
	return len(v) == 1 && v[0] != 0
}

// json is a copy: the row's memory is used again.
func (c *columns) json() []byte {
	v := c.raw()
	if v == nil {
		return nil
	}
	return append([]byte{}, v...)
}
