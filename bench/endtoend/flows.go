package endtoend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// FlowFigures are what large workflows cost.
type FlowFigures struct {
	Submit, Run, Cancel   time.Duration
	First, Last           time.Duration // what reports of a thousand took, the mean of the first ten and of the last ten
	Before, Peak          int64         // resident memory of the server in MB, idle and at most
	Joined                int64         // how often the last task of the fan-in ran
	FanIn                 time.Duration
	reports               []time.Duration // a thousand completions each
	tasks, width, gathers int
}

// Shapes of the workflows measured: layers of so many tasks, and so many tasks that end in one.
const (
	flowTasks   = 100_000
	layerWidth  = 1_000
	fanTasks    = 50_000
	fanEach     = 1_000 // what one task may wait for
	connections = 64
	oneReport   = 250 // completions a call
)

// MeasureFlows runs the binary and lets it work off workflows of 100,000 tasks.
func MeasureFlows(ctx context.Context, o Options, out io.Writer) (*FlowFigures, error) {
	if err := os.MkdirAll(filepath.Join(o.Folder, "data"), 0o755); err != nil {
		return nil, err
	}
	s, err := startServer(ctx, o.Folder, o.DSN)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	platform, err := s.caller(ctx, "")
	if err != nil {
		return nil, err
	}
	if err := platform.call(ctx, "POST", "/v1/tenants", map[string]any{"slug": "flows", "name": "Flows", "weight": 1, "timezone": "UTC"}, nil); err != nil {
		return nil, err
	}
	tenant, err := s.caller(ctx, "flows")
	if err != nil {
		return nil, err
	}
	f := &FlowFigures{tasks: flowTasks, width: layerWidth}
	if err := f.layered(ctx, tenant, platform, 10*layerWidth, true); err != nil { // warms caches and plans
		return nil, err
	}
	f.Before = s.memory("VmRSS")
	for _, step := range []func() error{
		func() error { return f.layered(ctx, tenant, platform, flowTasks, false) },
		func() error { return f.fanIn(ctx, tenant, platform) },
		func() error { return f.cancel(ctx, tenant) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	f.Peak = s.memory("VmHWM")
	f.print(out)
	return f, nil
}

// memory is a figure of the server's process in MB; 0 where the system does not tell.
func (s *server) memory(name string) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			kb, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kb >> 10
		}
	}
	return 0
}

