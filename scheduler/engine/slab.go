package engine

// slab hands out changes and takes them all back at the next batch: nobody refers to them any longer then.
type slab struct {
	chunks [][]change
	n      int
}

const slabChunk = 256

func (s *slab) next() *change {
	if s.n/slabChunk == len(s.chunks) {
		s.chunks = append(s.chunks, make([]change, slabChunk))
	}
	c := &s.chunks[s.n/slabChunk][s.n%slabChunk]
	s.n++
	return c
}
