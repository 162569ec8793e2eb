package run

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

// requestIn is one HTTP request. A body that is a JSON string is sent as it
// is, any other JSON value as JSON.
type requestIn struct {
	Method    string            `json:"method"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Body      json.RawMessage   `json:"body"`
	Expect    []int             `json:"expect"`    // statuses that are a success, default 200–299
	Redirects *int              `json:"redirects"` // followed at most, default 3
	MaxBytes  int64             `json:"max_bytes"` // of the answer kept, default 64 kB
}

type requestOut struct {
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Base64    bool              `json:"base64"`
	Bytes     int64             `json:"bytes"`
	Truncated bool              `json:"truncated"`
}

const (
	keptByDefault = 64 << 10
	keptAtMost    = 512 << 10
)

func (s *station) request(ctx context.Context, t *workers.Task, in requestIn) (requestOut, error) {
	request, err := in.build(ctx, t)
	if err != nil {
		return requestOut{}, err
	}
	redirects := 3
	if in.Redirects != nil {
		redirects = min(max(*in.Redirects, 0), 10)
	}
	response, err := s.egress.client(redirects).Do(request)
	if err != nil {
		return requestOut{}, unanswered(ctx, err)
	}
	defer response.Body.Close()
	out, err := in.read(response)
	if err != nil {
		return requestOut{}, unanswered(ctx, err)
	}
	if in.succeeded(out.Status) {
		return out, nil
	}
	return requestOut{}, refused(response, out.Body)
}

func (in requestIn) build(ctx context.Context, t *workers.Task) (*http.Request, error) {
	target, err := url.Parse(in.URL)
	if err != nil || target.Host == "" || target.Scheme != "http" && target.Scheme != "https" {
		return nil, workers.Errorf(protocol.ClassInvalidInput, "url %q is no http or https address", in.URL)
	}
	method := strings.ToUpper(in.Method)
	if method == "" {
		method = http.MethodGet
	}
	var text string
	isJSON := len(in.Body) > 0 && json.Unmarshal(in.Body, &text) != nil
	if isJSON {
		text = string(in.Body)
	}
	request, err := http.NewRequestWithContext(ctx, method, target.String(), strings.NewReader(text))
	if err != nil {
		return nil, workers.Errorf(protocol.ClassInvalidInput, "%w", err)
	}
	if isJSON {
		request.Header.Set("Content-Type", "application/json")
	}
	// Executed twice, the receiver can tell that it is the same request.
	if method != http.MethodGet && method != http.MethodHead && t.IdempotencyKey != "" {
		request.Header.Set("Idempotency-Key", t.IdempotencyKey)
	}
	if t.Traceparent != nil {
		request.Header.Set("Traceparent", *t.Traceparent)
	}
	for name, value := range in.Headers {
		request.Header.Set(name, secretsIn(value, t.Secrets))
	}
	return request, nil
}

// secretsIn replaces ${NAME} by the task's secret of that name.
func secretsIn(value string, secrets map[string]string) string {
	for name, secret := range secrets {
		value = strings.ReplaceAll(value, "${"+name+"}", secret)
	}
	return value
}

func (in requestIn) read(response *http.Response) (requestOut, error) {
	most := in.MaxBytes
	if most <= 0 {
		most = keptByDefault
	}
	most = min(most, keptAtMost)
	body, err := io.ReadAll(io.LimitReader(response.Body, most+1))
	if err != nil {
		return requestOut{}, err
	}
	out := requestOut{Status: response.StatusCode, Headers: map[string]string{}, Bytes: int64(len(body))}
	if out.Truncated = out.Bytes > most; out.Truncated {
		body = body[:most]
	}
	for name := range response.Header {
		out.Headers[strings.ToLower(name)] = response.Header.Get(name)
	}
	if out.Base64 = !utf8.Valid(body); out.Base64 {
		out.Body = base64.StdEncoding.EncodeToString(body)
	} else {
		out.Body = string(body)
	}
	return out, nil
}

func (in requestIn) succeeded(status int) bool {
	for _, want := range in.Expect {
		if status == want {
			return true
		}
	}
	return len(in.Expect) == 0 && status >= 200 && status <= 299
}

// unanswered gives a request without an answer its class.
func unanswered(ctx context.Context, err error) error {
	var own *workers.Error
	if errors.As(err, &own) {
		return own
	}
	var network interface{ Timeout() bool }
	if ctx.Err() == nil && errors.As(err, &network) && network.Timeout() {
		return workers.Errorf(protocol.ClassTimeout, "%w", err)
	}
	if ctx.Err() != nil {
		return err
	}
	return workers.Errorf(protocol.ClassNetwork, "%w", err)
}

// refused gives an answer that is no success its class, with the evidence.
func refused(response *http.Response, body string) error {
	class := protocol.ClassInvalidInput
	switch status := response.StatusCode; {
	case status == http.StatusUnauthorized:
		class = protocol.ClassAuthentication
	case status == http.StatusForbidden:
		class = protocol.ClassPermissionDenied
	case status == http.StatusNotFound || status == http.StatusGone:
		class = protocol.ClassNotFound
	case status == http.StatusTooManyRequests:
		class = protocol.ClassRateLimited
	case status == http.StatusRequestTimeout || status == http.StatusGatewayTimeout:
		class = protocol.ClassTimeout
	case status == http.StatusServiceUnavailable:
		class = protocol.ClassOverloaded
	case status >= 500:
		class = protocol.ClassProviderOutage
	case status < 400:
		class = protocol.ClassMalformedOutput
	}
	err := workers.Errorf(class, "%s answered %s", response.Request.URL.Host, response.Status)
	evidence, failed := json.Marshal(map[string]any{"status": response.StatusCode, "body": cut(body, 4<<10)})
	if failed == nil {
		err.ProviderResponse = evidence
	}
	err.RetryAfter = retryAfter(response.Header.Get("Retry-After"))
	return err
}

// retryAfter reads seconds or a date.
func retryAfter(header string) time.Duration {
	if seconds, err := strconv.Atoi(header); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}
