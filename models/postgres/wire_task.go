package postgres

import "nightshift/models"

const taskFields = 51

// task writes a row of task_wire_4: the columns of tasks in their order, then what a change was decided on.
func (r *rows) task(t *models.Task, ref models.ID, was models.State) {
	r.next(taskFields)
	r.int4(t.Env)
	r.int4(t.Lane)
	r.int4(t.Class)
	r.int2(int16(t.State))
	r.int2(t.Priority)
	r.int2(int16(t.Flags))
	r.int4(t.Attempt)
	r.int4(t.AttemptsUsed)
	r.int4(t.MaxAttempts)
	r.int4(t.Remaining)
	r.int4(t.Killed)
	r.int4(t.HardSeconds)
	r.int8(t.AgeKey)
	r.int8(int64(t.CreatedAt))
	r.int8(int64(t.UpdatedAt))
	r.mustID(t.ID)
	r.instant(t.ReadyAt)
	r.instant(t.WakeAt)
	r.instant(t.ExpiresAt)
	r.instant(t.Deadline)
	r.instant(t.LatestStart)
	r.instant(t.StartedAt)
	r.instant(t.FinishedAt)
	r.instant(t.LeaseUntil)
	r.some8(t.Cards)
	r.instant(t.CancelAt)
	r.some8(t.EstimateMS)
	r.some4(t.LeasesLost)
	r.some4(t.KeyLimit)
	r.some4(t.SoftSeconds)
	r.some4(t.DelaySeconds)
	r.some4(t.TotalSeconds)
	r.some4(t.Depth)
	r.instant(t.TotalUntil)
	r.some8(t.Tokens)
	r.some8(t.CostMicro)
	for _, id := range [...]*models.ID{&t.Workflow, &t.Parent, &t.Worker, &t.AttemptID, &t.Token, &t.Fingerprint} {
		r.id(*id)
	}
	for _, s := range [...]string{t.Gate, t.Key, t.IdemKey, t.LimitKey, t.ErrorClass} {
		r.text(s)
	}
	r.some8(t.OrderKey)
	r.text(t.MoreKeys)
	r.id(ref)
	r.int2(int16(was))
}

// task reads the columns of tasks in the order of task_wire_4.
func (c *columns) task() (t models.Task) {
	t.Env, t.Lane, t.Class = c.int4(), c.int4(), c.int4()
	t.State, t.Priority, t.Flags = models.State(c.int2()), c.int2(), models.Flags(c.int2())
	t.Attempt, t.AttemptsUsed, t.MaxAttempts = c.int4(), c.int4(), c.int4()
	t.Remaining, t.Killed, t.HardSeconds = c.int4(), c.int4(), c.int4()
	t.AgeKey, t.CreatedAt, t.UpdatedAt = c.int8(), c.instant(), c.instant()
	t.ID = c.id()
	t.ReadyAt, t.WakeAt, t.ExpiresAt = c.instant(), c.instant(), c.instant()
	t.Deadline, t.LatestStart, t.StartedAt, t.FinishedAt = c.instant(), c.instant(), c.instant(), c.instant()
	t.LeaseUntil, t.Cards, t.CancelAt, t.EstimateMS = c.instant(), c.int8(), c.instant(), c.int8()
	t.LeasesLost, t.KeyLimit, t.SoftSeconds, t.DelaySeconds = c.int4(), c.int4(), c.int4(), c.int4()
	t.TotalSeconds, t.Depth, t.TotalUntil, t.Tokens, t.CostMicro = c.int4(), c.int4(), c.instant(), c.int8(), c.int8()
	t.Workflow, t.Parent, t.Worker, t.AttemptID, t.Token, t.Fingerprint = c.id(), c.id(), c.id(), c.id(), c.id(), c.id()
	t.Gate, t.Key, t.IdemKey, t.LimitKey, t.ErrorClass = c.text(), c.text(), c.text(), c.text(), c.text()
	t.OrderKey, t.MoreKeys = c.int8(), c.text()
	return t
}
