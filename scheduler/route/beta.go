package route

import "math"

const (
	// Strength is how many judged results the word of whoever entered a model is worth.
	Strength = 100
	// Quantile is the share of doubt that may lie below a model's quality: with nine tenths of certainty it is at least as good.
	Quantile = 0.1
	// Unsaid is the quality of a model of which nobody said anything, and UnsaidStrength what that is worth.
	Unsaid         = 0.5
	UnsaidStrength = 2
)

// Low is the quality that a model has at least, with nine tenths of certainty: good of judged results were good, and it was
// said to be as good as said.
func Low(said float64, known bool, good, judged float64) float64 {
	strength := float64(Strength)
	if !known {
		said, strength = Unsaid, UnsaidStrength
	}
	said = math.Min(1, math.Max(0, said))
	a, b := said*strength+good, (1-said)*strength+math.Max(0, judged-good)
	switch { // of a certain word the distribution has no width
	case a <= 0:
		return 0
	case b <= 0:
		return 1
	}
	return quantile(Quantile, a, b)
}

// quantile is where the Beta distribution has the share p below it.
func quantile(p, a, b float64) float64 {
	low, high := 0.0, 1.0
	for range 60 {
		if mid := (low + high) / 2; below(mid, a, b) < p {
			low = mid
		} else {
			high = mid
		}
	}
	return low
}

// below is the regularized incomplete beta function: the share of the distribution below x.
func below(x, a, b float64) float64 {
	if x <= 0 || x >= 1 {
		return math.Max(0, math.Min(1, x))
	}
	la, _ := math.Lgamma(a)
	lb, _ := math.Lgamma(b)
	lab, _ := math.Lgamma(a + b)
	front := math.Exp(lab - la - lb + a*math.Log(x) + b*math.Log1p(-x))
	if x < (a+1)/(a+b+2) {
		return front * fraction(x, a, b) / a
	}
	return 1 - front*fraction(1-x, b, a)/b
}

// fraction is the continued fraction of the incomplete beta function, by Lentz's method.
func fraction(x, a, b float64) float64 {
	const tiny = 1e-300
	away := func(v float64) float64 { // from zero
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/away(1-(a+b)*x/(a+1))
	h := d
	for i := 1; i <= 500; i++ {
		m := float64(i)
		up := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d, c = 1/away(1+up*d), away(1+up/c)
		h *= d * c
		down := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d, c = 1/away(1+down*d), away(1+down/c)
		step := d * c
		if h *= step; math.Abs(step-1) < 1e-12 {
			break
		}
	}
	return h
}
