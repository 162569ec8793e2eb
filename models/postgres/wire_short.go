package postgres

import "nightshift/models"

// bornPlain says whether a new row has nothing but what birth_wire carries.
func bornPlain(t *models.Task) bool {
	rest := *t
	rest.Env, rest.Lane, rest.Class, rest.State, rest.Priority, rest.Flags = 0, 0, 0, 0, 0, 0
	rest.Attempt, rest.AttemptsUsed, rest.MaxAttempts, rest.HardSeconds = 0, 0, 0, 0
	rest.AgeKey, rest.CreatedAt, rest.UpdatedAt, rest.ID, rest.ReadyAt = 0, 0, 0, models.ID{}, 0
	rest.StartedAt, rest.LeaseUntil, rest.Cards, rest.EstimateMS = 0, 0, 0, 0
	rest.Worker, rest.AttemptID, rest.Token, rest.IdemKey = models.ID{}, models.ID{}, models.ID{}, ""
	return rest == models.Task{}
}

// birth writes a row of birth_wire.
func (r *rows) birth(t *models.Task) {
	r.next(23)
	r.int4(t.Env)
	r.int4(t.Lane)
	r.int4(t.Class)
	r.int2(int16(t.State))
	r.int2(t.Priority)
	r.int2(int16(t.Flags))
	r.int4(t.Attempt)
	r.int4(t.AttemptsUsed)
	r.int4(t.MaxAttempts)
	r.int4(t.HardSeconds)
	r.int8(t.AgeKey)
	r.int8(int64(t.CreatedAt))
	r.int8(int64(t.UpdatedAt))
	r.mustID(t.ID)
	r.instant(t.ReadyAt)
	r.instant(t.StartedAt)
	r.instant(t.LeaseUntil)
	r.some8(t.Cards)
	r.some8(t.EstimateMS)
	r.id(t.Worker)
	r.id(t.AttemptID)
	r.id(t.Token)
	r.text(t.IdemKey)
}

// move writes a row of move_wire.
func (r *rows) move(c *models.Change) {
	t := &c.After
	r.next(15)
	r.int4(t.Env)
	r.mustID(t.ID)
	r.int2(int16(t.State))
	r.int2(int16(c.From))
	r.id(c.Token)
	r.int4(t.Attempt)
	r.int4(t.AttemptsUsed)
	r.int8(int64(t.UpdatedAt))
	r.instant(t.StartedAt)
	r.instant(t.FinishedAt)
	r.instant(t.LeaseUntil)
	r.some8(t.Cards)
	r.id(t.Worker)
	r.id(t.AttemptID)
	r.id(t.Token)
}

// insertTasks sends new rows: plain ones short.
func (b *buffers) insertTasks(pipe *pipeline, tasks []models.Task) {
	b.births.begin(pipe.link.types["birth_wire"])
	b.tasks.begin(pipe.link.types["task_wire_4"])
	for i := range tasks {
		if t := &tasks[i]; bornPlain(t) {
			b.births.birth(t)
		} else {
			b.tasks.task(t, models.ID{}, 0)
		}
	}
	if b.births.n > 0 {
		pipe.send(call{name: "insert_births", params: [][]byte{b.births.param()}})
	}
	if b.tasks.n > 0 {
		pipe.send(call{name: "insert_tasks", params: [][]byte{b.tasks.param()}})
	}
}

// changeTasks sends rows after the batch: those that only started or ended short.
func (b *buffers) changeTasks(pipe *pipeline, changes []models.Change) {
	b.moves.begin(pipe.link.types["move_wire"])
	b.changes.begin(pipe.link.types["task_wire_4"])
	for i := range changes {
		if c := &changes[i]; c.Brief {
			b.moves.move(c)
		} else {
			b.changes.task(&c.After, c.Token, c.From)
		}
	}
	if n := b.moves.n; n > 0 {
		pipe.send(call{name: "move_tasks", params: [][]byte{b.moves.param(), int8Param(int64(n))}})
	}
	if n := b.changes.n; n > 0 {
		pipe.send(call{name: "change_tasks", params: [][]byte{b.changes.param(), int8Param(int64(n))}})
	}
}
