package endtoend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"nightshift/workers/protocol"
)

// Options say what to measure and against what.
type Options struct {
	DSN    string
	Folder string  // for the binary
	Raw    float64 // raw life cycles a second at batch 500, measured in this run
	Counts bool    // the raw limit was high enough
	Tasks  int     // a round; 0: 30,000
	Rounds int     // 0: 3
}

// Figures are what came out.
type Figures struct {
	PerSecond float64 // tasks submitted, claimed and settled in batches of 500
	Ratio     float64
	PickUp    [3]time.Duration // from the submit call to the parked worker's claim answered: p50, p90, p99
	Submit    [3]time.Duration
}

// Least is the share of the raw limit below which the bench fails; the goal is 0.60.
const Least = 0.40

const (
	batch      = 500
	submitters = 8
	workers    = 16
)

// Measure runs the binary and prints what it does.
func Measure(ctx context.Context, o Options, out io.Writer) (*Figures, error) {
	if o.Tasks == 0 {
		o.Tasks = 30_000
	}
	if o.Rounds == 0 {
		o.Rounds = 3
	}
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
	if err := platform.call(ctx, "POST", "/v1/tenants", map[string]any{"slug": "bench", "name": "Bench", "weight": 1, "timezone": "UTC"}, nil); err != nil {
		return nil, err
	}
	tenant, err := s.caller(ctx, "bench")
	if err != nil {
		return nil, err
	}
	f := &Figures{}
	var rates []float64
	for round := range o.Rounds + 1 {
		rate, err := throughput(ctx, tenant, platform, o.Tasks)
		if err != nil {
			return nil, err
		}
		if round > 0 { // the first warms caches and plans
			rates = append(rates, rate)
		}
	}
	slices.Sort(rates)
	f.PerSecond = rates[len(rates)/2]
	f.Ratio = f.PerSecond / o.Raw
	if f.PickUp, f.Submit, err = pickUp(ctx, tenant, platform, 300); err != nil {
		return nil, err
	}
	f.print(out, o)
	return f, nil
}

func (f *Figures) print(out io.Writer, o Options) {
	fmt.Fprintf(out, "\nend to end over HTTP, batches of %d\n", batch)
	fmt.Fprintf(out, "  %-46s %8.0f/s\n", "tasks submitted, claimed and settled", f.PerSecond)
	fmt.Fprintf(out, "  %-46s %8.2f   goal 0.60, fails below %.2f\n", "÷ raw limit of this run", f.Ratio, Least)
	fmt.Fprintf(out, "pick-up by a parked worker, idle, from the submit call\n  p50 %s  p90 %s  p99 %s   goal 2 / – / 6 ms\n", f.PickUp[0], f.PickUp[1], f.PickUp[2])
	fmt.Fprintf(out, "one submit, idle\n  p50 %s  p90 %s  p99 %s   goal 1.8 / – / 6 ms\n", f.Submit[0], f.Submit[1], f.Submit[2])
}

// Verdict is an error where the throughput is below what a release may have.
func (f *Figures) Verdict(o Options) error {
	if o.Counts && f.Ratio < Least {
		return fmt.Errorf("end to end runs at %.2f of the raw limit, below %.2f", f.Ratio, Least)
	}
	return nil
}

func taskBatch() []byte {
	task := map[string]any{"type": "bench.work", "payload": map[string]string{"text": strings.Repeat("lorem ipsum ", 40)}}
	tasks := make([]any, batch)
	for i := range tasks {
		tasks[i] = task
	}
	body, err := json.Marshal(map[string]any{"tasks": tasks})
	if err != nil {
		panic(err) // strings always encode
	}
	return body
}

// register makes a worker and answers its id and a caller that carries its session.
func register(ctx context.Context, platform *caller, name string, slots int) (string, *caller, error) {
	var made protocol.RegisterAnswer
	in := map[string]any{"name": name, "instance_id": fmt.Sprint(name, time.Now().UnixNano()), "version": "1", "slots": slots}
	if err := platform.call(ctx, "POST", "/v1/workers", in, &made); err != nil {
		return "", nil, err
	}
	c := &caller{server: platform.server, header: platform.header.Clone()}
	c.header.Set("Nightshift-Session", made.Session)
	return made.WorkerID, c, nil
}

