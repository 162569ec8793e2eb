package estimate

import (
	"math"
	"testing"
)

func TestMeansFollowWhatWasSeen(t *testing.T) {
	m := NewMeans()
	if m.Seconds(1, 1) != Prior {
		t.Fatal("an unseen class has the prior")
	}
	for range 50 {
		m.Saw(1, 1, 4)
	}
	if math.Abs(m.Seconds(1, 1)-4) > 0.01 || m.Seconds(2, 1) != Prior {
		t.Fatalf("%f after seeing 4, another tenant %f", m.Seconds(1, 1), m.Seconds(2, 1))
	}
}
