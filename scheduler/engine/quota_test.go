package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

func most(n int64) *int64 { return &n }

func (w *world) tenant() int32 { return w.engine.Board().TenantOf(w.env) }

func (w *world) quotas(change func(*models.Quotas)) *models.Quotas {
	w.t.Helper()
	q := models.Quotas{Tenant: w.tenant()}
	change(&q)
	return w.do(&engine.Command{Configure: &engine.Configure{Quotas: &engine.SetQuotas{Quotas: q}, Version: -1, Action: "quotas.set"}}).Quotas
}

func (w *world) grant(granted ...string) {
	w.t.Helper()
	w.do(&engine.Command{Configure: &engine.Configure{Grants: &models.Grants{Env: w.env, Granted: granted}, Version: -1, Action: "permissions.set"}})
}

func (w *world) taskType(row models.TaskType) *models.TaskType {
	w.t.Helper()
	row.Env = w.env
	return w.do(&engine.Command{Configure: &engine.Configure{TaskType: &row, Version: -1, Action: "task_type.edit"}}).TaskType
}

// detail is the sentence of one reason; the test fails where it is not among them.
func (w *world) detail(id models.ID, reason string) string {
	w.t.Helper()
	for _, b := range w.do(&engine.Command{Look: &engine.Look{Explain: &models.TaskRef{Env: w.env, ID: id}}}).Looked.Explain.BlockedBy {
		if b.Reason == reason {
			return b.Detail
		}
	}
	w.t.Fatalf("it waits for %v, not for %s", w.why(id), reason)
	return ""
}

func gpus(n int32, vramMB int64) func(*engine.NewTask) {
	return func(t *engine.NewTask) { t.Class.GPU, t.Class.VRAMMB = n, vramMB }
}

func withCards(w *models.Worker) {
	w.Slots, w.GPUs = 20, []models.GPUCard{{VRAMMB: 24_000}, {VRAMMB: 24_000}, {VRAMMB: 24_000}, {VRAMMB: 24_000}}
}

func TestATenantRunsAtMostItsMaxConcurrent(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(2) })
	ids := w.submit(w.task(), w.task(), w.task(), w.task())
	leases := w.claim(worker, 10)
	if len(leases) != 2 {
		t.Fatalf("%d started, at most 2 may run", len(leases))
	}
	if got := w.detail(ids[2], "tenant_concurrency"); !strings.Contains(got, "runs 2 tasks, of at most 2") {
		t.Error(got)
	}
	w.rebuild()
	if more := w.claim(worker, 10); len(more) != 0 {
		t.Fatalf("%d more started after a rebuild", len(more))
	}
	waits := &engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 5, WaitMS: 20_000}}
	w.turn(waits)
	w.settle(worker, ok(leases[0]))
	if r := w.late[waits]; r.Answer == nil || len(r.Answer.Claimed.Leases) != 1 {
		t.Fatalf("what ended lets one start at once: %+v", r)
	}
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = nil })
	if more := w.claim(worker, 10); len(more) != 1 {
		t.Fatalf("%d of 1 started without a limit", len(more))
	}
}

// A quota lowered below what runs ends nothing: it lets nothing start until enough has ended.
func TestALoweredQuotaWaitsForWhatRuns(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	w.submit(w.task(), w.task(), w.task(), w.task(), w.task())
	leases := w.claim(worker, 3)
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(1) })
	for _, l := range leases[:2] {
		w.settle(worker, ok(l))
		if more := w.claim(worker, 5); len(more) != 0 {
			t.Fatalf("%d started above the quota", len(more))
		}
	}
	w.settle(worker, ok(leases[2]))
	if more := w.claim(worker, 5); len(more) != 1 {
		t.Fatalf("%d of 1 started", len(more))
	}
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(0) })
	if more := w.claim(worker, 5); len(more) != 0 {
		t.Fatalf("%d started of a tenant that may run none", len(more))
	}
}

