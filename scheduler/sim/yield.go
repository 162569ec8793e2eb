package sim

import "nightshift/models"

// Yield is how work that waits for nobody got out of the way of what people wait for: realtime and io against compute and
// batch.
type Yield struct {
	Overload float64 // slot-seconds for which the first stood ready while the other ran in its place
	First    float64 // slot-seconds that the first ran
	Other    float64 // and the other
	Holds    int64   // lanes that were held
}

// yielding counts what both sides do now.
type yielding struct {
	waits, runs, others int64
}

// people says whether somebody waits for tasks of a kind.
func people(kind models.KindName) bool { return kind == models.Realtime || kind == models.IO }

// yields counts a task where its row says it is, or takes it out of there again.
func (w *World) yields(j *job, n int64) {
	first := people(w.watch.lanes[j.row.Lane].Kind)
	switch {
	case j.lines && first:
		w.yield.waits += n
	case j.state.Live() && first:
		w.yield.runs += n
	case j.state.Live():
		w.yield.others += n
	}
}

// passYield adds what is so for a while.
func (w *World) passYield(seconds float64) {
	y := &w.result.Yield
	y.Overload += seconds * float64(min(w.yield.waits, w.yield.others))
	y.First += seconds * float64(w.yield.runs)
	y.Other += seconds * float64(w.yield.others)
}

func (w *World) watchHolds(p *models.Plan) {
	for _, e := range p.Events {
		if e.Name == "lane.held" {
			w.result.Yield.Holds++
		}
	}
}
