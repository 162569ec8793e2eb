package loop

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// listener makes a schedule for the triggers named "sale".
func (w *world) listener(name, overlap string, rule models.EventRule) models.TaskRef {
	w.Helper()
	rule.Name = "sale"
	s := &models.Schedule{
		Env: w.env, ID: newID(), Name: name, Work: models.ScheduleWork{Task: json.RawMessage(`{"class":{"type":"work"},"max_attempts":9,"input":{}}`)},
		Rule: models.ScheduleRule{Kind: "event", GraceSeconds: 3600, Misfire: "run_once", Overlap: overlap, Event: &rule},
	}
	w.must(w.loop, &engine.Command{Tenant: w.tenant, Configure: &engine.Configure{New: true, Action: "schedule.create", Schedule: s}})
	return models.TaskRef{Env: s.Env, ID: s.ID}
}

// Many send triggers at once while commits fail or get no answer and the brain changes; each sender asks again, of whoever
// decides, until it is told. Afterwards each trigger stands once, and each schedule has got it in one run, once.
func TestEveryTriggerIsDeliveredOnce(t *testing.T) {
	for seed := range uint64(12) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { deliver(t, rand.New(rand.NewPCG(seed, 3))) })
		})
	}
}

func deliver(t *testing.T, rng *rand.Rand) {
	w := newWorld(t, Options{})
	feeds := []models.TaskRef{
		w.listener("at once", "allow", models.EventRule{}),
		w.listener("when it is quiet", "allow", models.EventRule{DebounceSeconds: 2, MaxWaitSeconds: 7, MaxEvents: 9}),
		w.listener("one at a time", "skip", models.EventRule{DebounceSeconds: 1, MaxWaitSeconds: 3}),
		w.listener("in turn", "queue_one", models.EventRule{MaxEvents: 5}),
		w.listener("the newest", "cancel_previous", models.EventRule{DebounceSeconds: 1, MaxWaitSeconds: 5}),
	}
	var at sync.Mutex // of doors
	doors := []*Loop{w.loop}
	stops := []func(){w.stop}
	for _, address := range []string{"https://two", "https://three"} {
		l, stop := runs(t, w.store, Options{Address: address})
		doors, stops = append(doors, l), append(stops, stop)
	}
	door := func(try int) *Loop {
		at.Lock()
		defer at.Unlock()
		return doors[try%len(doors)]
	}
	insist := func(cmd *engine.Command) *engine.Answer { return w.insist(door, cmd) }

	over := make(chan struct{})
	var working, sending sync.WaitGroup
	working.Go(func() { // what runs make is worked off, so that "skip" and "queue_one" get on
		for {
			select {
			case <-over:
				return
			case <-time.After(300 * time.Millisecond):
			}
			got := insist(w.claim(50, 0))
			if got == nil || got.Claimed == nil || len(got.Claimed.Leases) == 0 {
				continue
			}
			settle := &engine.Settle{Worker: w.worker, Session: w.session}
			for _, l := range got.Claimed.Leases {
				settle.Results = append(settle.Results, engine.Result{
					Token: l.Row.Token, Task: models.TaskRef{Env: l.Row.Env, ID: l.Row.ID}, Outcome: models.AttemptSucceeded,
				})
			}
			insist(&engine.Command{Settle: settle})
		}
	})
	want := w.barrage(&sending, door, rng, 1500)
	for range 25 { // what goes wrong meanwhile
		time.Sleep(time.Duration(200+rng.IntN(1200)) * time.Millisecond)
		switch rng.IntN(5) {
		case 0:
			w.store.fails(rng.IntN(2) == 0, models.Unclear)
		case 1:
			w.store.fails(false, models.Rollback, models.Rollback)
		case 2:
			w.store.fails(false, models.RowCount)
		case 3: // the brain hands over, and comes back as a standby
			at.Lock()
			for i, l := range doors {
				if l.Role().Brain {
					stops[i]()
					doors[i], stops[i] = runs(t, w.store, Options{Address: fmt.Sprint("https://again-", rng.Uint64())})
					break
				}
			}
			at.Unlock()
		default: // it stands still for longer than a standby waits
			freeze := make(chan struct{})
			w.store.set(func(s *shaky) { s.freeze = freeze })
			time.Sleep(time.Duration(rng.IntN(7000)) * time.Millisecond)
			w.store.set(func(s *shaky) { s.freeze = nil })
			close(freeze)
		}
	}
	sending.Wait()
	time.Sleep(2 * time.Minute)
	close(over)
	working.Wait()

	said := w.store.Said()
	var got []models.ID
	for i := range said.Messages {
		got = append(got, said.Messages[i].ID)
	}
	slices.SortFunc(got, models.ID.Compare)
	if !slices.Equal(got, want) {
		t.Fatalf("%d triggers stand of %d that were sent", len(got), len(want))
	}
	for _, of := range feeds {
		w.reconcile(of, said.Messages)
	}
}

// insist asks one door after another until it is told.
func (w *world) insist(door func(try int) *Loop, cmd *engine.Command) *engine.Answer {
	cmd.ID = newID()
	began := time.Now()
	for try := 0; ; try++ {
		answer, err := w.do(door(try), cmd)
		if err == nil {
			return answer
		}
		if models.CodeOf(err) != models.Unavailable || time.Since(began) > 5*time.Minute {
			w.Errorf("told %v", err)
			return nil
		}
		cmd.Resent = true
		time.Sleep(20 * time.Millisecond)
	}
}