func TestGPUQuotasLeaveOtherWorkAlone(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("cards", withCards)
	w.quotas(func(q *models.Quotas) { q.MaxGPUs, q.MaxVRAMMB = most(3), most(30_000) })
	two := w.submit(w.task(gpus(2, 0)), w.task(gpus(2, 0)))
	one := w.submit(w.task(gpus(1, 0)))
	w.now = w.now.Add(time.Second)
	cpu := w.submit(w.task(), w.task())
	leases := w.claim(worker, 20)
	started := map[models.ID]engine.Lease{}
	for _, l := range leases {
		started[l.Row.ID] = l
	}
	for _, id := range []models.ID{two[0], one[0], cpu[0], cpu[1]} {
		if _, runs := started[id]; !runs {
			t.Fatalf("%x does not run beside what holds the quota: %d run", id, len(leases))
		}
	}
	if got := w.detail(two[1], "tenant_concurrency"); !strings.Contains(got, "holds 3 GPUs of at most 3, and this needs 2") {
		t.Error(got)
	}
	w.settle(worker, ok(started[one[0]]))
	if got := w.claim(worker, 5); len(got) != 0 {
		t.Fatal("two cards started beside two, of at most three")
	}
	w.settle(worker, ok(started[two[0]]))
	w.quotas(func(q *models.Quotas) { q.MaxVRAMMB = most(30_000) })
	big := w.submit(w.task(gpus(1, 20_000)), w.task(gpus(1, 20_000)))
	next := w.claim(worker, 5)
	if len(next) != 2 {
		t.Fatalf("%d started: two cards, and one of 20,000 MB", len(next))
	}
	if got := w.detail(big[1], "tenant_concurrency"); !strings.Contains(got, "20000 MB of VRAM of at most 30000") {
		t.Error(got)
	}
	w.rebuild()
	w.quotas(func(q *models.Quotas) {})
	if got := w.claim(worker, 5); len(got) != 1 {
		t.Fatalf("%d of 1 started without a limit", len(got))
	}
}

func TestAFullQueueRefusesWholeBodies(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	w.quotas(func(q *models.Quotas) { q.MaxQueued = most(4) })
	submit := func(n int, change ...func(*engine.NewTask)) *engine.Command {
		s := &engine.Submit{Env: w.env, InBatch: true}
		for range n {
			s.Tasks = append(s.Tasks, w.task(change...))
		}
		return &engine.Command{Submit: s}
	}
	w.do(submit(2, func(t *engine.NewTask) { t.DelaySeconds = 60 }))
	w.refuses(models.QueueFull, submit(3))
	ids := w.do(submit(2)).Made
	w.refuses(models.QueueFull, submit(1))
	w.rebuild()
	w.refuses(models.QueueFull, submit(1))
	if _, err := w.try(submit(1)); err == nil || err.(*models.Error).RetryAfterSeconds == 0 {
		t.Errorf("no Retry-After: %v", err)
	}
	dry := submit(1)
	dry.Submit.Dry = true
	if r := w.do(dry).Submitted.Dry[0].Refusals; len(r) != 1 || r[0].Code != models.QueueFull {
		t.Errorf("a dry run says %v", r)
	}
	lease := w.claim(worker, 1)[0] // what runs is not queued
	w.do(submit(1))
	w.refuses(models.QueueFull, submit(1))
	w.settle(worker, failed(lease, "timeout")) // it comes back whatever the queue says
	w.want(lease.Row.ID, models.RetryWait)
	w.refuses(models.QueueFull, submit(1))
	for _, id := range ids {
		w.do(&engine.Command{Cancel: &engine.Cancel{Env: w.env, Task: id}})
	}
	both := w.turn(submit(1), submit(1)) // of one batch the second finds what the first left
	if both[0].Err != nil || models.CodeOf(both[1].Err) != models.QueueFull {
		t.Errorf("two for one place: %v, %v", both[0].Err, both[1].Err)
	}
}

