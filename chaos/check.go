package chaos

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"nightshift/models"
	"nightshift/workers/client"
	"nightshift/workers/protocol"
)

// Drain waits until nothing waits or runs any more.
func (w *World) Drain(within time.Duration) time.Duration {
	w.t.Helper()
	const open = `SELECT count(*) FROM tasks WHERE state < 7`
	began := time.Now()
	for w.DB.count(w.t, open) > 0 {
		if time.Since(began) > within {
			w.t.Fatalf("I1: not drained within %s: by state %s", within, w.text(`SELECT string_agg(format('%s: %s', state, n), ', ') FROM
				(SELECT state, count(*) n FROM tasks WHERE state < 7 GROUP BY state) open`))
		}
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// text reads one text; none is empty.
func (w *World) text(sql string, args ...any) string {
	w.t.Helper()
	var text *string
	w.DB.scan(w.t, sql, args, &text)
	if text == nil {
		return ""
	}
	return *text
}

// Verify sends what is unclear again, drains, and holds the invariants against the journals.
func (w *World) Verify(customers ...*Customer) {
	w.t.Helper()
	again := 0
	for _, c := range customers {
		again += c.resend()
	}
	took := w.Drain(3 * patience)
	w.t.Logf("%d unclear submits sent again; drained after %s", again, took.Round(time.Millisecond))
	for _, c := range customers {
		w.acknowledged(c)
		w.t.Log(c.figures())
	}
	w.oneOutcome()
	w.recount()
	w.stale()
}

// acknowledged is I1 and I4: of each acknowledged key exactly one task, of each refused one none.
func (w *World) acknowledged(c *Customer) {
	w.t.Helper()
	texts := map[string]int{}
	rows, err := w.DB.Admin.Query(context.Background(), `SELECT payload::json->>'text', count(*) FROM specs WHERE payload IS NOT NULL GROUP BY 1`)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text *string
		var n int
		if err := rows.Scan(&text, &n); err != nil {
			w.t.Fatal(err)
		}
		if text != nil {
			texts[*text] = n
		}
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	for fate, want := range map[Fate]int{Acked: 1, Refused: 0} {
		for _, e := range c.with(fate) {
			if n := texts[e.text]; n != want {
				w.t.Errorf("I1/I4: %s (header %v, status %d, %s) has %d tasks, not %d", e.key, e.header, e.status, e.id, n, want)
			}
		}
	}
}

// oneOutcome is I2, in the database and in the workers' journals.
func (w *World) oneOutcome() {
	w.t.Helper()
	if n := w.DB.count(w.t, `SELECT count(*) FROM (SELECT 1 FROM attempts WHERE outcome = 1 GROUP BY env, task HAVING count(*) > 1) twice`); n > 0 {
		w.t.Errorf("I2: %d tasks succeeded more than once", n)
	}
	if n := w.DB.count(w.t, `SELECT count(*) FROM tasks t WHERE state = 8 AND NOT EXISTS
		(SELECT 1 FROM attempts a WHERE a.env = t.env AND a.task = t.id AND a.outcome = 1)`); n > 0 {
		w.t.Errorf("I2: %d tasks succeeded without an attempt that did", n)
	}
	tokens := map[string]map[string]bool{}
	starts, accepted, refused, silent := 0, 0, 0, 0
	for _, p := range w.pullers {
		for _, s := range p.starts() {
			starts++
			switch {
			case !s.answered:
				silent++
			case s.accepted:
				accepted++
				if tokens[s.task] == nil {
					tokens[s.task] = map[string]bool{}
				}
				tokens[s.task][s.token] = true
			default:
				refused++
			}
		}
		p.mu.Lock()
		if len(p.trouble) > 0 {
			w.t.Logf("%s met %v", p.name, p.trouble)
		}
		p.mu.Unlock()
	}
	for task, accepted := range tokens {
		if len(accepted) > 1 {
			w.t.Errorf("I2: %s: results of %d attempts were accepted", task, len(accepted))
		}
	}
	w.t.Logf("workers' journals: %d starts, %d results accepted, %d refused, %d never answered", starts, accepted, refused, silent)
}

// beyondFirst is I3: starts that were not a task's first, and how their predecessors ended.
func (w *World) beyondFirst(most int) {
	w.t.Helper()
	extra := w.DB.count(w.t, `SELECT coalesce(sum(attempt - 1), 0) FROM tasks WHERE attempt > 1`)
	lost := w.DB.count(w.t, `SELECT count(*) FROM attempts WHERE outcome = 6`)
	back := w.DB.count(w.t, `SELECT count(*) FROM attempts WHERE outcome = 4`)
	all := w.DB.count(w.t, `SELECT count(*) FROM tasks`)
	w.t.Logf("%d tasks, %d starts beyond the first: %d leases lost, %d given back or never arrived", all, extra, lost, back)
	if extra > most {
		w.t.Errorf("I3: %d starts beyond the first, at most %d are explained by what was killed", extra, most)
	}
}

// recount is I5: what is counted equals what is there.
func (w *World) recount() {
	w.t.Helper()
	const wrongEdges = `SELECT count(*) FROM tasks t WHERE t.state BETWEEN 1 AND 7 AND t.remaining <>
		(SELECT count(*) FROM edges e WHERE e.env = t.env AND e.to_task = t.id AND e.state = 0)`
	if n := w.DB.count(w.t, wrongEdges); n > 0 {
		w.t.Errorf("I5: %d tasks count their open edges wrong", n)
	}
	const wrongWorkflows = `SELECT count(*) FROM workflows f WHERE EXISTS (SELECT 1 FROM
		(SELECT state, count(*) n FROM tasks t WHERE t.env = f.env AND t.workflow = f.id GROUP BY state) real
		WHERE coalesce(f.counts[real.state + 1], 0) <> real.n)`
	wrong := -1
	for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if wrong = w.DB.count(w.t, wrongWorkflows); wrong == 0 { // they are saved once a second
			return
		}
	}
	w.t.Errorf("I5: the counts of %d workflows differ from their tasks: %s", wrong, w.text(`SELECT string_agg(format('%s', counts), '; ') FROM workflows`))
}

// stale is I6: leases that were lost are lost for their holders too, in both forms.
func (w *World) stale() {
	w.t.Helper()
	lost := map[string]bool{}
	for _, token := range strings.Fields(w.text(`SELECT string_agg(token::text, ' ') FROM attempts WHERE outcome IN (4, 6)`)) {
		lost[token] = true
	}
	var old []start
	var from *Puller
	for _, p := range w.pullers {
		for _, s := range p.starts() {
			_, token, _ := models.ParseWireToken(s.token)
			if lost[uuid.UUID(token).String()] && len(old) < 20 && (from == nil || from == p) && p.life.Err() == nil {
				from, old = p, append(old, s)
			}
		}
	}
	if from == nil {
		return
	}
	for _, s := range old {
		w.refusedForm(from, s)
	}
	batch := make([]*start, len(old))
	for i := range old {
		batch[i] = &old[i]
	}
	if err := from.report(batch); err != nil {
		w.t.Errorf("I6: %v", err)
	}
	for _, s := range batch {
		if s.accepted || s.code != protocol.CodeLeaseLost {
			w.t.Errorf("I6: a lost lease's result was answered accepted %v, %q", s.accepted, s.code)
		}
	}
	w.t.Logf("%d stale tokens refused in both forms", len(old))
}

// refusedForm tries the single forms with a token that is lost.
func (w *World) refusedForm(p *Puller, s start) {
	w.t.Helper()
	for _, verb := range []string{"heartbeat", "complete"} {
		headers := map[string]string{protocol.HeaderLease: s.token, protocol.HeaderSession: p.session}
		_, err := p.callers[0].Do(context.Background(), client.Call{
			Method: http.MethodPost, Path: "/v1/tasks/" + s.task + "/" + verb, In: map[string]any{}, Headers: headers,
		})
		var refusal *client.Refusal
		if !errors.As(err, &refusal) || refusal.Status != http.StatusConflict || refusal.Code != protocol.CodeLeaseLost {
			w.t.Errorf("I6: %s with a lost lease was answered %v", verb, err)
		}
	}
}

// Finish waits for the brain, so that the world is whole before it is checked.
func (w *World) Finish(t testing.TB, customers ...*Customer) {
	t.Helper()
	for _, r := range w.Replicas {
		for _, l := range []*Link{r.Front, r.Database} {
			l.Set(Pass)
		}
		if !r.Alive() {
			r.Start()
		}
	}
	for _, r := range w.Replicas {
		r.Ready(patience)
	}
	w.Verify(customers...)
}