// throughput lets clients submit and workers work until n tasks are done, and answers tasks a second: from the first
// submit to the answer that settled the last task, not to the end of the claims that found nothing more.
func throughput(ctx context.Context, tenant, platform *caller, n int) (float64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	claiming, enough := context.WithCancel(ctx)
	defer enough()
	body := taskBatch()
	var left, done atomic.Int64
	left.Store(int64(n))
	var wait sync.WaitGroup
	var took time.Duration
	began := time.Now()
	for range submitters {
		wait.Go(func() {
			for left.Add(-batch) >= 0 {
				if _, err := tenant.send(ctx, "POST", "/v1/tasks/batch", body); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	for i := range workers {
		id, c, err := register(ctx, platform, fmt.Sprintf("bench-%d", i), 2*batch)
		if err != nil {
			return 0, err
		}
		wait.Go(func() {
			for claiming.Err() == nil {
				got, err := work(claiming, ctx, c, id)
				if claiming.Err() != nil {
					break
				}
				if err != nil {
					cancel(err)
					return
				}
				if done.Add(int64(got)) == int64(n) {
					took = time.Since(began)
					enough()
				}
			}
			_ = c.call(ctx, "DELETE", "/v1/workers/"+id, nil, nil) // the next round has workers of its own
		})
	}
	wait.Wait()
	if err := context.Cause(ctx); err != nil {
		return 0, err
	}
	return float64(n) / took.Seconds(), nil
}

// work claims once and settles what it got. It reads tokens and writes results by hand: the machine's two cores are shared
// with the server, and what the client spends is not the server's.
func work(claiming, ctx context.Context, c *caller, id string) (int, error) {
	answer, err := c.send(claiming, "POST", "/v1/workers/"+id+"/claim", fmt.Appendf(nil, `{"max_tasks":%d,"wait_seconds":1}`, batch))
	if err != nil {
		return 0, err
	}
	results, n := []byte(`{"results":[`), 0
	for rest := answer; ; n++ {
		i := bytes.Index(rest, tokenField)
		if i < 0 {
			break
		}
		rest = rest[i+len(tokenField):]
		if n > 0 {
			results = append(results, ',')
		}
		results = append(results, `{"status":"succeeded","result":{"ok":true},"lease_token":"`...)
		results = append(results, rest[:bytes.IndexByte(rest, '"')+1]...)
		results = append(results, '}')
	}
	if n == 0 {
		return 0, nil
	}
	_, err = c.send(ctx, "POST", "/v1/workers/"+id+"/results", append(results, `]}`...))
	return n, err
}

var tokenField = []byte(`"lease_token":"`)

// pickUp submits single tasks to an idle server with one parked worker.
func pickUp(ctx context.Context, tenant, platform *caller, n int) (pick, submit [3]time.Duration, err error) {
	id, c, err := register(ctx, platform, "bench-parked", 4)
	if err != nil {
		return pick, submit, err
	}
	body := []byte(`{"type":"bench.one","payload":{"n":1}}`)
	var picks, submits []time.Duration
	for range n {
		arrived := make(chan error, 1)
		var at time.Time
		go func() {
			var claimed struct {
				Tasks []struct {
					LeaseToken string `json:"lease_token"`
				} `json:"tasks"`
			}
			err := c.call(ctx, "POST", "/v1/workers/"+id+"/claim", map[string]any{"max_tasks": 1, "wait_seconds": 10}, &claimed)
			at = time.Now()
			if err == nil && len(claimed.Tasks) == 1 {
				err = c.call(ctx, "POST", "/v1/workers/"+id+"/results", map[string]any{"results": []any{map[string]any{"lease_token": claimed.Tasks[0].LeaseToken, "status": "succeeded"}}}, nil)
			}
			arrived <- err
		}()
		time.Sleep(5 * time.Millisecond) // the claim is parked by then; if not, the figure is only worse
		began := time.Now()
		if err := tenant.call(ctx, "POST", "/v1/tasks", body, nil); err != nil {
			return pick, submit, err
		}
		submits = append(submits, time.Since(began))
		if err := <-arrived; err != nil {
			return pick, submit, err
		}
		picks = append(picks, at.Sub(began))
	}
	return quantiles(picks), quantiles(submits), nil
}

func quantiles(all []time.Duration) (out [3]time.Duration) {
	slices.Sort(all)
	for i, q := range []float64{0.5, 0.9, 0.99} {
		out[i] = all[int(q*float64(len(all)-1))].Round(10 * time.Microsecond)
	}
	return out
}
