package engine

import (
	"slices"

	"nightshift/models"
	"nightshift/scheduler/board"
)

// register makes a worker known, or gives an instance that comes again a new session; its leases go back unless listed. Whoever
// stops in order gives back what it has before: what is left is lost, and a task that ends its worker each time is poison however
// soon that comes again.
func (e *Engine) register(cmd *Command) (*Answer, error) {
	r := cmd.Register
	row := r.Worker
	row.State, row.LastSeen, row.UpdatedAt = models.WorkerActive, e.now, e.now
	old := e.board.Instance(row.Tenant, row.Instance)
	if old == nil {
		row.CreatedAt = e.now
		e.joined(row)
		return &Answer{Worker: &row}, nil
	}
	if old.Session == row.Session { // the same call, sent again
		known := old.Worker
		return &Answer{Worker: &known}, nil
	}
	recent := slices.DeleteFunc(slices.Clone(old.Replaced), func(at models.Instant) bool { return e.now-at > 60_000_000 })
	if len(recent) >= 2 {
		return nil, models.Errorf(models.InstanceConflict, "the instance %q was registered three times within a minute: two processes use one instance_id", row.Instance)
	}
	row.ID, row.CreatedAt, row.Replaced = old.ID, old.CreatedAt, append(recent, e.now)
	var lost []*board.Lease
	for _, lease := range old.Leases {
		if slices.Contains(r.Leases, lease.Row().Token) {
			lease.Until = e.now.Add(models.Seconds(int(row.LeaseSeconds)))
			lease.Confirmed = true
			continue
		}
		lost = append(lost, lease)
	}
	e.loseAll(lost, lostReplaced)
	e.joined(row)
	return &Answer{Worker: &row}, nil
}

func (e *Engine) joined(row models.Worker) {
	e.board.PutWorker(row)
	e.outlook.poolsChanged(e.now)
	e.b.plan.Workers = append(e.b.plan.Workers, row)
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: row.Env, Name: "worker.joined", At: e.now, Worker: row.ID, Pool: row.Pool})
	e.dirty = true
}

// retire drains a worker, or removes it and gives its leases back at once.
func (e *Engine) retire(cmd *Command) (*Answer, error) {
	r := cmd.Retire
	w := e.board.Workers[r.Worker]
	if w == nil {
		return nil, models.Errorf(models.NotFound, "there is no worker %s", r.Worker.Text(models.WorkerPrefix))
	}
	if !r.Session.IsZero() {
		if _, err := e.worker(r.Worker, r.Session); err != nil {
			return nil, err
		}
	}
	row := w.Worker
	row.State, row.UpdatedAt = models.WorkerDraining, e.now
	if !r.Gone {
		if w.State != models.WorkerDraining {
			w.State = row.State
			e.b.plan.Workers = append(e.b.plan.Workers, row)
			e.workerEvent(w, "worker.drained")
		}
		return &Answer{Worker: &row}, nil
	}
	for _, lease := range slices.Clone(w.Leases) {
		e.b.notes.lost[lostWorkerGone]++
		e.release(lease, nil)
	}
	row.State = models.WorkerGone
	e.b.plan.Workers = append(e.b.plan.Workers, row)
	e.board.DropWorker(w)
	e.outlook.poolsChanged(e.now)
	e.workerEvent(w, "worker.lost")
	return &Answer{Worker: &row}, nil
}

func (e *Engine) workerEvent(w *board.Worker, name string) {
	e.b.plan.Events = append(e.b.plan.Events, models.Event{Env: w.Env, Name: name, At: e.now, Worker: w.ID, Pool: w.Pool})
}