// barrage lets a dozen senders send 25 triggers each, with pauses of less than so many milliseconds. It answers their ids.
func (w *world) barrage(sending *sync.WaitGroup, door func(try int) *Loop, rng *rand.Rand, most int) (sent []models.ID) {
	for i := range 12 {
		var messages []engine.NewMessage
		var pauses []time.Duration
		for n := range 25 {
			m := engine.NewMessage{ID: newID(), Data: json.RawMessage(fmt.Sprintf(`{"from":%d,"n":%d}`, i, n))}
			if n%5 == 0 {
				m.Key = m.ID.Text("k")
			}
			messages, sent = append(messages, m), append(sent, m.ID)
			pauses = append(pauses, time.Duration(rng.IntN(most))*time.Millisecond)
		}
		sending.Go(func() {
			for n, pause := range pauses {
				time.Sleep(pause)
				w.insist(door, &engine.Command{Tenant: w.tenant, Publish: &engine.Publish{
					Env: w.env, Source: models.FromTrigger, Name: "sale", Messages: messages[n : n+1],
				}})
			}
		})
	}
	slices.SortFunc(sent, models.ID.Compare)
	return sent
}

// The same on PostgreSQL: links are cut at a COMMIT, before or after the server has done it, and sessions die with their link.
// What the rows say is held against what was sent.
func TestPostgresEveryTriggerIsDeliveredOnce(t *testing.T) {
	h := newHouse(t)
	rng := rand.New(rand.NewPCG(1, 3))
	var doors []*Loop
	var links []*proxy
	for _, address := range []string{"https://one", "https://two", "https://three"} {
		link, through := proxied(t, h.dsn)
		l, _ := h.replica(through, address, Options{})
		if h.loop == nil {
			h.loop = l
			h.furnish(l)
		}
		doors, links = append(doors, l), append(links, link)
	}
	h.listener("at once", "allow", models.EventRule{})
	h.listener("when it is quiet", "allow", models.EventRule{DebounceSeconds: 1, MaxWaitSeconds: 2, MaxEvents: 9})
	var sending sync.WaitGroup
	sent := h.barrage(&sending, func(try int) *Loop { return doors[try%len(doors)] }, rng, 400)
	sending.Go(func() {
		for range 12 {
			time.Sleep(time.Duration(100+rng.IntN(400)) * time.Millisecond)
			for i, l := range doors {
				if !l.Role().Brain {
					continue
				}
				if rng.IntN(4) == 0 { // another takes over
					links[i].die(true)
					time.Sleep(6 * time.Second)
					links[i].die(false)
				} else {
					links[i].cutNextCommit(rng.IntN(2) == 0)
				}
			}
		}
	})
	sending.Wait()
	type count struct{ messages, missing, wrong int }
	var got count
	for range 600 {
		err := h.db.Platform().Read(t.Context(), func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `WITH delivered AS (
					SELECT m.id, s.id AS schedule, count(t.run) AS times FROM messages m CROSS JOIN schedules s
					LEFT JOIN schedule_runs r ON r.env = s.env AND r.schedule = s.id
					LEFT JOIN takes t ON t.env = r.env AND t.run = r.id AND m.seq BETWEEN t.first AND t.last GROUP BY m.id, s.id)
				SELECT (SELECT count(*) FROM messages WHERE id = ANY ($1)), count(*) FILTER (WHERE times = 0), count(*) FILTER (WHERE times > 1) FROM delivered`,
				uuids(sent)).Scan(&got.messages, &got.missing, &got.wrong)
		})
		if err != nil {
			t.Fatal(err)
		}
		if got.missing == 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if got != (count{messages: len(sent)}) {
		t.Errorf("of %d triggers %+v", len(sent), got)
	}
	f := 0
	for _, l := range doors {
		f += int(l.Figures().Unclear + l.Figures().Takeovers)
	}
	t.Logf("%d triggers, %d takeovers and unclear commits", len(sent), f)
}

func uuids(ids []models.ID) (out [][16]byte) {
	for _, id := range ids {
		out = append(out, id)
	}
	return out
}

// reconcile holds the stretches that the runs of a schedule took against the messages: each lies in one, once.
func (w *world) reconcile(of models.TaskRef, messages []models.Message) {
	w.Helper()
	taken := map[int64]int{}
	runs := w.store.Runs(of)
	for _, r := range runs {
		made := 0
		for _, take := range w.store.Takes(models.TaskRef{Env: r.Env, ID: r.ID}) {
			count := 0
			for _, m := range messages {
				if take.First <= m.Seq && m.Seq <= take.Last {
					taken[m.Seq]++
					count++
				}
			}
			if made += count; count != int(take.Count) {
				w.Errorf("a take of %d messages covers %d", take.Count, count)
			}
		}
		if made > 0 && r.Work().IsZero() && r.Outcome == "dispatched" {
			w.Errorf("the run %+v took %d messages and made nothing", r, made)
		}
	}
	for _, m := range messages {
		if taken[m.Seq] != 1 {
			w.Errorf("trigger %d of %s was taken %d times by %d runs of schedule %x", m.Seq, m.At.Time().Format(time.TimeOnly), taken[m.Seq], len(runs), of.ID[14:])
		}
	}
	slices.SortFunc(runs, func(a, b models.Run) int { return cmp.Compare(a.ScheduledFor, b.ScheduledFor) })
	w.Logf("%d triggers in %d runs", len(messages), len(runs))
}
