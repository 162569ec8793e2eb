package engine

import (
	"cmp"

	"nightshift/models"
	"nightshift/scheduler/board"
	"nightshift/scheduler/budget"
)

// dry says what would happen, changing nothing.
func (e *Engine) dry(s *Submit) *Submitted {
	out := &Submitted{}
	inside := members(s)
	for i := range s.Tasks {
		imagined := s.Tasks[i]
		t := &imagined
		d := DryTask{}
		refuse := func(err error) {
			if known, ok := err.(*models.Error); ok {
				d.Refusals = append(d.Refusals, *known)
			}
		}
		if err := e.takesSubmits(s.Env); err != nil {
			refuse(err)
		}
		if err := e.mayTake(s.Env, t, location(s.Single, i)); err != nil {
			refuse(err)
		}
		if err := e.mayQueue(s.Env, int64(len(s.Tasks))); err != nil {
			refuse(err)
		}
		if _, err := e.dependencies(s.Env, s.Into, t, location(s.Single, i), inside); err != nil && !s.Beyond {
			refuse(err)
		}
		lane, err := e.route(s.Env, t.Lane, t.Class.Type, location(s.Single, i))
		if err == nil {
			if err := SoftInTime(lane.Defaults, lane.Kind, t, location(s.Single, i)); err != nil {
				refuse(err)
			}
			Fill(lane.Defaults, t)
			e.assign(s.Env, t, lane.Kind)
		}
		d.Class, d.Model = e.board.ClassNumber(t.Class), t.Class.Model
		if err != nil {
			refuse(err)
		} else {
			d.Lane, d.Kind = lane.Name, lane.Kind.String()
			d.SoftSeconds, d.HardSeconds, d.TotalSeconds, d.Input = t.SoftSeconds, cmp.Or(t.HardSeconds, lane.Kind.DefaultHardSeconds()), t.TotalSeconds, t.Input
			e.book.Knows(d.Class, t.Class.Type, t.Class.Model) // 0, one without a number, included
			f := e.foresee(e.imagine(s.Env, lane, t, d.Class), &t.Class)
			d.EstimatedStart, d.Feasible = f.Start, f.Feasible
		}
		classes := newClassCount(e, s.Env)
		classes.asks(d.Class, &t.Class)
		if err := classes.refusal(); err != nil {
			refuse(err)
		}
		said := budget.Said(t.CostMicro, t.Tokens)
		if err := e.mayAfford(s.Env, &t.Class, d.Class, said, location(s.Single, i)); err != nil {
			refuse(err)
		}
		if ask := said.Or(e.learned(e.board.TenantOf(s.Env), d.Class).Ask); ask.KnowsMicro && (d.Class != 0 || said.KnowsMicro) {
			d.EstimatedCost = &ask.Micro
		} else if lane != nil && t.Class.Model != "" {
			if micro, known := e.priceOn(e.board.TenantOf(s.Env), t.Class.Type, t.Class.Model, t.Tokens, lane.Kind); known {
				d.EstimatedCost = &micro
			}
		}
		out.Dry = append(out.Dry, d)
	}
	return out
}

// imagine is the row that a task would get.
func (e *Engine) imagine(env int32, lane *board.Lane, t *NewTask, class int32) *models.Task {
	row := &models.Task{
		Env: env, ID: t.ID, Lane: lane.Number, Class: class, State: models.Ready, Priority: t.Priority, AgeKey: models.AgeKeyOf(e.now, t.Priority),
		Deadline: t.Deadline, EstimateMS: t.EstimateMS, LimitKey: t.LimitKey, KeyLimit: t.KeyLimit, MoreKeys: t.MoreKeys, Tokens: t.Tokens, CostMicro: t.CostMicro,
	}
	if t.Ordered {
		row.Flags |= models.Ordered
	}
	if row.WakeAt = t.RunAt; t.DelaySeconds > 0 {
		row.WakeAt = e.now.Add(models.Seconds(int(t.DelaySeconds)))
	}
	if t.ExpiresInSeconds > 0 {
		row.ExpiresAt = max(row.WakeAt, e.now).Add(models.Seconds(int(t.ExpiresInSeconds)))
	}
	switch {
	case len(t.DependsOn) > 0 || t.HasCondition:
		row.State = models.Pending
	case row.WakeAt > e.now:
		row.State = models.Scheduled
	case t.NeedsApproval:
		row.Gate = approvalGate
	case t.Class.Chosen && t.Class.Model == "":
		row.Gate = models.ModelGate
	case !e.board.Admits(row):
		row.Gate = e.board.GateOf(row)
	}
	return row
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
		if err := e.mayAfford(in.Env, &item.Class, e.board.ClassNumber(item.Class), budget.Said(item.Dearest.Micro, item.Dearest.Tokens), "body"); err != nil {
			return nil, err
		}
		if err := e.mayTake(in.Env, &NewTask{Class: item.Class, Schema: item.Schema}, "body"); err != nil {
			return nil, err
		}
	}
	if err := e.mayQueue(in.Env, in.Tasks); err != nil {
		return nil, err
	}
	classes := newClassCount(e, in.Env)
	for i := range in.Items {
		classes.asks(e.board.ClassNumber(in.Items[i].Class), &in.Items[i].Class)
	}
	if err := classes.refusal(); err != nil {
		return nil, err
	}
	for i, item := range in.Items {
		t := NewTask{Class: item.Class, Model: item.Model, Tokens: item.Needed, CostMicro: item.Dearest.Micro}
		choice := e.assign(in.Env, &t, lanes[i].Kind)
		answer.Interned = append(answer.Interned, Interned{
			Class: e.internClass(t.Class), Lane: lanes[i].Number, Kind: lanes[i].Kind, Choice: choice, Defaults: lanes[i].Defaults,
		})
	}
	return answer, nil
}