// The queue of a tenant is that of all its environments, and children stand in it too.
func TestTheQueueIsTheTenants(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one")
	env := w.do(&engine.Command{Configure: &engine.Configure{Environment: &models.Environment{ID: w.id(), Tenant: w.tenant(), Name: "staging", Kind: "staging"}, New: true, Action: "environment.create"}}).Environment
	w.quotas(func(q *models.Quotas) { q.MaxQueued = most(2) })
	w.do(&engine.Command{Submit: &engine.Submit{Env: env.Env, Tasks: []engine.NewTask{w.task()}}})
	w.submit(w.task())
	w.refuses(models.QueueFull, &engine.Command{Submit: &engine.Submit{Env: env.Env, Tasks: []engine.NewTask{w.task()}}})
	l := w.claim(worker, 1)[0]
	child := func(n string) engine.NewTask { return w.task(func(t *engine.NewTask) { t.Key = n }) }
	spawn := func(tasks ...engine.NewTask) *engine.Command {
		return &engine.Command{Spawn: &engine.Spawn{Env: l.Row.Env, Task: l.Row.ID, Token: l.Row.Token, Tasks: tasks}}
	}
	w.refuses(models.QueueFull, spawn(child("a"), child("b")))
	w.do(spawn(child("a")))
	w.refuses(models.QueueFull, spawn(child("b")))
	w.do(spawn(child("a"))) // it is there
}

func TestAWithdrawnPermissionHoldsWhatWaits(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Permissions = []string{"internet.search", "mail"} })
	asks := func(t *engine.NewTask) { t.Class.Permissions = []string{"internet.search"} }
	body := func() *engine.Command {
		return &engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(asks)}, Single: true}}
	}
	w.refuses(models.PermissionNotAllowed, body())
	w.grant("mail", "internet.search", "mail")
	id := w.do(body()).Made[0]
	w.grant("mail")
	free := w.submit(w.task())[0]
	w.rebuild()
	if got := w.claim(worker, 5); len(got) != 1 || got[0].Row.ID != free {
		t.Fatalf("%d started, only the other one may", len(got))
	}
	if got := w.detail(id, "permission"); !strings.Contains(got, "internet.search") {
		t.Error(got)
	}
	w.refuses(models.PermissionNotAllowed, body())
	waits := &engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 5, WaitMS: 20_000}}
	w.turn(waits)
	w.grant("internet.search")
	if r := w.late[waits]; r.Answer == nil || len(r.Answer.Claimed.Leases) != 1 {
		t.Fatalf("granted again it starts at once: %+v", r)
	}
}

func TestTaskTypesPauseAndLimit(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 20 })
	of := func(name string, cpu int64) func(*engine.NewTask) {
		return func(t *engine.NewTask) { t.Class.Type, t.Class.CPUMilli = name, cpu }
	}
	ids := w.submit(w.task(of("mail.send", 0)), w.task(of("mail.send", 1)), w.task(of("mail.send", 2)), w.task(of("other", 0)))
	first := w.claim(worker, 1)
	w.taskType(models.TaskType{Type: "mail.send", MaxConcurrent: most(2)})
	leases := w.claim(worker, 10)
	if len(leases) != 2 {
		t.Fatalf("%d started: one of its type, and the other", len(leases))
	}
	if got := w.detail(ids[2], "type_limit"); got != "2 tasks of type mail.send run, of at most 2" {
		t.Error(got)
	}
	w.taskType(models.TaskType{Type: "mail.send", Paused: true, Reason: "the relay is down"})
	w.settle(worker, ok(first[0]), ok(leases[0]))
	w.rebuild()
	if more := w.claim(worker, 10); len(more) != 0 {
		t.Fatalf("%d of a paused type started", len(more))
	}
	if got := w.detail(ids[2], "type_paused"); got != "tasks of type mail.send are paused: the relay is down" {
		t.Error(got)
	}
	w.taskType(models.TaskType{Type: "mail.send"})
	if more := w.claim(worker, 10); len(more) != 1 {
		t.Fatalf("%d of 1 started", len(more))
	}
}

