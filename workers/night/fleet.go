package night

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// FleetOptions says what the night's workers are started with.
type FleetOptions struct {
	Executable string // the nightshift binary; "" = this one
	Server     string
	CAFile     string
	TokenFile  string // client_id:client_secret of a key with workers:register
	DataDir    string
	Docs       string // as in Options
	Logger     *slog.Logger
}

// member is one worker of the fleet: what makes it unlike the others.
type member struct {
	name string
	args []string
}

// members are four workers with different capabilities. The summarizers share
// a pool that does nothing else, so what each tenant gets of it can be read.
func members() []member {
	return []member{
		{"reader", []string{"--types=document.*,index.*,cache.*,eval.*,report.*", "--pool=library", "--slots=2", "--cpu=2", "--memory-mb=4096", "--labels=disk=fast"}},
		{"embedder", []string{"--types=text.embed", "--slots=1", "--cpu=1", "--memory-mb=2048", "--gpus=8192", "--models=hashing-tfidf"}},
		{"summarizer-a", []string{"--types=text.summarize", "--pool=" + sharedPool, "--slots=1", "--cpu=1", "--memory-mb=1024", "--labels=zone=a"}},
		{"summarizer-b", []string{"--types=text.summarize", "--pool=" + sharedPool, "--slots=1", "--cpu=1", "--memory-mb=1024", "--labels=zone=b"}},
	}
}

// Fleet is the night's workers: processes of their own, that outlive this one
// when it dies and are found again by their files.
type Fleet struct {
	options FleetOptions
	folder  string
	build   string // of the executable and the key

	mu       sync.Mutex
	living   map[string]process
	stopping bool
	Adopted  int // found alive at the start
	Started  int
}

