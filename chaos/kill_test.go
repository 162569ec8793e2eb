package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Servers, workers and database sessions are killed under a load of two thousand tasks.
func TestKilledServersWorkersAndBackends(t *testing.T) {
	w := NewWorld(t, 2)
	for range 3 {
		w.puller(16, 5, 20*time.Millisecond, w.fronts()...)
	}
	hands := []*hand{w.hand(t, "a"), w.hand(t, "b")}
	c := w.customer(w.tenant, w.fronts()...)
	workflow := w.workflow(t, 40)
	began := time.Now()
	wait := c.flow(context.Background(), 8, 2000, 40*time.Millisecond)
	kills := []string{"server", "worker", "backend", "server", "backend", "worker", "server", "backend", "worker", "server", "backend", "worker"}
	w.Rng.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	slots := 0
	for _, what := range kills {
		time.Sleep(time.Duration(300+w.Rng.IntN(700)) * time.Millisecond) // the moment of the kill is left to chance
		switch what {
		case "server":
			r := w.Replicas[w.Rng.IntN(len(w.Replicas))]
			r.Kill()
			r.Start()
		case "worker":
			h := hands[w.Rng.IntN(len(hands))]
			h.process.Kill()
			slots += h.slots
			h.start(t)
		case "backend":
			w.DB.endBackends(t, `pid IN (SELECT backend_pid FROM brain) OR random() < 0.3`)
		}
	}
	wait()
	t.Logf("2,000 submits and 12 kills took %s: %v", time.Since(began).Round(time.Millisecond), kills)
	w.Finish(t, c)
	w.ended(t, workflow)
	// Each kill of a server may also lose the answers of claims under way: a puller's room at most.
	w.beyondFirst(slots + 4*3*16)
}

// hand is a worker as people run it.
type hand struct {
	world   *World
	name    string
	slots   int
	args    []string
	process *Process
	starts  int
}

// hand starts `nightshift worker` behind the first replica that is reached.
func (w *World) hand(t testing.TB, name string, args ...string) *hand {
	t.Helper()
	file := filepath.Join(scratch(), w.DB.name+".key")
	if err := os.WriteFile(file, []byte(w.workers.ClientID+":"+w.workers.ClientSecret), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &hand{world: w, name: name, slots: 2}
	h.args = append([]string{
		"worker", "--server", w.Replicas[len(w.Replicas)-1].Front.URL(), "--token-file", file, "--name", name, "--slots", "2",
		"--lease-seconds", "3", "--folder", filepath.Join(scratch(), w.DB.name+"-"+name), "--drain", "2s",
	}, args...)
	h.start(t)
	return h
}

func (h *hand) start(t testing.TB) {
	t.Helper()
	h.starts++
	instance := fmt.Sprintf("%s-%d", h.name, h.starts)
	h.process = spawn(t, "worker", environment(), h.world.binary(), append(h.args, "--instance-id", instance)...)
}

// workflow submits a fan of tasks between a first and a last one.
func (w *World) workflow(t testing.TB, width int) string {
	t.Helper()
	task := func(key string, after ...string) map[string]any {
		return map[string]any{"key": key, "type": "text.summarize", "payload": map[string]any{"text": "Step " + key + ". It is one of many."}, "depends_on": after}
	}
	tasks := []map[string]any{task("first")}
	var middle []string
	for i := range width {
		middle = append(middle, fmt.Sprintf("middle-%d", i))
		tasks = append(tasks, task(middle[i], "first"))
	}
	tasks = append(tasks, task("last", middle...))
	var made struct {
		ID string `json:"id"`
	}
	w.must(w.caller(w.Replicas[0].URL, w.tenant), "POST", "/v1/workflows", map[string]any{"name": "fan", "tasks": tasks}, &made)
	return made.ID
}

// ended asks for a workflow until its counts say that it is over, and well.
func (w *World) ended(t testing.TB, id string) {
	t.Helper()
	var seen struct {
		State  string         `json:"state"`
		Counts map[string]int `json:"counts"`
	}
	w.eventually(patience, "the workflow has succeeded", func() bool {
		w.must(w.caller(w.Replicas[0].URL, w.tenant), "GET", "/v1/workflows/"+id, nil, &seen)
		return seen.State == "succeeded"
	})
	t.Logf("the workflow ended with %v", seen.Counts)
}
