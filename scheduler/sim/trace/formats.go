package trace

import (
	"fmt"
	"strconv"
	"time"

	"nightshift/scheduler/sim"
)

// readDeadlines reads jobs whose deadline is a moment on the clock of submit_s.
func readDeadlines(t *table) (out Trace, err error) {
	for {
		if more, err := t.next(); !more {
			return out, err
		}
		n, err := t.numbers("submit_s", "duration_s", "num_gpu", "deadline_s_generated")
		if err != nil {
			return out, err
		}
		item := sim.Item{At: seconds(n[0]), Run: seconds(n[1]), Deadline: max(seconds(n[3]-n[0]), time.Millisecond)}
		out.Tasks = append(out.Tasks, Task{Item: item, Tenant: "cluster-" + t.text("cluster"), GPUs: int(n[2])})
	}
}

// readJobs reads jobs of a cluster's virtual clusters; a few rows have no moment and are left out.
func readJobs(t *table) (out Trace, err error) {
	for {
		if more, err := t.next(); !more {
			return out, err
		}
		if t.row[t.column["timestamp"]] == "" {
			out.Skipped++
			continue
		}
		at, err := t.moment("timestamp", time.DateTime)
		if err != nil {
			return out, err
		}
		n, err := t.numbers("duration", "num_gpus")
		if err != nil {
			return out, err
		}
		if n[0] <= 0 {
			out.Skipped++
			continue
		}
		out.Tasks = append(out.Tasks, Task{Item: sim.Item{At: at, Run: seconds(n[0])}, Tenant: "vc-" + t.text("cluster"), GPUs: int(n[1])})
	}
}

// readRequests reads requests that tell what they read and what they wrote.
func readRequests(t *table) (out Trace, err error) {
	for {
		if more, err := t.next(); !more {
			return out, err
		}
		at, err := t.moment("TIMESTAMP", time.DateTime)
		if err != nil {
			return out, err
		}
		n, err := t.numbers("ContextTokens", "GeneratedTokens")
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, t.request(at, n[0], n[0], n[1]))
	}
}

// prefixBlock is how many tokens a block of a shared prefix holds.
const prefixBlock = 512

// readPrefixed reads requests part of whose text was read before.
func readPrefixed(t *table) (out Trace, err error) {
	for {
		if more, err := t.next(); !more {
			return out, err
		}
		n, err := t.numbers("ts_ms", "input_tokens", "output_tokens", "prefix_blocks_seen_before")
		if err != nil {
			return out, err
		}
		out.Tasks = append(out.Tasks, t.request(seconds(n[0]/1000), n[1], max(0, n[1]-prefixBlock*n[3]), n[2]))
	}
}

// request is a task that reads and writes tokens; read ones that are known already cost no time.
func (t *table) request(at time.Duration, context, read, wrote float64) Task {
	run := seconds(read/t.speed.Read + wrote/t.speed.Write)
	return Task{Item: sim.Item{At: at, Run: run}, Tenant: t.name, Tokens: int(context + wrote)}
}

// mostCalls is how many calls a file may hold: a minute's count is one number, a task each in here.
const mostCalls = 5_000_000

// readCalls reads how often timers called their function in each minute; the calls are even over the minute. What a call
// takes stands in a file beside it; without that it is a second.
func readCalls(t *table) (out Trace, err error) {
	for {
		if more, err := t.next(); !more {
			return out, err
		}
		if t.row[t.column["Trigger"]] != "timer" {
			out.Skipped++
			continue
		}
		owner := "owner-" + t.text("HashOwner")
		function := t.text("HashFunction")
		for _, name := range t.head {
			minute, err := strconv.Atoi(name)
			if err != nil {
				continue // not a minute
			}
			n, err := t.number(name)
			if err != nil {
				return out, err
			}
			if len(out.Tasks)+int(n) > mostCalls {
				return out, fmt.Errorf("more than %d calls", mostCalls)
			}
			for k := range int(n) {
				at := time.Duration(minute)*time.Minute + time.Duration(k)*time.Minute/time.Duration(n)
				task := Task{Item: sim.Item{At: at, Run: time.Second}, Tenant: owner[:min(len(owner), 14)]}
				task.Class.Type = callType(function)
				out.Tasks = append(out.Tasks, task)
			}
		}
	}
}
