package worker

import (
	"encoding/json"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/workers/protocol"
)

// beats is the body of a heartbeat while it is read.
type beats struct {
	engine.Heartbeat
	wires []string // every token as it was sent
	known []bool   // it is a lease's token, and so in Leases
	given bool
}

func readBeats(c *fiber.Ctx) (*beats, error) {
	text, err := handlers.ReadBody(c)
	if err != nil {
		return nil, err
	}
	p := &body.Problems{}
	v, err := body.Open(text, "body", p)
	if err != nil {
		return nil, err
	}
	h := &beats{Heartbeat: engine.Heartbeat{All: true, Leases: []engine.Beat{}}}
	v.Members(func(name string, m body.Value) {
		switch {
		case name == "leases":
			h.given = true
			m.Elements(func(_ int, e body.Value) { h.lease(e, p) })
		case name == "free":
			if !m.Null() {
				readFree(m) // checked alone: the room is counted from the leases
			}
		case name == "models":
			if !m.Null() {
				h.Models = nameList(m)
			}
		case name == "utilization":
			if !m.Null() {
				h.Utilization = readUtilization(m)
			}
		default:
			m.Wrong("there is no such field")
		}
	})
	if !h.given {
		p.Addf("body.leases", "is required: every lease that is held, none as []")
	}
	return h, p.Err(models.ValidationFailed)
}

func (h *beats) lease(v body.Value, p *body.Problems) {
	var beat engine.Beat
	wire, known := "", false
	v.Members(func(name string, m body.Value) {
		switch name {
		case "lease_token":
			wire = m.String(1, maxText)
			beat.Task, beat.Token, known = models.ParseWireToken(wire)
		case "progress":
			beat.Progress = sized(m, handlers.CheckpointLimit)
		case "checkpoint":
			beat.Checkpoint = sized(m, handlers.CheckpointLimit)
		default:
			m.Wrong("there is no such field")
		}
	})
	if wire == "" && v.IsObject() && !p.Any() {
		p.Addf(body.Dot(v.At, "lease_token"), "is required")
	}
	h.wires, h.known = append(h.wires, wire), append(h.known, known)
	if known {
		h.Leases = append(h.Leases, beat)
	}
}

func readUtilization(v body.Value) []byte {
	v.Members(func(name string, m body.Value) {
		switch {
		case name != "gpu" && name != "cpu":
			m.Wrong("there is no such field")
		case !m.Null():
			m.Number(0, 1)
		}
	})
	return sized(v, maxText)
}

// heartbeat renews all leases of a session.
func (f *Floor) heartbeat(d *handlers.Deps, c *fiber.Ctx) error {
	text, err := handlers.PathParam(c, "id")
	if err != nil {
		return err
	}
	worker, session, err := f.session(c, text)
	if err != nil {
		return err
	}
	h, err := readBeats(c)
	if err != nil {
		return err
	}
	h.Worker, h.Session = worker, session
	answer, err := ask(d, c, func(cmd *engine.Command) { cmd.Heartbeat = &h.Heartbeat })
	if err != nil {
		return err
	}
	out := protocol.HeartbeatAnswer{Leases: make([]protocol.LeaseState, 0, len(h.wires)), Signals: []string{}}
	next := 0
	for i, wire := range h.wires {
		if !h.known[i] {
			out.Leases = append(out.Leases, protocol.LeaseState{LeaseToken: wire, State: protocol.LeaseLost, Signals: []protocol.Signal{}})
			continue
		}
		out.Leases = append(out.Leases, viewBeat(wire, &answer.Beaten.Leases[next]))
		next++
	}
	if answer.Beaten.Drain {
		out.Signals = append(out.Signals, protocol.SignalDrain)
	}
	return handlers.Answer(c, fiber.StatusOK, out)
}

func orNull(text json.RawMessage) json.RawMessage {
	if len(text) == 0 {
		return json.RawMessage("null")
	}
	return text
}

func viewBeat(wire string, b *engine.BeatenLease) protocol.LeaseState {
	v := protocol.LeaseState{LeaseToken: wire, State: protocol.LeaseLost, Signals: []protocol.Signal{}}
	if !b.OK {
		return v
	}
	until := protocol.At(b.Until.Time())
	v.State, v.LeaseExpiresAt = protocol.LeaseOK, &until
	for _, word := range b.Signals {
		v.Signals = append(v.Signals, protocol.WordSignal(word))
	}
	for i := range b.Sent {
		v.Signals = append(v.Signals, protocol.Signal{Name: b.Sent[i].Name, Data: orNull(b.Sent[i].Data)})
	}
	return v
}
