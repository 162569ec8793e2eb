package estimate

// Prior is what is expected of a task nobody has seen run, in seconds.
const Prior = 1.0

const weight = 0.2

type key struct{ tenant, class int32 }

// Means holds the moving means.
type Means struct{ seen map[key]float64 }

// NewMeans knows nothing yet.
func NewMeans() *Means { return &Means{seen: map[key]float64{}} }

// Seconds is the expected run time.
func (m *Means) Seconds(tenant, class int32) float64 {
	if s, ok := m.seen[key{tenant, class}]; ok {
		return s
	}
	return Prior
}

// Saw adds one run time.
func (m *Means) Saw(tenant, class int32, seconds float64) {
	k := key{tenant, class}
	if s, ok := m.seen[k]; ok {
		seconds = s + weight*(seconds-s)
	}
	m.seen[k] = seconds
}
