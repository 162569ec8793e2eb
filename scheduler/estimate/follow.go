package estimate

import "math"

// Shares are those that Follow follows.
var Shares = [3]float64{0.5, 0.7, 0.9}

// followed is the longest step of a followed quantile, in logarithms.
const followed = 0.5

// Follow moves three quantiles, of Shares, by one more observation; the first one sets them. It needs no memory of what it
// saw: each quantile goes up by its share where the observation is above it, else down by the rest, the less the nearer
// it was. What changes for good is followed within some tens of observations.
func Follow(quantiles *[3]int64, first bool, value int64) {
	value = max(1, value)
	for i := range quantiles {
		if first || quantiles[i] < 1 {
			quantiles[i] = value
			continue
		}
		off := math.Log(float64(value) / float64(quantiles[i]))
		step := followed * min(1, math.Abs(off))
		if off > 0 {
			step *= Shares[i]
		} else {
			step *= Shares[i] - 1
		}
		quantiles[i] = max(1, int64(math.Round(float64(quantiles[i])*math.Exp(step))))
	}
	quantiles[1] = max(quantiles[0], quantiles[1])
	quantiles[2] = max(quantiles[1], quantiles[2])
}
