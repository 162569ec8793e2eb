package forward

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Path is where a replica takes commands of the others.
const Path = "/internal/commands"

// reply is what comes back: one of the two.
type reply struct {
	Answer *engine.Answer `json:"answer,omitempty"`
	Error  *models.Error  `json:"error,omitempty"`
	Other  bool           `json:"other_protocol,omitempty"` // why it is refused
}

// NewClient makes a client for talking to other replicas, trusting what trust says; nil means the system's roots.
func NewClient(trust *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         (&net.Dialer{Timeout: time.Second, KeepAlive: 5 * time.Second}).DialContext,
		TLSClientConfig:     trust,
		TLSHandshakeTimeout: 2 * time.Second,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     30 * time.Second,
	}}
}

// encode writes JSON as it is: payloads keep their <, > and &.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return out.Bytes(), err
}

// post sends a command to the replica at address. Whatever keeps the answer from coming is Unavailable.
func (d *Door) post(ctx context.Context, address, token string, cmd *engine.Command) (*engine.Answer, error) {
	body, err := encode(cmd)
	if err != nil {
		return nil, models.Errorf(models.ValidationFailed, "this can't be sent to the brain: %w", err)
	}
	got, err := d.exchange(ctx, address+Path, token, body)
	if err != nil {
		return nil, err
	}
	var r reply
	if err := json.Unmarshal(got, &r); err != nil {
		return nil, unavailable("the brain's answer can't be read: %w", err)
	}
	switch {
	case r.Other && r.Error != nil:
		return nil, &protocolError{r.Error}
	case r.Error != nil:
		return nil, r.Error
	case r.Answer == nil:
		return nil, unavailable("the brain answered nothing")
	}
	whole(r.Answer)
	return r.Answer, nil
}

// exchange posts a body and reads the answer. A status that no replica's Handler gives is Unavailable too: something
// between the replicas gave it.
func (d *Door) exchange(ctx context.Context, url, token string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, models.Errorf(models.Internal, "the brain's address: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set(protocolHeader, d.protocol)
	response, err := d.options.Client.Do(request)
	if err != nil {
		return nil, unavailable("the brain does not answer: %w", err)
	}
	defer response.Body.Close()
	got, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, unavailable("the brain's answer broke off: %w", err)
	}
	switch response.StatusCode {
	case http.StatusOK, http.StatusUnprocessableEntity, http.StatusServiceUnavailable:
		return got, nil
	case http.StatusUnauthorized:
		return nil, models.Errorf(models.Internal, "the brain does not accept this replica's token")
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return nil, models.Errorf(models.Internal, "the brain can't read this replica's command: status %d", response.StatusCode)
	}
	return nil, unavailable("the brain answered with status %d", response.StatusCode)
}

// Sender is the replica that asks, by the headers of its request.
type Sender struct{ Token, Protocol string }

// SenderOf reads the headers.
func SenderOf(header func(name string) string) Sender {
	return Sender{strings.TrimPrefix(header("Authorization"), "Bearer "), header(protocolHeader)}
}

// Handler takes commands of other replicas to this replica's loop. It is mounted at Path: body and sender in, status and
// JSON out. ctx must end when the caller leaves, so that parked claims are taken off. A sender of another protocol is
// refused: what it does not know of would be lost from what it sends, and what it sends might be taken for less.
func Handler(door engine.Door, verify func(token string) error) func(ctx context.Context, body []byte, from Sender) (int, []byte) {
	own := Protocol()
	return func(ctx context.Context, body []byte, from Sender) (int, []byte) {
		if err := verify(from.Token); err != nil {
			return answered(nil, models.Errorf(models.Unauthenticated, "this needs a token for the brain"))
		}
		if from.Protocol != own {
			return answered(nil, otherProtocol(from.Protocol, own))
		}
		var cmd engine.Command
		if err := json.Unmarshal(body, &cmd); err != nil {
			return answered(nil, models.Errorf(models.InvalidJSON, "the command can't be read: %w", err))
		}
		exact(&cmd)
		if cmd.Claim != nil { // it may be parked for long
			var stop func()
			ctx, stop = handlers.UntilDrain(ctx)
			defer stop()
		}
		return answered(door.Do(ctx, &cmd))
	}
}

func answered(answer *engine.Answer, err error) (int, []byte) {
	r, status := reply{Answer: answer}, http.StatusOK
	if err != nil {
		var other *protocolError
		r = reply{Error: wireError(err), Other: errors.As(err, &other)}
		switch r.Error.Code {
		case models.Unauthenticated:
			status = http.StatusUnauthorized
		case models.InvalidJSON:
			status = http.StatusBadRequest
		case models.Unavailable, models.Overloaded:
			status = http.StatusServiceUnavailable
		default:
			status = http.StatusUnprocessableEntity
		}
	}
	out, err := encode(r)
	if err != nil {
		return answered(nil, models.Errorf(models.Internal, "the answer can't be sent: %w", err))
	}
	return status, out
}

func wireError(err error) *models.Error {
	var e *models.Error
	if errors.As(err, &e) {
		return e
	}
	return models.Errorf(models.Internal, "%w", err)
}

// exact undoes what JSON does to absent raw values: they come back as the word null.
func exact(cmd *engine.Command) {
	if s := cmd.Submit; s != nil {
		for i := range s.Tasks {
			absent(&s.Tasks[i].Input)
		}
		if s.Workflow != nil {
			absent(&s.Workflow.Input)
		}
	}
	if f := cmd.Flip; f != nil && f.Workflow != nil {
		absent(&f.Workflow.Input)
	}
	if r := cmd.Register; r != nil {
		absent(&r.Worker.Utilization)
	}
}

// whole does the same for an answer.
func whole(a *engine.Answer) {
	if a.Worker != nil {
		absent(&a.Worker.Utilization)
	}
	if a.Workflow != nil {
		absent(&a.Workflow.Input)
	}
	if a.Submitted != nil && a.Submitted.Workflow != nil {
		absent(&a.Submitted.Workflow.Input)
	}
}

func absent(raw *json.RawMessage) {
	if string(*raw) == "null" {
		*raw = nil
	}
}
