package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// server is the binary, serving on a port of its own.
type server struct {
	url    string
	cmd    *exec.Cmd
	ended  chan error
	output *bytes.Buffer
	http   *http.Client
}

const secret = "bench-secret-bench-secret-bench-secret-0123"

func startServer(ctx context.Context, folder, dsn string) (*server, error) {
	binary := filepath.Join(folder, "nightshift")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "nightshift").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building the binary: %w\n%s", err, out)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	_ = listener.Close() // the server takes it next
	s := &server{
		url: "http://" + address, cmd: exec.Command(binary, "serve"), ended: make(chan error, 1), output: &bytes.Buffer{},
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: time.Minute},
	}
	s.cmd.Env = append(os.Environ(), "DATABASE_URL="+dsn, "NIGHTSHIFT_LISTEN="+address, "NIGHTSHIFT_DATA="+folder,
		"NIGHTSHIFT_SECRET_KEY=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "NIGHTSHIFT_LOG_LEVEL=warn",
		"NIGHTSHIFT_BOOTSTRAP_CLIENT_ID=bench", "NIGHTSHIFT_BOOTSTRAP_CLIENT_SECRET="+secret)
	s.cmd.Stdout, s.cmd.Stderr = s.output, s.output
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.cmd.Wait() }()
	return s, s.ready(ctx)
}

func (s *server) ready(ctx context.Context) error {
	for until := time.Now().Add(30 * time.Second); time.Now().Before(until); {
		response, err := s.http.Get(s.url + "/readyz")
		if err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-s.ended:
			return fmt.Errorf("the server ended: %w\n%s", err, s.output)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("the server was not ready within 30 s")
}

func (s *server) stop() {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.ended:
	case <-time.After(15 * time.Second):
		_ = s.cmd.Process.Kill()
	}
}

// caller is one party with its token.
type caller struct {
	*server
	header http.Header
}

func (s *server) caller(ctx context.Context, tenant string) (*caller, error) {
	c := &caller{server: s, header: http.Header{"Content-Type": {"application/json"}}}
	var token struct {
		AccessToken string `json:"access_token"`
	}
	credentials := map[string]string{"grant_type": "client_credentials", "client_id": "bench", "client_secret": secret}
	if err := c.call(ctx, "POST", "/v1/auth/token", credentials, &token); err != nil {
		return nil, err
	}
	c.header.Set("Authorization", "Bearer "+token.AccessToken)
	if tenant != "" {
		c.header.Set("Nightshift-Tenant", tenant)
	}
	return c, nil
}

// call sends JSON and reads JSON; out may be nil.
func (c *caller) call(ctx context.Context, method, path string, in, out any) error {
	body, ok := in.([]byte)
	if !ok {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return err
		}
	}
	answer, err := c.send(ctx, method, path, body)
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// send makes the call and answers the body as it came.
func (c *caller) send(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header = c.header
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	var answer bytes.Buffer
	answer.Grow(max(0, int(response.ContentLength)) + bytes.MinRead)
	if _, err := answer.ReadFrom(response.Body); err != nil {
		return nil, err
	}
	if response.StatusCode >= 300 {
		return nil, fmt.Errorf("%s %s: %d %s", method, path, response.StatusCode, answer.Bytes())
	}
	return answer.Bytes(), nil
}