// layers is the body of a workflow of n tasks in layers, each task waiting for two of the layer before.
func layers(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"name":"layers","tasks":[`)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"key":"t%d","type":"bench.layer","payload":{"n":%d}`, i, i)
		if layer := i / layerWidth; layer > 0 {
			at := (layer - 1) * layerWidth
			fmt.Fprintf(&b, `,"depends_on":["t%d","t%d"]`, at+i%layerWidth, at+(i+1)%layerWidth)
		}
		b.WriteByte('}')
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

type flowAnswer struct {
	ID     string           `json:"id"`
	State  string           `json:"state"`
	Counts map[string]int64 `json:"counts"`
}

// layered submits layers and works them off on one connection, so that what a report takes is what it costs.
func (f *FlowFigures) layered(ctx context.Context, tenant, platform *caller, n int, warming bool) error {
	began := time.Now()
	var flow flowAnswer
	if err := tenant.call(ctx, "POST", "/v1/workflows?return=minimal", layers(n), &flow); err != nil {
		return err
	}
	submitted := time.Since(began)
	id, c, err := register(ctx, platform, "layers", layerWidth)
	if err != nil {
		return err
	}
	began = time.Now()
	var reports []time.Duration
	var this time.Duration
	for done, idle := 0, 0; done < n; {
		got, took, err := report(ctx, c, id, oneReport)
		if err != nil {
			return err
		}
		if idle++; got > 0 {
			idle = 0
		} else if idle > 60 {
			return fmt.Errorf("%d of %d tasks are done and nothing comes", done, n)
		}
		this += took
		if done += got; done/1000 > len(reports) {
			reports, this = append(reports, this), 0
		}
	}
	if err := ended(ctx, tenant, flow.ID, "succeeded"); err != nil {
		return err
	}
	if !warming {
		f.Submit, f.Run, f.reports = submitted, time.Since(began), reports
		n := len(reports) - 1 // the last thousand has nobody behind it: it would look too cheap
		f.First, f.Last = mean(reports[:10]), mean(reports[n-10:n])
	}
	return c.call(ctx, "DELETE", "/v1/workers/"+id, nil, nil)
}

// report claims up to most tasks and settles them in one call; it answers how many, and what the settling took.
func report(ctx context.Context, c *caller, id string, most int) (int, time.Duration, error) {
	var claimed struct {
		Tasks []struct {
			LeaseToken string `json:"lease_token"`
		} `json:"tasks"`
	}
	if err := c.call(ctx, "POST", "/v1/workers/"+id+"/claim", map[string]any{"max_tasks": most, "wait_seconds": 1}, &claimed); err != nil {
		return 0, 0, err
	}
	if len(claimed.Tasks) == 0 {
		return 0, 0, nil
	}
	results := make([]map[string]any, len(claimed.Tasks))
	for i, t := range claimed.Tasks {
		results[i] = map[string]any{"lease_token": t.LeaseToken, "status": "succeeded", "result": map[string]bool{"ok": true}}
	}
	began := time.Now()
	err := c.call(ctx, "POST", "/v1/workers/"+id+"/results", map[string]any{"results": results}, nil)
	return len(results), time.Since(began), err
}

// ended waits until a workflow stands in a state.
func ended(ctx context.Context, tenant *caller, id, state string) error {
	var flow flowAnswer
	for until := time.Now().Add(2 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if err := tenant.call(ctx, "GET", "/v1/workflows/"+id, nil, &flow); err != nil {
			return err
		}
		if flow.State == state {
			return nil
		}
	}
	return fmt.Errorf("the workflow is %s, not %s: %v", flow.State, state, flow.Counts)
}

// fan is the body of a workflow in which very many tasks end in one, through gatherers that wait for as many as one may.
func fan() []byte {
	var b bytes.Buffer
	b.WriteString(`{"name":"fan","tasks":[`)
	for i := range fanTasks {
		fmt.Fprintf(&b, `{"key":"t%d","type":"bench.fan"},`, i)
	}
	var last []string
	for g := range fanTasks / fanEach {
		keys := make([]string, fanEach)
		for i := range keys {
			keys[i] = fmt.Sprintf(`"t%d"`, g*fanEach+i)
		}
		fmt.Fprintf(&b, `{"key":"g%d","type":"bench.fan","depends_on":[%s]},`, g, strings.Join(keys, ","))
		last = append(last, fmt.Sprintf(`"g%d"`, g))
	}
	fmt.Fprintf(&b, `{"key":"join","type":"bench.join","depends_on":[%s]}]}`, strings.Join(last, ","))
	return b.Bytes()
}

// fanIn lets many connections complete what ends in one task, and counts how often that one runs.
func (f *FlowFigures) fanIn(ctx context.Context, tenant, platform *caller) error {
	var flow flowAnswer
	if err := tenant.call(ctx, "POST", "/v1/workflows?return=minimal", fan(), &flow); err != nil {
		return err
	}
	began := time.Now()
	var joined, done atomic.Int64
	total := int64(fanTasks + fanTasks/fanEach + 1)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wait sync.WaitGroup
	for i := range connections {
		id, c, err := register(ctx, platform, fmt.Sprintf("fan-%d", i), 100)
		if err != nil {
			return err
		}
		wait.Go(func() {
			for done.Load() < total && ctx.Err() == nil {
				got, join, err := fanWork(ctx, c, id)
				if err != nil {
					cancel(err)
					return
				}
				joined.Add(join)
				done.Add(got)
			}
			_ = c.call(ctx, "DELETE", "/v1/workers/"+id, nil, nil) // it is of no further use
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	f.FanIn, f.Joined, f.gathers = time.Since(began), joined.Load(), fanTasks/fanEach
	return ended(ctx, tenant, flow.ID, "succeeded")
}

func fanWork(ctx context.Context, c *caller, id string) (got, joined int64, err error) {
	var claimed struct {
		Tasks []struct {
			LeaseToken string `json:"lease_token"`
			Type       string `json:"type"`
		} `json:"tasks"`
	}
	if err := c.call(ctx, "POST", "/v1/workers/"+id+"/claim", map[string]any{"max_tasks": 50, "wait_seconds": 1}, &claimed); err != nil {
		return 0, 0, err
	}
	if len(claimed.Tasks) == 0 {
		return 0, 0, nil
	}
	results := make([]map[string]any, len(claimed.Tasks))
	for i, t := range claimed.Tasks {
		results[i] = map[string]any{"lease_token": t.LeaseToken, "status": "succeeded"}
		if t.Type == "bench.join" {
			joined++
		}
	}
	return int64(len(results)), joined, c.call(ctx, "POST", "/v1/workers/"+id+"/results", map[string]any{"results": results}, nil)
}

// cancel submits layers and takes them back.
func (f *FlowFigures) cancel(ctx context.Context, tenant *caller) error {
	var flow flowAnswer
	if err := tenant.call(ctx, "POST", "/v1/workflows?return=minimal", layers(flowTasks), &flow); err != nil {
		return err
	}
	began := time.Now()
	if err := tenant.call(ctx, "POST", "/v1/workflows/"+flow.ID+"/cancel", map[string]any{}, nil); err != nil {
		return err
	}
	err := ended(ctx, tenant, flow.ID, "cancelled")
	f.Cancel = time.Since(began)
	return err
}

// mostRatio is what the last thousand completions may take of the first; mostMemory what the server may take, in MB.
const (
	mostRatio  = 1.3
	mostMemory = 400
)

func (f *FlowFigures) print(out io.Writer) {
	fmt.Fprintf(out, "\nworkflows over HTTP\n")
	fmt.Fprintf(out, "  %d tasks in layers of %d: submitted in %s, worked off in %s\n", f.tasks, f.width, f.Submit.Round(time.Millisecond), f.Run.Round(time.Millisecond))
	fmt.Fprintf(out, "  reports of a thousand: of the first ten %s, of the last ten %s: %.2f   fails above %.1f\n", f.First.Round(time.Microsecond), f.Last.Round(time.Microsecond), f.ratio(), mostRatio)
	for i := 0; i+10 <= len(f.reports); i += 10 {
		fmt.Fprintf(out, "    thousands %3d to %3d: %s each\n", i+1, i+10, mean(f.reports[i:i+10]).Round(time.Microsecond))
	}
	fmt.Fprintf(out, "  %d tasks and %d gatherers from %d connections in %s; the join ran %d times\n", fanTasks, f.gathers, connections, f.FanIn.Round(time.Millisecond), f.Joined)
	fmt.Fprintf(out, "  %d tasks cancelled in %s\n", f.tasks, f.Cancel.Round(time.Millisecond))
	fmt.Fprintf(out, "  memory of the server: %d MB idle, %d MB at most   fails above %d\n", f.Before, f.Peak, mostMemory)
}

func mean(of []time.Duration) (m time.Duration) {
	for _, d := range of {
		m += d / time.Duration(len(of))
	}
	return m
}

func (f *FlowFigures) ratio() float64 { return f.Last.Seconds() / f.First.Seconds() }

// Verdict is an error where a bound is broken.
func (f *FlowFigures) Verdict() error {
	var errs []error
	if f.ratio() > mostRatio {
		errs = append(errs, fmt.Errorf("the last completions took %.2f of the first", f.ratio()))
	}
	if f.Joined != 1 {
		errs = append(errs, fmt.Errorf("the join ran %d times", f.Joined))
	}
	if f.Peak > mostMemory {
		errs = append(errs, fmt.Errorf("the server took %d MB", f.Peak))
	}
	return errors.Join(errs...)
}
