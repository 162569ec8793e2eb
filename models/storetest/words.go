package storetest

import (
	"encoding/json"
	"fmt"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// words are what people say of tasks that stand: yes and no, signals, edits and judgements.
func (r *run) words() (out []*engine.Command) {
	for range 1 + r.rng.IntN(4) {
		ref := pick(r, r.known.all)
		if ref.ID.IsZero() {
			return out
		}
		row, ok := r.rowOf(ref)
		if !ok {
			continue
		}
		cmd := &engine.Command{}
		switch r.rng.IntN(5) {
		case 0, 1:
			cmd.Approve = &engine.Approve{Env: ref.Env, Task: ref.ID, Reject: r.chance(30), Reason: "said so"}
		case 2:
			cmd.Signal = &engine.Signal{Env: ref.Env, Task: ref.ID, Name: "hear", Data: json.RawMessage(fmt.Sprintf("%d", r.rng.IntN(10)))}
		case 3:
			cmd.Edit = r.edited(&row)
		default:
			cmd.Judge = &engine.Judge{Env: ref.Env, Task: ref.ID, Score: float64(r.rng.IntN(5)) / 4, Source: pick(r, []string{"people", "model"})}
		}
		out = append(out, r.command(cmd))
	}
	return out
}

// lastWords leave something of each sort to compare: signals that nobody has fetched, judgements, and watermarks.
func (r *run) lastWords() {
	for i := range 12 {
		mark := &engine.Mark{Env: r.env(), Name: fmt.Sprint("mark-", i%4), Value: json.RawMessage(fmt.Sprintf(`{"upto": %d}`, i))}
		if i%3 == 0 {
			mark.Version = new(int64) // there must be none yet
		}
		r.turn([]*engine.Command{r.listed(r.command(&engine.Command{Mark: mark}))}, noFault)
	}
	signals, judged := 0, 0
	for _, ref := range r.known.all {
		row, ok := r.rowOf(ref)
		if ok && row.Attempt > 0 && judged < 6 {
			judged++
			r.turn([]*engine.Command{r.listed(r.command(&engine.Command{Judge: &engine.Judge{Env: ref.Env, Task: ref.ID, Score: .5, Source: fmt.Sprint("last ", judged%4)}}))}, noFault)
		}
		if ok && row.State == models.Running && signals < 6 {
			signals++
			r.turn([]*engine.Command{r.listed(r.command(&engine.Command{Signal: &engine.Signal{Env: ref.Env, Task: ref.ID, Name: fmt.Sprint("last ", signals), Data: json.RawMessage(`[1]`)}}))}, noFault)
		}
	}
}

// listed notes that a command is on its way.
func (r *run) listed(c *engine.Command) *engine.Command {
	r.asked[c.ID] = c
	r.counts.Commands++
	return c
}

// rowOf is a task's row as both stores have it.
func (r *run) rowOf(ref models.TaskRef) (models.Task, bool) {
	facts, err := r.sides[0].store.Facts(r.ctx(), &models.Need{Tasks: []models.TaskRef{ref}})
	r.must(err)
	row, ok := facts.Tasks[ref]
	return row, ok
}

// edited changes one thing or two of a task.
func (r *run) edited(row *models.Task) *engine.Edit {
	e := &engine.Edit{Env: row.Env, Task: row.ID, Seen: row.UpdatedAt}
	if r.chance(10) {
		e.Seen--
	}
	if r.chance(50) {
		priority := int16(r.rng.IntN(5) * 25)
		e.Priority = &priority
	}
	if r.chance(30) {
		lane := pick(r, []string{"sync", "batch", "nowhere"})
		e.Lane = &lane
	}
	if r.chance(30) {
		at := r.now.Add(models.Seconds(r.rng.IntN(30) - 5))
		e.RunAt = &at
	}
	if r.chance(20) {
		at := r.now.Add(models.Seconds(1 + r.rng.IntN(60)))
		e.ExpiresAt = &at
	}
	if r.chance(20) {
		e.Relabel = true
		e.Before = []models.Label{{Env: row.Env, Task: row.ID, Key: "team", Value: "red"}, {Env: row.Env, Task: row.ID, Key: "team", Value: "blue"}}
		e.Labels = []models.Label{{Env: row.Env, Task: row.ID, Key: "team", Value: "blue"}}
	}
	return e
}

// spawns are children of what runs, some of them spawned before, now and then under a lease that was lost.
func (r *run) spawns() (out []*engine.Command) {
	for range 1 + r.rng.IntN(4) {
		w := pick(r, r.known.workers)
		l := pick(r, w.leases)
		if r.chance(8) {
			l = pick(r, r.known.stale)
		}
		if l.token.IsZero() {
			continue
		}
		x := &engine.Spawn{Env: l.ref.Env, Task: l.ref.ID, Token: l.token}
		seen := map[string]bool{}
		for range 1 + r.rng.IntN(4) {
			t := r.task(l.ref.Env)
			t.Key, t.IdemKey, t.Dedupe, t.DependsOn = fmt.Sprintf("child-%d", r.rng.IntN(6)), "", nil, nil
			if t.Lane == "nowhere" {
				t.Lane = ""
			}
			t.Detach = r.chance(20)
			if n := len(x.Tasks); n > 0 && r.chance(40) {
				t.DependsOn = []engine.Dependency{{Task: x.Tasks[r.rng.IntN(n)].ID, On: r.on()}}
			}
			if !seen[t.Key] {
				seen[t.Key] = true
				x.Tasks = append(x.Tasks, t)
			}
		}
		out = append(out, r.command(&engine.Command{Spawn: x}))
	}
	return out
}
