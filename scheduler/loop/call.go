package loop

import (
	"sync"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// call is one command on its way, and who waits for it.
type call struct {
	cmd   *engine.Command
	order order
	rows  int
	bytes int
	// drops is the claim this command takes off, when the loop itself asked for that.
	drops *call
	// took is told the answer of a command that the loop itself asked; nobody waits on done then.
	took func(*engine.Answer)

	mu       sync.Mutex
	done     chan outcome // holds the outcome once finished
	finished bool
	gone     bool
}

type outcome struct {
	answer *engine.Answer
	err    error
}

func newCall(cmd *engine.Command) *call {
	c := &call{cmd: cmd, order: orderOf(cmd), done: make(chan outcome, 1)}
	c.rows, c.bytes = weigh(cmd)
	return c
}

// finish hands the outcome over; false when nobody waits any more.
func (c *call) finish(o outcome) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone || c.finished {
		return false
	}
	if c.took != nil && o.err == nil {
		c.took(o.answer)
	}
	c.finished = true
	c.done <- o
	return true
}

// leave says that nobody waits any more. When the outcome was quicker, it is returned.
func (c *call) leave() (outcome, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return <-c.done, true
	}
	c.gone = true
	return outcome{}, false
}

func (c *call) answered() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.finished
}

func (c *call) abandoned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// order is the rank of a command in the inbox.
type order int

const (
	reports order = iota // settle, heartbeat, return, look: they free what others wait for, or cost nothing
	orders               // what people and workers change
	claims
	submits
	orderings
)

func orderOf(cmd *engine.Command) order {
	switch {
	case cmd.Settle != nil, cmd.Heartbeat != nil, cmd.Return != nil, cmd.Look != nil, cmd.Tick != nil:
		return reports
	case cmd.Claim != nil:
		return claims
	case cmd.Submit != nil, cmd.Publish != nil:
		return submits
	}
	return orders
}

// weigh estimates how many rows a command changes and how many bytes it carries.
func weigh(cmd *engine.Command) (rows, bytes int) {
	switch {
	case cmd.Submit != nil:
		for i := range cmd.Submit.Tasks {
			t := &cmd.Submit.Tasks[i]
			rows += 1 + len(t.DependsOn) + len(t.Labels)
			bytes += len(t.Input) + len(t.Payload)
		}
	case cmd.Settle != nil:
		for i := range cmd.Settle.Results {
			r := &cmd.Settle.Results[i]
			rows++
			bytes += len(r.Result) + len(r.Checkpoint) + len(r.Usage)
		}
	case cmd.Heartbeat != nil:
		for i := range cmd.Heartbeat.Leases {
			b := &cmd.Heartbeat.Leases[i]
			if size := len(b.Progress) + len(b.Checkpoint); size > 0 {
				rows++
				bytes += size
			}
		}
	case cmd.Publish != nil:
		rows = len(cmd.Publish.Messages)
		for i := range cmd.Publish.Messages {
			bytes += len(cmd.Publish.Messages[i].Data)
		}
	case cmd.Claim != nil:
		rows = int(cmd.Claim.Most)
	case cmd.Return != nil:
		rows = len(cmd.Return.Tokens)
	case cmd.Trigger != nil:
		rows, bytes = cmd.Trigger.Rows, 64<<10 // what has gathered for the schedule is read for it
	case cmd.Backfill != nil:
		rows = cmd.Backfill.Rows
	case cmd.Steer != nil && cmd.Steer.Retry:
		rows = 1000 // as many dead letters as a slice has
	}
	return max(rows, 1), bytes
}

// tokens are those of the leases an answer carries.
func tokens(a *engine.Answer) []models.ID {
	if a == nil || a.Claimed == nil {
		return nil
	}
	out := make([]models.ID, len(a.Claimed.Leases))
	for i := range a.Claimed.Leases {
		out[i] = a.Claimed.Leases[i].Row.Token
	}
	return out
}
