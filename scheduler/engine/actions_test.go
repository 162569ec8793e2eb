package engine_test

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// actions are what may be asked of the world at any moment.
func (c *chaos) actions(steps *int) map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){
		"submit": c.submits, "claim": c.claims, "settle": c.settles, "forget": c.forgets, "late": c.reportsLate, "beat": c.beats,
		"advance": c.waits, "lane": c.changesLane, "cancel": c.cancels, "rebuild": func(*rapid.T) { c.restart() },
	}
	for name, do := range all {
		all[name] = func(t *rapid.T) { *steps++; do(t) }
	}
	return all
}

func (c *chaos) submits(t *rapid.T) {
	tasks := make([]engine.NewTask, rapid.IntRange(1, 5).Draw(t, "tasks"))
	for i := range tasks {
		tasks[i] = c.task(func(n *engine.NewTask) {
			n.Priority = rapid.SampledFrom([]int16{0, 49, 50, 51, 100}).Draw(t, "priority")
			n.Lane = rapid.SampledFrom([]string{"batch", "narrow", "compute"}).Draw(t, "lane")
			if rapid.IntRange(0, 3).Draw(t, "heavy") == 0 {
				n.Class = models.Class{Type: "heavy", CPUMilli: 3000}
			}
			if n.LimitKey = rapid.SampledFrom([]string{"", "", "one", "two"}).Draw(t, "key"); n.LimitKey != "" {
				n.KeyLimit = keyLimits[n.LimitKey]
			}
			if rapid.IntRange(0, 4).Draw(t, "due") == 0 {
				n.Deadline, n.EstimateMS = c.now.Add(time.Duration(rapid.IntRange(1, 900).Draw(t, "deadline"))*time.Second), 1000
			}
			n.DelaySeconds = rapid.SampledFrom([]int32{0, 0, 0, 3}).Draw(t, "delay")
		})
	}
	c.step(&engine.Command{Submit: &engine.Submit{Env: rapid.SampledFrom(c.envs).Draw(t, "env"), Tasks: tasks, InBatch: true}})
}

func (c *chaos) claims(t *rapid.T) {
	w := rapid.SampledFrom(c.workers).Draw(t, "worker")
	for _, waiting := range c.parked {
		if waiting.ID == w.ID {
			t.Skip("it waits already")
		}
	}
	c.step(&engine.Command{Claim: &engine.Claim{Worker: w.ID, Session: w.Session, Most: rapid.Int32Range(1, 4).Draw(t, "most"), WaitMS: rapid.SampledFrom([]int64{0, 20_000}).Draw(t, "wait")}})
}

// one draws a lease that some worker holds; false when there is none.
func (c *chaos) one(t *rapid.T) (handout, bool) {
	if len(c.held) == 0 {
		return handout{}, false
	}
	tokens := make([]models.ID, 0, len(c.held))
	for token := range c.held {
		tokens = append(tokens, token)
	}
	slices.SortFunc(tokens, models.ID.Compare)
	h := c.held[rapid.SampledFrom(tokens).Draw(t, "lease")]
	delete(c.held, h.lease.Row.Token)
	c.lost = append(c.lost, h)
	return h, true
}

func (c *chaos) settles(t *rapid.T) {
	h, any := c.one(t)
	if !any {
		t.Skip("nothing runs")
	}
	result := ok(h.lease)
	switch rapid.IntRange(0, 3).Draw(t, "outcome") {
	case 0:
		result = failed(h.lease, "network")
	case 1:
		result.Outcome, result.Result = models.AttemptReleased, nil
	}
	c.reports(h, result)
}

