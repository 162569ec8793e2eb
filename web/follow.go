package web

import (
	"context"

	"nightshift/handlers"
	"nightshift/scheduler/relay"
)

// follow lets handlers hear of events without knowing who tells them.
func follow(r *relay.Relay) handlers.Follow {
	return func(ctx context.Context, ask handlers.FollowAsk) (<-chan handlers.Happening, error) {
		after, err := relay.Live, error(nil)
		switch ask.After {
		case handlers.Live:
		case handlers.Beginning:
			after = relay.Position{}
		default:
			if after, err = relay.ParsePosition(ask.After); err != nil {
				return nil, err
			}
		}
		events := r.Subscribe(ctx, relay.Filter{Envs: ask.Envs, Workflow: ask.Workflow, Task: ask.Task, Names: ask.Names}, after)
		out := make(chan handlers.Happening)
		go func() {
			defer close(out)
			for e := range events {
				select {
				case out <- handlers.Happening{ID: e.Position.String(), Reset: e.Reset, Event: e.Event}:
				case <-ctx.Done():
					return
				}
			}
		}()
		return out, nil
	}
}
