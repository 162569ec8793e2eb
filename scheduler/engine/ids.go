package engine

import "nightshift/models"

// entropy draws the random part of an id.
func (e *Engine) entropy() (out [10]byte) {
	a, b := e.rng.Uint64(), e.rng.Uint64()
	for i := range 8 {
		out[i] = byte(a >> (8 * i))
	}
	out[8], out[9] = byte(b), byte(b>>8)
	return out
}

func (e *Engine) newID() models.ID { return models.NewID(e.now, e.entropy()) }

// token draws 128 random bits.
func (e *Engine) token() (out models.ID) {
	a, b := e.rng.Uint64(), e.rng.Uint64()
	for i := range 8 {
		out[i], out[8+i] = byte(a>>(8*i)), byte(b>>(8*i))
	}
	return out
}
