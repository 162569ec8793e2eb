package memory_test

import (
	"encoding/json"
	"slices"
	"testing"

	"nightshift/models"
)

func TestRefillsGoOnWhereTheLastEnded(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	for n := byte(1); n <= 9; n++ {
		row := task(n, models.Ready)
		row.AgeKey = int64(n / 3) // ties are broken by id
		if n == 4 {
			row.Gate = "key:a"
		}
		if n == 8 {
			row.Lane = 2
		}
		p.Tasks = append(p.Tasks, row)
	}
	w.apply(p)
	line := models.LineID{Lane: 1, Env: 1, Class: 1}
	refill, err := w.Refill(t.Context(), &models.RefillAsk{Lines: []models.LineAsk{
		{Line: line, Limit: 3},
		{Line: line, After: models.Mark{AgeKey: 1, ID: id(3)}, Limit: 10},
		{Line: line, Gate: "key:a", Limit: 10},
		{Line: models.LineID{Lane: 7, Env: 1, Class: 1}, Limit: 10},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]byte{{1, 2, 3}, {5, 6, 7, 9}, {4}, nil} {
		if got := ids(refill.Lines[i]); !slices.Equal(got, want) {
			t.Errorf("ask %d: %v, want %v", i, got, want)
		}
	}
}

func TestTimersComeInOrderOfTheirMoment(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	timed := func(n byte, s models.State, wake, expires models.Instant) {
		row := task(n, s)
		row.WakeAt, row.ExpiresAt = wake, expires
		p.Tasks = append(p.Tasks, row)
	}
	timed(1, models.Scheduled, 50, 0)
	timed(2, models.Ready, 0, 40)
	timed(3, models.RetryWait, 60, 30)
	timed(4, models.Running, 0, 35)     // started in time
	timed(5, models.DeadLetter, 0, 36)  // nothing expires here
	timed(6, models.Cancelled, 0, 37)   // over
	timed(7, models.Pending, 0, 50)     // as late as 1, larger id
	timed(8, models.Scheduled, 20, 0)   // before the ask
	timed(9, models.Scheduled, 1000, 0) // after it
	w.apply(p)
	refill, err := w.Refill(t.Context(), &models.RefillAsk{Timers: &models.TimerAsk{After: 20, Until: 50, Limit: 10}})
	if err != nil || !slices.Equal(ids(refill.Timers), []byte{3, 2, 1, 7}) {
		t.Fatalf("%v, %v", ids(refill.Timers), err)
	}
	refill, _ = w.Refill(t.Context(), &models.RefillAsk{Timers: &models.TimerAsk{Until: 2000, Limit: 2}})
	if !slices.Equal(ids(refill.Timers), []byte{8, 3}) {
		t.Fatalf("%v", ids(refill.Timers))
	}
}

func TestASnapshotCountsWhatStands(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	for n := byte(1); n <= 6; n++ {
		row := task(n, models.Ready)
		row.Class, row.LimitKey, row.KeyLimit = int32(n%2), "k", int32(n)
		if n > 4 {
			row.Gate = "key:k"
		}
		p.Tasks = append(p.Tasks, row)
	}
	waiting, open := task(20, models.Pending), task(21, models.Pending)
	open.Remaining = 1
	p.Tasks = append(p.Tasks, waiting, open, task(30, models.Running))
	p.Kinds = models.DefaultKinds()[:1]
	p.Workers = []models.Worker{{ID: id(1), Instance: "a"}, {ID: id(2), Instance: "b", State: models.WorkerGone}}
	p.Cursors = []models.Cursor{{ID: id(1)}, {ID: id(2), Finished: true}}
	w.apply(p)

	s, err := w.Load(t.Context(), 5, 3) // two lines: one head each fits below three rows
	if err != nil {
		t.Fatal(err)
	}
	if s.Batch != 1 || s.Now != start || len(s.Kinds) != 1 || len(s.Workers) != 1 || len(s.Cursors) != 1 {
		t.Errorf("batch %d, now %d, %d kinds, %d workers, %d cursors", s.Batch, s.Now, len(s.Kinds), len(s.Workers), len(s.Cursors))
	}
	if !slices.Equal(ids(s.Running), []byte{30}) || !slices.Equal(ids(s.Freed), []byte{20}) {
		t.Errorf("running %v, freed %v", ids(s.Running), ids(s.Freed))
	}
	if len(s.Lines) != 2 || s.Lines[0].Ready != 2 || !slices.Equal(ids(s.Lines[0].Heads), []byte{2}) || !slices.Equal(ids(s.Lines[1].Heads), []byte{1}) {
		t.Errorf("lines %+v", s.Lines)
	}
	if len(s.Parked) != 2 || s.Parked[0].Count != 1 || s.Parked[0].Gate != "key:k" || s.Parked[0].Keys.KeyLimit != 6 {
		t.Errorf("parked %+v", s.Parked)
	}
	if len(s.Keys) != 2 || s.Keys[1].Admitted != 2 || s.Keys[1].Key != "k" || s.Keys[1].Limit != 3 {
		t.Errorf("keys %+v", s.Keys)
	}
}

func TestStagedBodiesEnterInSlices(t *testing.T) {
	w := newWorld(t)
	body := &models.StagedBody{Staging: models.Staging{ID: id(50), Env: 1, At: start}}
	for n := byte(1); n <= 5; n++ {
		row := task(n, models.Staged)
		row.Workflow, row.IdemKey = id(60), string('a'+rune(n))
		body.Tasks = append(body.Tasks, row)
	}
	half := *body
	half.Tasks, body.Tasks = body.Tasks[:2], body.Tasks[2:]
	for _, part := range []*models.StagedBody{&half, body} {
		if err := w.Stage(t.Context(), part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Stage(t.Context(), body); models.CodeOf(err) != models.BadData {
		t.Fatalf("rows were staged twice: %v", err)
	}
	flip := w.plan()
	flip.Flips = []models.ID{id(50)}
	flip.Workflows = []models.Workflow{{Env: 1, ID: id(60)}}
	cursor := models.Cursor{ID: id(70), Env: 1, Kind: models.EnterStaged, Target: id(50), After: id(1)}
	flip.Cursors = []models.Cursor{cursor}
	w.apply(flip)
	flip.Batch, flip.Workflows = flip.Batch+1, nil
	w.refuse(models.RowCount, flip)

	need := &models.Need{Slices: []models.SliceNeed{{Cursor: cursor, Limit: 3}}, Stagings: []models.ID{id(50)}, Workflows: []models.TaskRef{{Env: 1, ID: id(60)}}}
	facts, err := w.Facts(t.Context(), need)
	if err != nil || !slices.Equal(ids(facts.Slices[id(70)]), []byte{2, 3, 4}) {
		t.Fatalf("the slice is %v, %v", ids(facts.Slices[id(70)]), err)
	}
	if g := facts.Stagings[id(50)]; g.Tasks != 5 || !g.Flipped {
		t.Errorf("the staging is %+v", g)
	}
	if c := facts.Workflows[models.TaskRef{Env: 1, ID: id(60)}].Counts; c[models.Staged] != 5 || c.Total() != 5 {
		t.Errorf("the workflow counts %v", c)
	}
	enter := w.plan()
	enter.Changes = []models.Change{{From: models.Staged, After: facts.Slices[id(70)][0]}}
	enter.Changes[0].After.State = models.Ready
	w.apply(enter)
	s, _ := w.Load(t.Context(), 9, 9)
	if len(s.Flipped) != 1 || len(s.Lines) != 1 || s.Lines[0].Ready != 1 {
		t.Errorf("flipped %v, lines %v", s.Flipped, s.Lines)
	}
	facts, _ = w.Facts(t.Context(), need)
	if !slices.Equal(ids(facts.Slices[id(70)]), []byte{3, 4, 5}) {
		t.Errorf("what entered is still in the slice: %v", ids(facts.Slices[id(70)]))
	}
}

func TestCursorsSeeTheirRowsAlone(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	for n := byte(1); n <= 6; n++ {
		row := task(n, models.DeadLetter)
		row.Fingerprint, row.Workflow = id(40+n%2), id(60)
		if n == 6 {
			row.State = models.Failed
		}
		p.Tasks = append(p.Tasks, row)
	}
	w.apply(p)
	slice := func(kind models.CursorKind, target, until models.ID) []byte {
		c := models.Cursor{ID: id(1), Env: 1, Kind: kind, Target: target, Until: until}
		facts, err := w.Facts(t.Context(), &models.Need{Slices: []models.SliceNeed{{Cursor: c, Limit: 10}}})
		if err != nil {
			t.Fatal(err)
		}
		return ids(facts.Slices[id(1)])
	}
	if got := slice(models.RedriveDead, id(41), id(4)); !slices.Equal(got, []byte{1, 3}) {
		t.Errorf("redriven: %v", got)
	}
	if got := slice(models.DiscardDead, id(40), models.ID{}); !slices.Equal(got, []byte{2, 4}) {
		t.Errorf("discarded: %v", got)
	}
	if got := slice(models.CancelWorkflow, id(60), models.ID{}); !slices.Equal(got, []byte{1, 2, 3, 4, 5}) {
		t.Errorf("cancelled: %v", got)
	}
}

func TestFactsKnowPoliciesAttemptsAndCalls(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	p.Tasks = []models.Task{task(1, models.Ready), task(2, models.Ready)}
	p.Specs = []models.Spec{
		{Env: 1, ID: id(1), Input: json.RawMessage(`{"retry_policy":{"max_attempts":7,"jitter":false}}`)},
		{Env: 1, ID: id(2), Input: json.RawMessage(`{}`)},
	}
	p.Attempts = []models.Attempt{{Env: 1, Task: id(1), N: 1, Token: id(9), Outcome: models.AttemptLost}}
	p.Done, p.Once = []models.ID{id(80)}, []models.Once{{Scope: "s", Key: "k", Request: id(3)}}
	w.apply(p)
	token := models.TokenRef{Env: 1, Task: id(1), Token: id(9)}
	need := &models.Need{
		Policies: []models.TaskRef{ref(1), ref(2), ref(3)}, Tokens: []models.TokenRef{token, {Env: 1, Task: id(1), Token: id(8)}},
		Done: []models.ID{id(80), id(81)}, Once: []models.OnceRef{{Scope: "s", Key: "k"}, {Scope: "t", Key: "k"}},
	}
	f, err := w.Facts(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	if policy := f.Policies[ref(1)]; len(f.Policies) != 1 || policy.MaxAttempts != 7 || policy.Jitter || policy.MaxDelay != 300 {
		t.Errorf("policies %+v", f.Policies)
	}
	if len(f.Tokens) != 1 || f.Tokens[token].Outcome != models.AttemptLost || len(f.Done) != 1 || f.Done[id(80)] != 1 || len(f.Once) != 1 {
		t.Errorf("tokens %v, done %v, once %v", f.Tokens, f.Done, f.Once)
	}
	late := w.plan()
	late.Late = []models.Late{{Env: 1, Task: id(1), Token: id(9), Usage: []byte(`{"tokens_in":3}`)}}
	w.apply(late)
	late.Batch++
	w.refuse(models.RowCount, late) // booked once
	if a := w.Attempts(ref(1)); len(a) != 1 || string(a[0].Usage) != `{"tokens_in":3}` {
		t.Errorf("attempts %+v", a)
	}
	doubled := w.plan()
	doubled.Attempts = p.Attempts
	w.refuse(models.BadData, doubled)
}

func TestNamesAreOneThingsAlone(t *testing.T) {
	w := newWorld(t)
	p := w.plan()
	p.Tenants = []models.Tenant{{Number: 1, ID: id(1), Slug: "a"}, {Number: 2, ID: id(2), Slug: "b"}}
	p.Environments = []models.Environment{{Env: 1, ID: id(1), Tenant: 1, Name: "production"}, {Env: 2, ID: id(2), Tenant: 2, Name: "production"}}
	p.Lanes = []models.Lane{{Number: 1, Env: 1, Name: "batch"}, {Number: 2, Env: 2, Name: "batch"}}
	p.Workers = []models.Worker{{ID: id(1), Instance: "a"}}
	w.apply(p)
	for what, with := range map[string]func(*models.Plan){
		"tenant": func(p *models.Plan) { p.Tenants = []models.Tenant{{Number: 3, ID: id(3), Slug: "a"}} },
		"environment": func(p *models.Plan) {
			p.Environments = []models.Environment{{Env: 3, ID: id(3), Tenant: 1, Name: "production"}}
		},
		"lane":   func(p *models.Plan) { p.Lanes = []models.Lane{{Number: 3, Env: 1, Name: "batch"}} },
		"worker": func(p *models.Plan) { p.Workers = []models.Worker{{ID: id(2), Instance: "a"}} },
		"two lanes": func(p *models.Plan) {
			p.Lanes = []models.Lane{{Number: 3, Env: 1, Name: "new"}, {Number: 4, Env: 1, Name: "new"}}
		},
	} {
		t.Run(what, func(t *testing.T) {
			w.T = t
			p := w.plan()
			with(p)
			w.refuse(models.BadData, p)
		})
	}
	w.T = t
	gone := w.plan()
	gone.Workers = []models.Worker{{ID: id(1), Instance: "a", State: models.WorkerGone}, {ID: id(2), Instance: "a"}}
	gone.LanesGone = []int32{1}
	w.apply(gone)
	again := w.plan()
	again.Lanes = []models.Lane{{Number: 5, Env: 1, Name: "batch"}}
	w.apply(again)
}
