package handlers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// Follow gives the events after a place, first what is kept, then what happens, until ctx ends. The channel also closes
// when the listener falls behind: it asks again after the last event it got.
type Follow func(ctx context.Context, ask FollowAsk) (<-chan Happening, error)

// FollowAsk says which events a listener wants.
type FollowAsk struct {
	Envs     []int32 // what it may see; part of what a place means
	Workflow models.ID
	Task     models.ID
	Names    []string // exact, or ending in *; empty: all
	After    string   // the id of an event; Live or Beginning
}

// Places that are no event's id.
const (
	Live      = "live" // what is still to come
	Beginning = ""     // the oldest kept
)

// Happening is one event with its id, "batch.index". Reset says instead that what was asked for is older than what is
// kept.
type Happening struct {
	ID    string
	Reset bool
	models.Event
}

// Event is an event on the wire.
type Event struct {
	ID         string   `json:"id,omitempty"`
	Name       string   `json:"name"`
	At         Time     `json:"at"`
	TaskID     *TypedID `json:"task_id,omitempty"`
	WorkflowID *TypedID `json:"workflow_id,omitempty"`
	ScheduleID *TypedID `json:"schedule_id,omitempty"`
	WorkerID   *TypedID `json:"worker_id,omitempty"`
	State      string   `json:"state,omitempty"`
	Attempt    int32    `json:"attempt,omitempty"`
	Lane       string   `json:"lane,omitempty"`
	Pool       string   `json:"pool,omitempty"`
	Charged    float64  `json:"charged_seconds,omitempty" doc:"dominant resource seconds of the pool, of a whole attempt"`
	Class      string   `json:"class,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	BudgetID   *TypedID `json:"budget_id,omitempty"`
	Threshold  float64  `json:"threshold,omitempty" doc:"the part of the budget that is spent"`
}

// ShowEvent is how the API tells an event.
func ShowEvent(id string, e *models.Event) Event {
	typed := func(prefix string, id models.ID) *TypedID {
		if id.IsZero() {
			return nil
		}
		return &TypedID{prefix, id}
	}
	return Event{
		ID: id, Name: e.Name, At: Time(e.At), TaskID: typed(models.TaskPrefix, e.Task), WorkflowID: typed(models.WorkflowPrefix, e.Workflow),
		ScheduleID: typed(models.SchedulePrefix, e.Schedule), WorkerID: typed(models.WorkerPrefix, e.Worker), State: e.State, Attempt: e.Attempt, Lane: e.Lane, Pool: e.Pool, Charged: e.Charged,
		Class: e.Class, Reason: e.Reason, BudgetID: typed(models.BudgetPrefix, e.Budget), Threshold: e.Threshold,
	}
}

// Pulse of a stream.
const (
	pingEvery  = 12 * time.Second
	flushLimit = 10 * time.Second // a reader that takes nothing for so long is gone
)

// StreamEvents answers with server-sent events until the reader leaves, falls behind, or the server shuts down.
func StreamEvents(d *Deps, c *fiber.Ctx, ask FollowAsk) error {
	if d.Follow == nil {
		return models.Errorf(models.Unavailable, "events are not followed here yet")
	}
	ctx, cancel := UntilDrain(c.UserContext())
	events, err := d.Follow(ctx, ask)
	if err != nil {
		cancel()
		return err
	}
	c.Set(fiber.HeaderContentType, "text/event-stream")
	c.Set(fiber.HeaderCacheControl, "no-store")
	c.Set("X-Accel-Buffering", "no")
	if c.Method() == fiber.MethodHead {
		cancel()
		return nil
	}
	conn := c.Context().Conn()
	c.Context().SetBodyStreamWriter(func(w *bufio.Writer) {
		defer cancel()
		ping := time.NewTicker(pingEvery)
		defer ping.Stop()
		text := ": welcome\n\n"
		for {
			_ = conn.SetWriteDeadline(time.Now().Add(flushLimit + pingEvery))
			if _, err := w.WriteString(text); err != nil || w.Flush() != nil {
				return
			}
			select {
			case happening, open := <-events:
				if !open {
					return
				}
				text = wireEvent(happening)
			case <-ping.C:
				text = ": ping\n\n"
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func wireEvent(h Happening) string {
	if h.Reset {
		return fmt.Sprintf("event: reset\nid: %s\ndata: {}\n\n", h.ID)
	}
	data, err := json.Marshal(ShowEvent("", &h.Event))
	if err != nil {
		data = []byte("{}") // names, moments and ids always encode
	}
	return fmt.Sprintf("event: %s\nid: %s\ndata: %s\n\n", h.Name, h.ID, data)
}