func TestPayloadsAreOfTheSchemaThatStands(t *testing.T) {
	w := newWorld(t, engine.Config{})
	body := func(schema int64) *engine.Command {
		return &engine.Command{Submit: &engine.Submit{Env: w.env, Tasks: []engine.NewTask{w.task(func(t *engine.NewTask) { t.Schema = schema })}, Single: true}}
	}
	one := w.taskType(models.TaskType{Type: "work", InputSchema: json.RawMessage(`{}`), Schema: models.NewSchema})
	w.refuses(models.SchemaChanged, body(0))
	w.do(body(one.Schema))
	same := w.taskType(models.TaskType{Type: "work", InputSchema: json.RawMessage(`{}`), Schema: one.Schema, Paused: true})
	if same.Schema != one.Schema {
		t.Error("an edit of something else made the schema another")
	}
	w.rebuild()
	w.do(body(one.Schema))
	two := w.taskType(models.TaskType{Type: "work", InputSchema: json.RawMessage(`{"type":"object"}`), Schema: models.NewSchema})
	w.refuses(models.SchemaChanged, body(one.Schema))
	w.do(body(two.Schema))
	w.taskType(models.TaskType{Type: "work"})
	w.refuses(models.SchemaChanged, body(two.Schema))
	w.do(body(0))
}

func TestTokensAMinute(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots, m.LeaseSeconds = 50, 300 })
	w.quotas(func(q *models.Quotas) { q.TokensPerMinute = most(600) })
	eats := func(n int64) func(*engine.NewTask) {
		return func(t *engine.NewTask) { t.Class.Tokens, t.Tokens = true, n }
	}
	ids := w.submit(w.task(eats(500)), w.task(eats(500)), w.task(eats(500)))
	w.now = w.now.Add(time.Millisecond)
	w.submit(w.task())
	leases := w.claim(worker, 10)
	if len(leases) != 3 {
		t.Fatalf("%d started: two until the tokens are gone, and the one that needs none", len(leases))
	}
	if got := w.detail(ids[2], "rate_limit"); !strings.Contains(got, "600 tokens a minute") || !strings.Contains(got, "400 are owed") {
		t.Error(got)
	}
	waits := &engine.Command{Claim: &engine.Claim{Worker: worker.ID, Session: worker.Session, Most: 5, WaitMS: 100_000}}
	w.turn(waits)
	w.advance(39 * time.Second)
	if _, answered := w.late[waits]; answered {
		t.Fatal("it started while tokens were owed")
	}
	w.advance(2 * time.Second) // 400 owed at ten a second, and one more to go by
	if r := w.late[waits]; r.Answer == nil || len(r.Answer.Claimed.Leases) != 1 {
		t.Fatalf("it starts when the debt is paid: %+v", r)
	}
	report := ok(leases[0])
	report.Usage = json.RawMessage(`{"tokens_in": 10, "tokens_out": 10}`)
	w.settle(worker, report) // 480 come back of what was charged ahead
	w.submit(w.task(eats(1)))
	if left, _, _ := w.engine.Board().TokensLeft(w.tenant(), w.now); left < -20 || left > 0 {
		t.Errorf("%d tokens are left, not about none", left)
	}
	w.advance(3 * time.Second)
	if more := w.claim(worker, 5); len(more) != 1 {
		t.Fatalf("%d of 1 started", len(more))
	}
}

// A new brain knows what was used: what it finds running was charged, or is charged now.
func TestTokensOutliveABrain(t *testing.T) {
	w := newWorld(t, engine.Config{})
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 50 })
	w.quotas(func(q *models.Quotas) { q.TokensPerMinute = most(600) })
	w.now = w.now.Add(time.Second)
	eats := func(t *engine.NewTask) { t.Class.Tokens, t.Tokens = true, 700 }
	w.submit(w.task(eats), w.task(eats))
	w.claim(worker, 10)
	before, _, _ := w.engine.Board().TokensLeft(w.tenant(), w.now)
	for _, saved := range []bool{false, true} {
		if saved {
			w.advance(time.Second)
			before, _, _ = w.engine.Board().TokensLeft(w.tenant(), w.now)
		}
		w.engine = engine.New(engine.Config{})
		w.rebuild()
		if left, _, limited := w.engine.Board().TokensLeft(w.tenant(), w.now); left != before || !limited {
			t.Errorf("%d tokens are left to a new brain, %d before (saved: %v)", left, before, saved)
		}
	}
	if more := w.claim(worker, 10); len(more) != 0 {
		t.Fatalf("%d started with tokens owed", len(more))
	}
}

