package forecast

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"time"

	"nightshift/models"
)

// How a correction moves: by a part of what was off, and never beyond its bounds.
const (
	MostFactor  = 2.0
	leastFactor = 1 / MostFactor
	learned     = 0.15 // of what was off, in logarithms
	fewest      = 0.5  // tasks: less than this foreseen says nothing

	dayBuckets = int(24 * time.Hour / Bucket)
	bucket     = models.Instant(Bucket / time.Microsecond)
)

// Seen corrects forecasts by what was seen: for each pool and kind and each five minutes of the day a factor.
type Seen struct {
	factors map[Of]*[dayBuckets]float32
	dirty   map[Of]bool
}

// NewSeen corrects nothing yet.
func NewSeen() *Seen { return &Seen{factors: map[Of]*[dayBuckets]float32{}, dirty: map[Of]bool{}} }

func bucketOf(at models.Instant) int { return int(floor(at, bucket) % models.Instant(dayBuckets)) }

// Factor is what a forecast for a moment is to be multiplied by, within 1 ÷ MostFactor and MostFactor.
func (s *Seen) Factor(of Of, at models.Instant) float64 {
	if f := s.of(of); f != nil && at >= 0 {
		return float64(f[bucketOf(at)])
	}
	return 1
}

// Saw compares what ran in the mean over the five minutes of a moment with what had been foreseen, before any correction.
func (s *Seen) Saw(of Of, at models.Instant, ran, foreseen float64) {
	if foreseen < fewest || ran < 0 || at < 0 || math.IsNaN(ran) || math.IsNaN(foreseen) {
		return
	}
	of.Lane = 0
	f := s.begun(of)
	off := math.Min(math.Max(ran/foreseen, leastFactor), MostFactor)
	i := bucketOf(at)
	old := float64(f[i])
	f[i] = float32(math.Min(math.Max(old*math.Pow(off/old, learned), leastFactor), MostFactor))
	if float64(f[i]) != old {
		s.dirty[of] = true
	}
}

// of are the factors of a pool and kind, nil when there are none.
func (s *Seen) of(of Of) *[dayBuckets]float32 {
	if s == nil {
		return nil
	}
	of.Lane = 0
	return s.factors[of]
}

func (s *Seen) begun(of Of) *[dayBuckets]float32 {
	f := s.factors[of]
	if f == nil {
		f = &[dayBuckets]float32{}
		for i := range f {
			f[i] = 1
		}
		s.factors[of] = f
	}
	return f
}

// Changes lists the corrections that changed since the last call, by pool and kind, in their stored form.
func (s *Seen) Changes() []models.Correction {
	list := make([]Of, 0, len(s.dirty))
	for of := range s.dirty { // any order: sorted below
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b Of) int { return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind)) })
	clear(s.dirty)
	return s.saved(list)
}

// Saved lists all of them, by pool and kind.
func (s *Seen) Saved() []models.Correction {
	list := make([]Of, 0, len(s.factors))
	for of := range s.factors { // any order: sorted below
		list = append(list, of)
	}
	slices.SortFunc(list, func(a, b Of) int { return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(a.Kind, b.Kind)) })
	return s.saved(list)
}

func (s *Seen) saved(list []Of) []models.Correction {
	out := make([]models.Correction, 0, len(list))
	for _, of := range list {
		factors := make([]byte, 0, 2*dayBuckets)
		for _, f := range s.factors[of] {
			factors = binary.LittleEndian.AppendUint16(factors, uint16(math.Round(float64(f)*unit)))
		}
		out = append(out, models.Correction{Pool: of.Pool, Kind: of.Kind, Factors: factors})
	}
	return out
}

// unit is what a stored factor counts in.
const unit = 10_000

// Restore takes in what was saved; what was seen since goes first, and what can't be read is forgotten.
func (s *Seen) Restore(saved []models.Correction) {
	for _, row := range saved {
		of := Of{Pool: row.Pool, Kind: row.Kind}
		if len(row.Factors) != 2*dayBuckets || s.factors[of] != nil {
			continue
		}
		f := s.begun(of)
		for i := range f {
			f[i] = float32(math.Min(math.Max(float64(binary.LittleEndian.Uint16(row.Factors[2*i:]))/unit, leastFactor), MostFactor))
		}
	}
}
