package engine

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/fit"
)

// dry says what would happen, changing nothing.
func (e *Engine) dry(s *Submit) *Submitted {
	out := &Submitted{}
	for i := range s.Tasks {
		t := &s.Tasks[i]
		d := DryTask{Class: e.board.ClassNumber(t.Class)}
		refuse := func(err error) {
			if known, ok := err.(*models.Error); ok {
				d.Refusals = append(d.Refusals, *known)
			}
		}
		if err := e.takesSubmits(s.Env); err != nil {
			refuse(err)
		}
		lane, err := e.route(s.Env, t.Lane, t.Class.Type, location(s.Single, i))
		if err != nil {
			refuse(err)
		} else {
			d.Lane, d.Kind = lane.Name, lane.Kind.String()
			start := e.now
			if lane.Depth > 0 {
				start = e.estimateStart(&models.Task{Env: s.Env, Lane: lane.Number, Class: d.Class, AgeKey: models.AgeKeyOf(e.now, t.Priority)})
			}
			d.EstimatedStart = max(start, t.RunAt, e.now.Add(models.Seconds(int(t.DelaySeconds))))
		}
		if len(s.Tasks) > 0 && d.Class == 0 && e.board.LiveClasses(s.Env) >= MostClasses {
			refuse(e.tooManyClasses(s.Env))
		}
		if !slices.ContainsFunc(e.workers(), func(w *board.Worker) bool { return fit.Lack(&w.Worker, &t.Class) == "" }) {
			d.EstimatedStart = 0
		}
		out.Dry = append(out.Dry, d)
	}
	return out
}

// intern gives classes and lanes their numbers, for a replica that stages rows.
func (e *Engine) intern(in *Intern) (*Answer, error) {
	if err := e.takesSubmits(in.Env); err != nil {
		return nil, err
	}
	answer := &Answer{}
	lanes := make([]*board.Lane, len(in.Items))
	for i, item := range in.Items {
		lane, err := e.route(in.Env, item.Lane, item.Class.Type, "body")
		if err != nil {
			return nil, err
		}
		lanes[i] = lane
	}
	if len(in.Items) > MostClasses {
		return nil, e.tooManyClasses(in.Env)
	}
	for i, item := range in.Items {
		answer.Interned = append(answer.Interned, Interned{Class: e.internClass(item.Class), Lane: lanes[i].Number, Kind: lanes[i].Kind})
	}
	return answer, nil
}
