package postgres

import (
	"encoding/json"

	"nightshift/models"
)

func (r *rows) spec(s *models.Spec) {
	r.next(6)
	r.int4(s.Env)
	r.mustID(s.ID)
	r.id(s.Parent)
	r.mustText(string(s.Input))
	r.json(s.Payload)
	r.text(s.Trace)
}

func (r *rows) label(l *models.Label) {
	r.next(4)
	r.int4(l.Env)
	r.mustID(l.Task)
	r.mustText(l.Key)
	r.mustText(l.Value)
}

func (r *rows) edge(e *models.Edge) {
	r.next(5)
	r.int4(e.Env)
	r.mustID(e.From)
	r.mustID(e.To)
	r.int2(int16(e.On))
	r.int2(int16(e.State))
}

// end writes what becomes of an edge of a task that ended, by what it fires on.
func (r *rows) end(e *models.End) {
	r.next(7)
	r.int4(e.Env)
	r.mustID(e.Task)
	for _, on := range [...]models.On{models.OnSucceeded, models.OnFailed, models.OnFinished} {
		r.int2(int16(on.After(e.State)))
	}
	r.int2(int16(e.State))
	r.mustID(e.After)
}

func (c *columns) end() models.End {
	return models.End{Env: c.int4(), Task: c.id(), State: models.State(c.int2()), After: c.id()}
}

func (r *rows) attempt(a *models.Attempt) error {
	r.next(16)
	r.int4(a.Env)
	r.int4(a.N)
	for _, id := range [...]models.ID{a.Task, a.ID, a.Token, a.Worker} {
		r.mustID(id)
	}
	r.int8(int64(a.StartedAt))
	r.int8(int64(a.FinishedAt))
	r.int8(a.ChargedMS)
	r.int2(int16(a.Outcome))
	r.mustText(a.Pool)
	r.text(a.WorkerVersion)
	r.text(a.Model)
	var failure []byte
	if a.Error != nil {
		text, err := json.Marshal(a.Error)
		if err != nil {
			return models.Errorf(models.BadData, "the error of attempt %s: %w", a.ID.Text(models.AttemptPrefix), err)
		}
		failure = text
	}
	r.json(failure)
	r.json(a.Usage)
	r.json(a.Result)
	return nil
}

// attempt reads the columns of attempts in the order of attempt_wire.
func (c *columns) attempt() (a models.Attempt, err error) {
	a.Env, a.N = c.int4(), c.int4()
	a.Task, a.ID, a.Token, a.Worker = c.id(), c.id(), c.id(), c.id()
	a.StartedAt, a.FinishedAt, a.ChargedMS = c.instant(), c.instant(), c.int8()
	a.Outcome, a.Pool = models.Outcome(c.int2()), c.text()
	a.WorkerVersion, a.Model = c.text(), c.text()
	if failure := c.json(); failure != nil {
		a.Error = &models.TaskError{}
		err = json.Unmarshal(failure, a.Error)
	}
	a.Usage, a.Result = c.json(), c.json()
	return a, err
}