// StartFleet adopts the members that still live and starts the others. One
// that lives but was started otherwise (another server, another build) is
// ended and replaced.
func StartFleet(ctx context.Context, o FleetOptions) (*Fleet, error) {
	if o.Executable == "" {
		own, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Executable = own
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	data, err := filepath.Abs(o.DataDir)
	if err != nil {
		return nil, err
	}
	o.DataDir = data
	f := &Fleet{options: o, folder: filepath.Join(data, "fleet"), living: map[string]process{}}
	if err := os.MkdirAll(f.folder, 0o755); err != nil {
		return nil, err
	}
	// Whose key it is counts as much as which build: an older key may be revoked.
	for _, path := range []string{o.Executable, o.TokenFile} {
		sum, err := sumOf(path)
		if err != nil {
			return nil, err
		}
		f.build += sum
	}
	for _, m := range members() {
		if err := f.ensure(ctx, m); err != nil {
			return nil, errors.Join(fmt.Errorf("worker %s: %w", m.name, err), f.Stop(context.WithoutCancel(ctx)))
		}
	}
	return f, nil
}

// process is one running member, as its file says. Began tells it from another
// process that was given the same number later.
type process struct {
	PID   int      `json:"pid"`
	Began string   `json:"began"`
	Build string   `json:"build"`
	Args  []string `json:"args"`
}

func (f *Fleet) file(name string) string { return filepath.Join(f.folder, name+".json") }

func (f *Fleet) ensure(ctx context.Context, m member) error {
	args, err := f.args(m)
	if err != nil {
		return err
	}
	var p process
	raw, err := os.ReadFile(f.file(m.name))
	if err == nil && json.Unmarshal(raw, &p) == nil && p.alive() {
		if slices.Equal(p.Args, args) && p.Build == f.build {
			f.mu.Lock()
			f.living[m.name] = p
			f.Adopted++
			f.mu.Unlock()
			f.options.Logger.Info("worker adopted", "worker", m.name, "pid", p.PID)
			return nil
		}
		f.options.Logger.Info("worker of another make is replaced", "worker", m.name, "pid", p.PID)
		p.end(ctx)
	}
	return f.start(m.name, args)
}

func (f *Fleet) args(m member) ([]string, error) {
	o := f.options
	roots, err := Roots(o.Docs)
	if err != nil {
		return nil, err
	}
	args := []string{
		"worker", "--server=" + o.Server, "--token-file=" + o.TokenFile, "--name=" + m.name, "--folder=" + o.DataDir,
		"--lease-seconds=15", "--documents=" + strings.Join(append(roots, filepath.Join(o.DataDir, "nights")), ","),
	}
	if o.CAFile != "" {
		args = append(args, "--ca-file="+o.CAFile)
	}
	return append(args, m.args...), nil
}

// start runs a member in a session of its own: neither a Ctrl-C at the
// terminal nor the end of this process reaches it.
func (f *Fleet) start(name string, args []string) error {
	output, err := os.OpenFile(filepath.Join(f.folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer output.Close()
	c := exec.Command(f.options.Executable, args...)
	c.Stdout, c.Stderr, c.Env = output, output, environment()
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	go func() { _ = c.Wait() }() // reaps it; how it ended is in its log
	p := process{PID: c.Process.Pid, Began: began(c.Process.Pid), Build: f.build, Args: args}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.living[name] = p
	f.Started++
	f.mu.Unlock()
	return keep(f.file(name), raw)
}

// environment keeps the server's secrets from the workers.
func environment() []string {
	var kept []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		private := strings.HasPrefix(name, "NIGHTSHIFT_") || strings.HasPrefix(name, "DATABASE_")
		if !private || name == "NIGHTSHIFT_EGRESS_ALLOW" {
			kept = append(kept, pair)
		}
	}
	return kept
}

// Keep starts a member again that has died, until ctx ends; a member that dies
// at once is given ever more time.
func (f *Fleet) Keep(ctx context.Context) {
	deaths := map[string]int{}
	for tick := 1; ; tick++ {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
		for _, m := range members() {
			f.mu.Lock()
			p, stopping := f.living[m.name], f.stopping
			f.mu.Unlock()
			if stopping || p.alive() || tick%(1<<min(deaths[m.name], 5)) != 0 {
				continue
			}
			deaths[m.name]++
			f.options.Logger.Warn("worker has died and is started again", "worker", m.name, "log", filepath.Join(f.folder, m.name+".log"))
			if err := f.ensure(ctx, m); err != nil {
				f.options.Logger.Error("worker can't be started", "worker", m.name, "error", err)
			}
		}
	}
}

// PIDs answers the living members' process ids by name.
func (f *Fleet) PIDs() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for name, p := range f.living {
		out[name] = p.PID
	}
	return out
}

// Stop lets every member finish what it does and end.
func (f *Fleet) Stop(ctx context.Context) error {
	f.mu.Lock()
	f.stopping = true
	living := f.living
	f.living = map[string]process{}
	f.mu.Unlock()
	var ends sync.WaitGroup
	for name, p := range living {
		ends.Go(func() {
			p.end(ctx)
			_ = os.Remove(f.file(name)) // a file left over names a dead process, which is seen
		})
	}
	ends.Wait()
	return nil
}

// end asks a process to drain and takes it away when it does not.
func (p process) end(ctx context.Context) {
	patience := 25 * time.Second
	if p.alive() {
		_ = syscall.Kill(p.PID, syscall.SIGTERM) // gone in between is what is wanted
	}
	for until := time.Now().Add(patience); p.alive() && time.Now().Before(until) && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond)
	}
	if p.alive() {
		_ = syscall.Kill(p.PID, syscall.SIGKILL)
	}
}

// alive says whether that very process still runs.
func (p process) alive() bool {
	return p.PID > 0 && p.Began != "" && began(p.PID) == p.Began
}

// began tells when a process was started, in whatever form the system has; ""
// when there is none, or only its remains.
func began(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err == nil {
		// The name in parentheses may hold anything; the rest is counted from its end.
		rest := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))
		if len(rest) < 20 || rest[0] == "Z" || rest[0] == "X" {
			return ""
		}
		boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // without it the ticks alone must do
		return strings.TrimSpace(string(boot)) + "-" + rest[19]
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return ""
	}
	out, err := exec.Command("ps", "-o", "lstart=", "-p", fmt.Sprint(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// sumOf fingerprints the executable, so that a worker of an older build is not
// taken for one of this.
func sumOf(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)[:12]), nil
}
