package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"nightshift/workers/protocol"
)

// Refusal is an answer of 400 and above.
type Refusal struct {
	protocol.Problem
	RetryAfter time.Duration // what the server asked for, 0 when it did not
}

func (r *Refusal) Error() string { return r.Problem.Error() }

// Unreachable says that no answer came; whether the server acted is unknown.
type Unreachable struct{ Cause error }

func (u *Unreachable) Error() string { return "no answer from the server: " + u.Cause.Error() }
func (u *Unreachable) Unwrap() error { return u.Cause }

func refusal(response *http.Response, body []byte) *Refusal {
	r := &Refusal{}
	// A proxy in between may answer with a page instead of a problem.
	if err := json.Unmarshal(body, &r.Problem); err != nil || r.Code == "" {
		r.Problem = protocol.Problem{Code: "http_" + strconv.Itoa(response.StatusCode), Detail: response.Status}
	}
	r.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		r.RetryAfter = time.Duration(seconds) * time.Second
	}
	return r
}

// Code is the problem's code, or "" for an error that is no refusal.
func Code(err error) string {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Code
	}
	return ""
}

// Status is the refusal's HTTP status, or 0.
func Status(err error) int {
	var r *Refusal
	if errors.As(err, &r) {
		return r.Status
	}
	return 0
}

// Temporary says whether the same call may go through later: the server was
// not reached, is changing its brain, or asked to come back.
func Temporary(err error) bool {
	var u *Unreachable
	if errors.As(err, &u) {
		return !errors.Is(err, context.Canceled)
	}
	status := Status(err)
	return status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout ||
		Code(err) == "idempotency_in_progress"
}

// Backoff is the wait before try n (from 0) after err: exponential with
// jitter between a tenth of a second and most, never less than the server
// asked for.
func Backoff(n int, most time.Duration, err error) time.Duration {
	wait := most
	if n < 16 {
		wait = min(most, 100*time.Millisecond<<n)
	}
	wait = wait/2 + rand.N(wait/2+1)
	var r *Refusal
	if errors.As(err, &r) && r.RetryAfter > wait {
		wait = r.RetryAfter + rand.N(100*time.Millisecond)
	}
	return wait
}

// Sleep waits, or answers the context's error when that ends first.
func Sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// Persist repeats a call while its failure is temporary, until it answers, is
// refused for good, or the context ends. The call must be safe to repeat.
func (c *Client) Persist(ctx context.Context, call Call) (int, error) {
	for n := 0; ; n++ {
		status, err := c.Do(ctx, call)
		if err == nil || !Temporary(err) {
			return status, err
		}
		if stop := Sleep(ctx, Backoff(n, 5*time.Second, err)); stop != nil {
			return status, fmt.Errorf("%w (last: %w)", stop, err)
		}
	}
}