func TestSettingsAreVersionedAndAudited(t *testing.T) {
	w := newWorld(t, engine.Config{})
	set := func(version int64, weight *float64) *engine.Command {
		return &engine.Command{Configure: &engine.Configure{
			Quotas: &engine.SetQuotas{Quotas: models.Quotas{Tenant: w.tenant(), MaxGPUs: most(4)}, Weight: weight}, Version: version, Action: "quotas.set",
		}}
	}
	heavy := 3.0
	if got := w.do(set(1, &heavy)); got.Quotas.Version != 2 || got.Tenant.Weight != 3 || w.engine.Board().Weight(w.tenant()) != 3 {
		t.Errorf("answered %+v %+v", got.Quotas, got.Tenant)
	}
	w.refuses(models.Stale, set(1, nil))
	w.rebuild()
	if got := w.do(set(2, nil)); got.Tenant.Weight != 3 {
		t.Error("an edit that names no weight changed it")
	}
	var rows []string
	for _, a := range w.store.Audit() {
		if a.Action == "quotas.set" {
			rows = append(rows, fmt.Sprintf("%s>%s", a.Before, a.After))
		}
	}
	if len(rows) != 2 || !strings.Contains(rows[0], `"max_gpus":null`) || !strings.Contains(rows[0], `"max_gpus":4`) {
		t.Errorf("the audit has %v", rows)
	}
	for _, cmd := range []*engine.Configure{
		{Grants: &models.Grants{Env: w.env, Granted: []string{"a"}}, Version: 7, Action: "permissions.set"},
		{TaskType: &models.TaskType{Env: w.env, Type: "a"}, Version: 7, Action: "task_type.edit"},
	} {
		w.refuses(models.Stale, &engine.Command{Configure: cmd})
	}
	for _, cmd := range []*engine.Configure{
		{Quotas: &engine.SetQuotas{Quotas: models.Quotas{Tenant: 99}}, Action: "quotas.set"},
		{Grants: &models.Grants{Env: 99}, Action: "permissions.set"},
		{TaskType: &models.TaskType{Env: 99, Type: "a"}, Action: "task_type.edit"},
	} {
		w.refuses(models.NotFound, &engine.Command{Configure: cmd})
	}
}

// Whoever waits at a gate earns no head start over others by it, and takes nothing from them.
func TestATenantAtItsLimitLeavesTheRestToOthers(t *testing.T) {
	w := newWorld(t, engine.Config{})
	other := w.do(&engine.Command{Configure: &engine.Configure{New: true, Action: "tenant.create", Tenant: &models.Tenant{ID: w.id(), Slug: "birch", Name: "Birch", Weight: 1, Timezone: "UTC"}}}).Tenant
	var env int32
	for _, e := range w.engine.Board().Envs {
		if e.Tenant == other.Number {
			env = e.Env
		}
	}
	worker := w.worker("one", func(m *models.Worker) { m.Slots = 10 })
	w.quotas(func(q *models.Quotas) { q.MaxConcurrent = most(1) })
	for range 20 {
		w.submit(w.task())
		w.do(&engine.Command{Submit: &engine.Submit{Env: env, Tasks: []engine.NewTask{w.task()}}})
	}
	leases := w.claim(worker, 10)
	mine := slices.DeleteFunc(slices.Clone(leases), func(l engine.Lease) bool { return l.Row.Env != w.env })
	if len(leases) != 10 || len(mine) != 1 {
		t.Fatalf("%d slots were filled, %d by the limited tenant", len(leases), len(mine))
	}
}
