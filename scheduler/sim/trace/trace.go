package trace

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

// Trace is what a file says.
type Trace struct {
	Format  string
	Tasks   []Task // by their moment; those of a workflow together
	Skipped int    // rows without a moment or a run time
}

// Task is one row.
type Task struct {
	sim.Item
	Tenant string
	GPUs   int
	Tokens int // read and written
}

// Speed is how fast a model reads and writes, for traces that tell tokens and no run time.
type Speed struct {
	Read, Write float64 // tokens a second
}

// DefaultSpeed is about that of a large model on one server under load.
var DefaultSpeed = Speed{Read: 5000, Write: 30}

// format is one way to write a trace.
type format struct {
	name    string
	columns []string // that its header must have
	read    func(*table) (Trace, error)
}

const timerCalls = "timer calls"

var formats = []format{
	{"gpu jobs with deadlines", []string{"cluster", "submit_s", "duration_s", "num_gpu", "deadline_s_generated"}, readDeadlines},
	{"gpu jobs", []string{"timestamp", "duration", "num_gpus", "cluster"}, readJobs},
	{"model requests", []string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}, readRequests},
	{"model requests with shared prefixes", []string{"ts_ms", "input_tokens", "output_tokens", "prefix_blocks_seen_before"}, readPrefixed},
	{"task graphs", []string{"workflow", "task", "runtime_s", "parents"}, readGraphs},
	{timerCalls, []string{"HashOwner", "HashFunction", "Trigger"}, readCalls},
}

// ReadFile reads a trace, packed or not.
func ReadFile(path string, speed Speed) (Trace, error) {
	f, err := open(path)
	if err != nil {
		return Trace{}, err
	}
	defer f.Close() // read only
	name := strings.TrimSuffix(filepath.Base(path), ".gz")
	t, err := Read(strings.TrimSuffix(name, filepath.Ext(name)), f, speed)
	if err != nil {
		return Trace{}, fmt.Errorf("%s: %w", path, err)
	}
	if beside := strings.Replace(path, "_invocations", "_durations", 1); t.Format == timerCalls && beside != path {
		if err := t.readDurations(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Trace{}, err
		}
	}
	return t, nil
}

// open opens a file, packed or not.
func open(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil || !strings.HasSuffix(path, ".gz") {
		return f, err
	}
	unpacked, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{unpacked, f}, nil
}

// Read reads a trace. Formats that know no tenant use the name.
func Read(name string, r io.Reader, speed Speed) (Trace, error) {
	t := &table{name: name, speed: speed, rows: csv.NewReader(r), column: map[string]int{}}
	t.rows.ReuseRecord = true
	head, err := t.rows.Read()
	if errors.Is(err, io.EOF) {
		return Trace{}, errors.New("the file is empty")
	} else if err != nil {
		return Trace{}, err
	}
	t.head = slices.Clone(head)
	for i, c := range t.head {
		t.column[c] = i
	}
	for _, f := range formats {
		if slices.ContainsFunc(f.columns, func(c string) bool { _, has := t.column[c]; return !has }) {
			continue
		}
		out, err := f.read(t)
		if err != nil {
			return Trace{}, err
		}
		out.Format = f.name
		out.settle()
		return out, nil
	}
	known := make([]string, 0, len(formats))
	for _, f := range formats {
		known = append(known, f.name+" ("+strings.Join(f.columns, ",")+")")
	}
	return Trace{}, fmt.Errorf("its header %q is of no format that is known: %s", strings.Join(t.head[:min(6, len(t.head))], ","), strings.Join(known, ", "))
}

// settle lets the trace begin at zero and puts it in order.
func (t *Trace) settle() {
	if len(t.Tasks) == 0 {
		return
	}
	first := slices.MinFunc(t.Tasks, func(a, b Task) int { return cmp.Compare(a.At, b.At) }).At
	for i := range t.Tasks {
		t.Tasks[i].At -= first
		t.Tasks[i].Run = max(t.Tasks[i].Run, time.Millisecond)
	}
	if t.Tasks[0].Group == 0 {
		slices.SortStableFunc(t.Tasks, func(a, b Task) int { return cmp.Compare(a.At, b.At) })
	}
}

// Span is from the first task to the last.
func (t *Trace) Span() time.Duration {
	if len(t.Tasks) == 0 {
		return 0
	}
	return t.Tasks[len(t.Tasks)-1].At
}

// Work is the run time of all tasks.
func (t *Trace) Work() (total time.Duration) {
	for i := range t.Tasks {
		total += t.Tasks[i].Run
	}
	return total
}

// Arrivals are the tasks by tenant, in the order in which the tenants first came.
func (t *Trace) Arrivals() []sim.Arrival {
	var out []sim.Arrival
	at := map[string]int{}
	place := make([]int, len(t.Tasks)) // of a task in its tenant's items
	for i := range t.Tasks {
		task := &t.Tasks[i]
		n, known := at[task.Tenant]
		if !known {
			n = len(out)
			at[task.Tenant] = n
			out = append(out, sim.Arrival{Tenant: task.Tenant, Class: models.Class{Type: "trace.task"}})
		}
		item := task.Item
		item.After = nil
		for _, before := range task.After {
			item.After = append(item.After, place[before])
		}
		place[i] = len(out[n].Items)
		out[n].Items = append(out[n].Items, item)
	}
	return out
}
