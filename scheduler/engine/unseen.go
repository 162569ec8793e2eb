package engine

import (
	"nightshift/models"
	"nightshift/scheduler/board"
)

// outage is what a rebuild knows of the time before it: until when somebody decided, and until when each clock that was
// read holds what the leases had used.
type outage struct {
	until models.Instant
	saved map[clockOf]models.Instant
}

type clockOf struct {
	pool string
	kind models.KindName
}

func outageOf(s *models.Snapshot, now models.Instant) outage {
	o := outage{until: max(now, s.DecidedAt), saved: map[clockOf]models.Instant{}}
	for i := range s.Virtual {
		if v := &s.Virtual[i]; v.Tenant == 0 {
			o.saved[clockOf{v.Pool, v.Kind}] = v.At
		}
	}
	return o
}

// restore gives a lease of the new board what is known of it. The time in which nobody decided is nobody's: the slot could
// not have been given to anybody else, and whether the task ran all that time or only waited to say that it had ended, no
// brain saw.
func (e *Engine) restore(lease, before *board.Lease, o *outage) {
	started := lease.Row().StartedAt
	lease.Unseen = max(e.now-max(o.until, started), 0)
	if before != nil {
		lease.Unseen += before.Unseen
		lease.Until, lease.GrantedAt, lease.Charged = before.Until, before.GrantedAt, before.Charged
		lease.SoftTold, lease.MissedAt, lease.Confirmed, lease.Progress = before.SoftTold, before.MissedAt, before.Confirmed, before.Progress
		return
	}
	lease.Until = e.now.Add(models.Seconds(int(leaseSeconds(lease.Worker))))
	lease.Confirmed = true
	if soft := lease.Row().SoftSeconds; soft > 0 { // it was told of by the sweep that followed, if there was one
		lease.SoftTold = o.until-started >= models.Instant(soft)*1_000_000+2*sweepEvery
	}
	if at := o.saved[clockOf{lease.Pool, lease.Kind}]; at > started && lease.Worker != nil { // the tenant's saved time holds it already
		lease.Charged = (e.board.Clock(lease.Pool, lease.Kind).Ahead() + at.Sub(started).Seconds()) * lease.Rate
	}
}

// used is how long a lease ran before the eyes of a brain, in seconds.
func (e *Engine) used(lease *board.Lease) float64 {
	return (e.now.Sub(lease.Row().StartedAt) - lease.Unseen.Sub(0)).Seconds()
}
