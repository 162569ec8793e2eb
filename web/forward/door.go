package forward

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Options say where commands go.
type Options struct {
	Local  engine.Door                           // the loop of this replica
	Role   func() (brain bool, address string)   // whether it decides, and where the brain is when not; empty: nobody known
	Client *http.Client                          // NewClient makes a fitting one
	Token  func(context.Context) (string, error) // for the audience "brain"
	// Patience is how long a command is asked again while no brain answers; 0 means DefaultPatience.
	Patience time.Duration
	Protocol string // that this replica claims to speak; empty: the one it speaks
	Logger   *slog.Logger
}

const (
	// DefaultPatience outlives a takeover.
	DefaultPatience = 10 * time.Second
	callLimit       = 4 * time.Second // one try; a claim's wait comes on top
	otherPatience   = 2 * time.Second // a brain of another version is followed at once, or not before this replica is replaced
	firstPause      = 20 * time.Millisecond
	longestPause    = 500 * time.Millisecond
)

// Door is an engine.Door that finds the brain.
type Door struct {
	options Options
	log     *slog.Logger

	protocol string
}

var _ engine.Door = (*Door)(nil)

// New makes a Door.
func New(o Options) *Door {
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Client == nil {
		o.Client = NewClient(nil)
	}
	return &Door{options: o, log: o.Logger, protocol: cmp.Or(o.Protocol, Protocol())}
}

// Do brings the command to the brain and its answer back. While nobody decides it waits and asks again, until the
// patience or ctx ends.
func (d *Door) Do(ctx context.Context, cmd *engine.Command) (*engine.Answer, error) {
	began := time.Now()
	wait := firstPause
	asked := false // it may have been done already
	for {
		try := d.try(cmd, began, asked)
		until := d.deadline(try, began)
		answer, sent, err := d.ask(ctx, try, until)
		if err == nil && ctx.Err() != nil && undeliverable(answer) {
			d.giveBack(try, answer)
			return nil, gone(ctx)
		}
		if err == nil || models.CodeOf(err) != models.Unavailable {
			return answer, err
		}
		asked = asked || sent
		if other := (*protocolError)(nil); errors.As(err, &other) {
			if soon := began.Add(otherPatience); soon.Before(until) {
				until = soon
			}
		}
		left := time.Until(until)
		switch {
		case ctx.Err() != nil:
			return nil, gone(ctx)
		case left <= 0:
			d.log.Warn("no brain answers", "command", cmd.ID.Text("cmd"), "error", err)
			return nil, err
		}
		pause(ctx, min(wait, left))
		wait = min(2*wait, longestPause)
	}
}

// deadline is when asking again ends: a claim is worth asking while its own wait lasts.
func (d *Door) deadline(try *engine.Command, began time.Time) time.Time {
	until := began.Add(d.options.Patience)
	if try.Claim != nil {
		if wait := time.Now().Add(time.Duration(try.Claim.WaitMS) * time.Millisecond); wait.After(until) {
			return wait
		}
	}
	return until
}

// try is the command as it is asked now. A claim that is asked again has a new id, because taking the old one off its
// brain must not take off the new one, and waits for what is left of its wait.
func (d *Door) try(cmd *engine.Command, began time.Time, asked bool) *engine.Command {
	try := *cmd
	if asked && cmd.Claim == nil {
		try.Resent = true
	}
	if cmd.Claim != nil {
		claim := *cmd.Claim
		claim.WaitMS = max(claim.WaitMS-time.Since(began).Milliseconds(), 0)
		try.Claim = &claim
		if asked {
			try.ID = newID()
		}
	}
	return &try
}

// ask tries once: here when this replica decides, else where Role says. sent tells whether the brain may have got it.
// No try outlives until by more than a second.
func (d *Door) ask(ctx context.Context, cmd *engine.Command, until time.Time) (answer *engine.Answer, sent bool, err error) {
	limit := callLimit
	if cmd.Claim != nil {
		limit += time.Duration(cmd.Claim.WaitMS) * time.Millisecond
	}
	call, cancel := context.WithTimeout(ctx, min(limit, time.Until(until)+time.Second))
	defer cancel()
	brain, address := d.options.Role()
	if brain {
		answer, err = d.options.Local.Do(call, cmd)
		return answer, true, err
	}
	if address == "" {
		return nil, false, unavailable("no replica decides at the moment")
	}
	token, err := d.options.Token(call)
	if err != nil {
		return nil, false, models.Errorf(models.Internal, "no token for the brain: %w", err)
	}
	answer, err = d.post(call, address, token, cmd)
	return answer, true, err
}

func undeliverable(a *engine.Answer) bool {
	return a != nil && a.Claimed != nil && len(a.Claimed.Leases) > 0
}

// giveBack returns leases whose claimer has gone.
func (d *Door) giveBack(claim *engine.Command, a *engine.Answer) {
	back := &engine.Return{}
	for i := range a.Claimed.Leases {
		back.Tokens = append(back.Tokens, a.Claimed.Leases[i].Row.Token)
	}
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	cmd := &engine.Command{ID: newID(), Tenant: claim.Tenant, Actor: claim.Actor, Return: back}
	if _, _, err := d.ask(ctx, cmd, time.Now().Add(callLimit)); err != nil {
		d.log.Warn("leases of a claimer that has gone could not be returned; its next heartbeats will", "leases", len(back.Tokens), "error", err)
	}
}

func unavailable(format string, args ...any) *models.Error {
	err := models.Errorf(models.Unavailable, format, args...)
	err.RetryAfterSeconds = 1
	return err
}

func gone(ctx context.Context) error {
	return unavailable("the answer did not come in time: %w", context.Cause(ctx))
}

func newID() models.ID {
	var entropy [10]byte
	_, _ = rand.Read(entropy[:]) // never fails
	return models.NewID(models.InstantOf(time.Now()), entropy)
}