// reports sends a result and holds the answer against what went before.
func (c *chaos) reports(h handout, result engine.Result) {
	live := c.engine.Board().Leases[h.lease.Row.Token] != nil
	ref := models.TaskRef{Env: h.lease.Row.Env, ID: h.lease.Row.ID}
	settled := false
	for _, a := range c.store.Attempts(ref) {
		settled = settled || a.Token == h.lease.Row.Token && (a.Outcome == models.AttemptSucceeded || a.Outcome == models.AttemptFailed || a.Outcome == models.AttemptCancelled)
	}
	for _, r := range c.step(&engine.Command{Settle: &engine.Settle{Worker: h.worker.ID, Session: h.worker.Session, Results: []engine.Result{result}}}) {
		if r.Answer != nil && len(r.Answer.Settled) == 1 && r.Answer.Settled[0].Accepted != (live || settled) {
			c.t.Fatalf("a report under %x was answered %+v; live: %v, settled before: %v", h.lease.Row.Token, r.Answer.Settled[0], live, settled)
		}
	}
	successes := 0
	for _, a := range c.store.Attempts(ref) {
		if a.Outcome == models.AttemptSucceeded {
			successes++
		}
	}
	if row, _ := c.store.Task(ref); successes > 1 || (successes == 1) != (row.State == models.Succeeded) {
		c.t.Fatalf("task %x is %s after %d successes", ref.ID, row.State, successes)
	}
}

// forgets lets a worker lose a lease without a word.
func (c *chaos) forgets(t *rapid.T) {
	if _, any := c.one(t); !any {
		t.Skip("nothing runs")
	}
}

// reportsLate sends a success once more, or for a lease that may be another's by now.
func (c *chaos) reportsLate(t *rapid.T) {
	if len(c.lost) == 0 {
		t.Skip("nothing was lost")
	}
	h := rapid.SampledFrom(c.lost).Draw(t, "late")
	c.reports(h, ok(h.lease))
}

func (c *chaos) beats(t *rapid.T) {
	w := rapid.SampledFrom(c.workers).Draw(t, "worker")
	var beats []engine.Beat
	for token, h := range c.held {
		if h.worker.ID == w.ID {
			beats = append(beats, engine.Beat{Token: token})
		}
	}
	slices.SortFunc(beats, func(a, b engine.Beat) int { return a.Token.Compare(b.Token) })
	c.step(&engine.Command{Heartbeat: &engine.Heartbeat{Worker: w.ID, Session: w.Session, All: true, Leases: beats}})
}

// waits lets time go by, all in all less than it takes for workers to be kept for what fits nowhere.
func (c *chaos) waits(t *rapid.T) {
	d := time.Duration(rapid.SampledFrom([]int{1, 5, 40}).Draw(t, "seconds")) * time.Second
	if c.spent += d; c.spent > 14*time.Minute {
		t.Skip("it has been long enough")
	}
	for tick := max(time.Second, d/8); d > 0; d -= tick {
		c.now = c.now.Add(tick)
		c.step(&engine.Command{Tick: &engine.Tick{}})
	}
}

func (c *chaos) changesLane(t *rapid.T) {
	env, name := rapid.SampledFrom(c.envs).Draw(t, "env"), rapid.SampledFrom([]string{"batch", "narrow"}).Draw(t, "lane")
	lane := c.engine.Board().LaneNamed(env, name).Lane
	lane.Paused = rapid.IntRange(0, 2).Draw(t, "paused") == 0
	lane.MaxConcurrent = rapid.Int32Range(0, 3).Draw(t, "limit")
	c.step(&engine.Command{Configure: &engine.Configure{Lane: &lane, Action: "lane.update"}})
}

func (c *chaos) cancels(t *rapid.T) {
	rows := c.store.Tasks()
	if len(rows) == 0 {
		t.Skip("there is nothing")
	}
	row := rapid.SampledFrom(rows).Draw(t, "task")
	c.step(&engine.Command{Cancel: &engine.Cancel{Env: row.Env, Task: row.ID}})
}

// restart rebuilds the board; claims that wait are asked again, as the loop does.
func (c *chaos) restart() {
	c.rebuild()
	again := c.parked
	c.parked = map[*engine.Command]models.Worker{}
	for _, w := range c.workers {
		for cmd, waiting := range again {
			if waiting.ID == w.ID {
				c.step(&engine.Command{Claim: &engine.Claim{Worker: w.ID, Session: w.Session, Most: cmd.Claim.Most, Until: cmd.Claim.Until}})
			}
		}
	}
}
