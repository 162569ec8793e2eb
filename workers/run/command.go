package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"nightshift/workers"
	"nightshift/workers/protocol"
)

// commandIn runs a program of the worker's list. There is no shell in between.
type commandIn struct {
	Command string   `json:"command"`
	Args    []string `json:"args"`
	Stdin   string   `json:"stdin"`
}

type commandOut struct {
	ExitCode int     `json:"exit_code"`
	Stdout   string  `json:"stdout"`
	Stderr   string  `json:"stderr"`
	Cut      bool    `json:"cut"` // the middle of what it printed was left out
	Seconds  float64 `json:"seconds"`
}

// allowed finds the programs of the list once, at start, so that a changed
// PATH changes nothing later.
func allowed(names []string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			return nil, fmt.Errorf("allowed command %q: %w", name, err)
		}
		if path, err = filepath.Abs(path); err != nil {
			return nil, err
		}
		out[name] = path
	}
	return out, nil
}

func (s *station) command(ctx context.Context, t *workers.Task, in commandIn) (commandOut, error) {
	path := s.commands[in.Command]
	if path == "" {
		return commandOut{}, workers.Errorf(protocol.ClassPermissionDenied, "command %q is not on this worker's list", in.Command)
	}
	var stdout, stderr ends
	c := exec.CommandContext(ctx, path, in.Args...)
	c.Stdin = strings.NewReader(in.Stdin)
	c.Stdout, c.Stderr = &stdout, &stderr
	c.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "NIGHTSHIFT_TASK_ID=" + t.TaskID, "IDEMPOTENCY_KEY=" + t.IdempotencyKey}
	for name, value := range t.Secrets {
		c.Env = append(c.Env, name+"="+value)
	}
	// The whole group ends, or a child of the command would outlive its task.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 5 * time.Second
	begun := time.Now()
	err := c.Run()
	if c.Process != nil && ctx.Err() != nil {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL) // what ignored the SIGTERM; gone is fine
	}
	out := commandOut{
		Stdout: stdout.String(), Stderr: stderr.String(), Cut: stdout.cut || stderr.cut, Seconds: time.Since(begun).Seconds(),
	}
	used(t, c)
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return commandOut{}, ctx.Err()
	case err == nil:
		return out, nil
	case errors.As(err, &exit):
		out.ExitCode = exit.ExitCode()
		failure := workers.Errorf(protocol.ClassInternal, "%s ended with %s", in.Command, exit.ProcessState)
		if evidence, bad := json.Marshal(out); bad == nil {
			failure.ProviderResponse = evidence
		}
		return commandOut{}, failure
	default:
		return commandOut{}, workers.Errorf(protocol.ClassInternal, "%s: %w", in.Command, err)
	}
}

// used books what the command itself consumed.
func used(t *workers.Task, c *exec.Cmd) {
	if c.ProcessState == nil {
		return
	}
	cpu := (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	t.Usage(func(u *protocol.Usage) { u.CPUSeconds = &cpu })
}

// keptEnd is what is kept of the beginning and of the end of an output.
const keptEnd = 64 << 10

// ends keeps the beginning and the end of what is written to it.
type ends struct {
	head, tail bytes.Buffer
	cut        bool
}

func (e *ends) Write(p []byte) (int, error) {
	n := len(p)
	if room := keptEnd - e.head.Len(); room > 0 {
		part := p[:min(room, len(p))]
		e.head.Write(part)
		p = p[len(part):]
	}
	e.tail.Write(p)
	if over := e.tail.Len() - keptEnd; over > 0 {
		e.tail.Next(over)
		e.cut = true
	}
	return n, nil
}

func (e *ends) String() string {
	text := e.head.String()
	if e.cut {
		text += "\n…\n"
	}
	return strings.ToValidUTF8(strings.ReplaceAll(text+e.tail.String(), "\x00", ""), "\uFFFD")
}
