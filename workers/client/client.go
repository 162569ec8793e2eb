package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"nightshift/workers/protocol"
)

// maxAnswer bounds what is read of one answer; a claim may carry 500 payloads.
const maxAnswer = 256 << 20

// Options says whom to call and as whom.
type Options struct {
	Server       string // https://host:port
	ClientID     string
	ClientSecret string
	CAFile       string // PEM certificates trusted beside the system's
	UserAgent    string
	// Headers go with every call, such as Nightshift-Tenant.
	Headers map[string]string
}

// Client is safe for use by many goroutines.
type Client struct {
	options Options
	base    *url.URL
	http    *http.Client

	mu      sync.Mutex // held while a token is fetched, so one call fetches for all
	token   string
	renewAt time.Time
}

// New checks the options; it does not call the server.
func New(o Options) (*Client, error) {
	base, err := url.Parse(strings.TrimRight(o.Server, "/"))
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") {
		return nil, fmt.Errorf("server %q is not an address such as https://host:8080", o.Server)
	}
	if o.ClientID == "" || o.ClientSecret == "" {
		return nil, errors.New("client id and client secret are needed")
	}
	// A link that has gone dead without a word is noticed within ten seconds.
	dialer := &net.Dialer{
		Timeout:         5 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 4 * time.Second, Interval: 2 * time.Second, Count: 3},
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: 5 * time.Second,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     60 * time.Second,
	}
	if o.CAFile != "" {
		pool, err := certificates(o.CAFile)
		if err != nil {
			return nil, err
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	return &Client{options: o, base: base, http: &http.Client{Transport: transport}}, nil
}

func certificates(path string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("ca file: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("ca file %s holds no PEM certificate", path)
	}
	return pool, nil
}

// Call is one request. In, when set, is sent as JSON; Out, when set, receives
// the answer. Path begins with a slash and may carry a query.
type Call struct {
	Method  string
	Path    string
	Headers map[string]string
	In      any
	Out     any
	Timeout time.Duration // 0 = 30 s
}

// Do makes the call with a valid token and answers the status. A token the
// server refuses is fetched anew, once.
func (c *Client) Do(ctx context.Context, call Call) (int, error) {
	var body []byte
	if call.In != nil {
		var err error
		if body, err = json.Marshal(call.In); err != nil {
			return 0, fmt.Errorf("%s %s: %w", call.Method, call.Path, err)
		}
	}
	if call.Timeout <= 0 {
		call.Timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, call.Timeout)
	defer cancel()
	for again := true; ; again = false {
		token, err := c.bearer(ctx)
		if err != nil {
			return 0, err
		}
		status, err := c.send(ctx, call, body, token)
		if again && status == http.StatusUnauthorized {
			c.forget(token)
			continue
		}
		return status, err
	}
}

func (c *Client) send(ctx context.Context, call Call, body []byte, token string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, call.Method, c.base.String()+call.Path, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	if call.In != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Accept", "application/json")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
		for name, value := range c.options.Headers {
			request.Header.Set(name, value)
		}
	}
	if c.options.UserAgent != "" {
		request.Header.Set("User-Agent", c.options.UserAgent)
	}
	for name, value := range call.Headers {
		request.Header.Set(name, value)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return 0, &Unreachable{Cause: err}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return 0, &Unreachable{Cause: err}
	}
	if response.StatusCode >= 400 {
		return response.StatusCode, refusal(response, answer)
	}
	if call.Out != nil && len(answer) > 0 {
		if err := json.Unmarshal(answer, call.Out); err != nil {
			return response.StatusCode, fmt.Errorf("%s %s answered what is not understood: %w", call.Method, call.Path, err)
		}
	}
	return response.StatusCode, nil
}

// bearer answers a token with life left in it: it is renewed when a fifth of
// its life remains, long before a slow call could outlive it.
func (c *Client) bearer(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token != "" && time.Now().Before(c.renewAt) {
		return c.token, nil
	}
	var answer protocol.TokenAnswer
	in := protocol.TokenRequest{
		GrantType: "client_credentials", ClientID: c.options.ClientID, ClientSecret: c.options.ClientSecret,
	}
	body, err := json.Marshal(in)
	if err != nil {
		return "", err
	}
	call := Call{Method: http.MethodPost, Path: "/v1/auth/token", In: in, Out: &answer}
	if _, err := c.send(ctx, call, body, ""); err != nil {
		return "", err
	}
	if answer.AccessToken == "" {
		return "", errors.New("the server answered without an access token")
	}
	life := time.Duration(answer.ExpiresIn) * time.Second
	c.token, c.renewAt = answer.AccessToken, time.Now().Add(life*4/5)
	return c.token, nil
}

// forget drops a token that was refused, unless another call renewed it.
func (c *Client) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.token = ""
	}
}
