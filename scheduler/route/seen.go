package route

import (
	"math"

	"nightshift/models"
)

// fadeAt is after how many observations all count half: what a model was last year says little of what it is.
const fadeAt = 1_000

// Judge adds how good a result was, 0–1; before is what the same source said of it earlier, nil when nothing.
func Judge(s *models.ModelSeen, score float64, before *float64) {
	if before != nil && s.Judged >= 1 {
		s.Good += score - *before
	} else {
		s.Good, s.Judged = s.Good+score, s.Judged+1
	}
	s.Good = math.Max(0, math.Min(s.Good, s.Judged))
	if s.Judged >= fadeAt {
		s.Good, s.Judged = s.Good/2, s.Judged/2
	}
}

// Ran adds what a run used.
func Ran(s *models.ModelSeen, u Use, seconds float64) {
	s.Runs++
	s.In, s.Out, s.Cached, s.Seconds = s.In+u.In, s.Out+u.Out, s.Cached+math.Min(u.Cached, u.In), s.Seconds+math.Max(0, seconds)
	if s.Runs >= fadeAt {
		s.Runs, s.In, s.Out, s.Cached, s.Seconds = s.Runs/2, s.In/2, s.Out/2, s.Cached/2, s.Seconds/2
	}
}
