package sim

import (
	"fmt"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// job is a task as the world knows it.
type job struct {
	n        int
	tenant   *tenant
	flow     *flow
	source   *source
	class    *models.Class
	run      time.Duration
	arrived  models.Instant
	freed    models.Instant // first ready
	done     models.Instant
	deadline models.Instant // 0: none
	ahead    time.Duration  // told run times from here to the end of its workflow
	acked    bool
	state    models.State
	started  bool
	ended    bool
	lines    bool // it stands in a line
	parked   bool
	stand    *stand
	share    float64   // dominant part of its pool while it runs
	accepted models.ID // the token whose success was accepted
	success  int
	row      models.Task
	next     []*job // that wait for it
	then     func() // when it has ended
}

func (j *job) ref() models.TaskRef { return models.TaskRef{Env: j.tenant.env, ID: j.row.ID} }

func (w *World) job(s *source, item Item) *job {
	j := &job{n: len(w.all), tenant: s.t, flow: s.flow, source: s, run: item.Run, arrived: w.now}
	if item.Deadline > 0 {
		j.deadline = w.now.Add(item.Deadline)
	}
	j.row.Priority, j.row.EstimateMS = item.Priority, item.Estimate.Milliseconds()
	w.all = append(w.all, j)
	if j.class = &s.Class; item.Class.Type != "" {
		j.class = &item.Class
	}
	return j
}

// task is what is submitted of a job; after names the tasks of the body that it waits for.
func (w *World) task(s *source, made []*job, i int, after []int, body []engine.NewTask) engine.NewTask {
	j := made[i]
	t := engine.NewTask{
		ID: w.id(), Class: *j.class, Lane: s.Lane, Priority: j.row.Priority, EstimateMS: j.row.EstimateMS, MaxAttempts: s.MaxAttempts,
		HardSeconds: int32(s.Hard / time.Second), LimitKey: s.LimitKey, KeyLimit: s.KeyLimit, Input: []byte(`{}`), Deadline: j.deadline, AheadMS: j.ahead.Milliseconds(), Tokens: s.Tokens, CostMicro: s.Told,
	}
	if t.MaxAttempts == 0 {
		t.MaxAttempts = 3
	}
	if s.LimitKey != "" {
		t.KeyLimit = max(1, s.KeyLimit)
		if s.Keys > 0 {
			t.LimitKey = fmt.Sprintf("%s-%d", s.LimitKey, s.made%s.Keys)
		}
	}
	keys := []models.TaskKey{}
	if t.LimitKey != "" {
		keys = append(keys, models.TaskKey{Name: t.LimitKey, Limit: t.KeyLimit})
	}
	keys = append(keys, s.Concurrency...)
	for _, name := range s.RateKeys {
		keys = append(keys, models.TaskKey{Name: name})
	}
	t.LimitKey, t.KeyLimit, t.MoreKeys = models.PackKeys(keys)
	t.Ordered = s.Ordered
	s.made++
	if s.Chain || len(after) > 0 {
		t.Key = fmt.Sprintf("step-%d", i)
	}
	for _, n := range after {
		t.DependsOn = append(t.DependsOn, engine.Dependency{Task: body[n].ID, On: models.OnSucceeded})
		made[n].next = append(made[n].next, j)
	}
	j.row.ID = t.ID
	w.jobs[t.ID] = j
	return t
}

// fails says whether an attempt breaks: the same one does whatever else happens.
func (w *World) fails(j *job, attempt int32) bool {
	percent := j.source.FailPercent
	if percent == 0 {
		return false
	}
	x := w.scenario.Seed ^ uint64(j.n)*0x9e3779b97f4a7c15 ^ uint64(attempt)<<32
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return (x^x>>31)%100 < uint64(percent)
}

// send submits a body until it is acknowledged or refused.
func (w *World) send(body *engine.Submit, made []*job) {
	w.ask(&engine.Command{Tenant: made[0].tenant.number, Submit: body}, func(_ *engine.Answer, err error) {
		if err == nil {
			for _, j := range made {
				j.acked = true
			}
			return
		}
		w.result.Counters["refused"] += int64(len(made))
		w.result.Counters["refused_"+string(models.CodeOf(err))] += int64(len(made))
		made[0].flow.Refused += len(made)
		w.open -= len(made)
		w.note("refused %d tasks: %s", len(made), models.CodeOf(err))
		for _, j := range made {
			if j.then != nil {
				w.after(time.Second, j.then)
			}
		}
	})
}
