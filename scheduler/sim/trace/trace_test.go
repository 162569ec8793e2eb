package trace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"nightshift/scheduler/sim/trace"
)

// read reads a small file made up for the test.
func read(t *testing.T, text string) trace.Trace {
	t.Helper()
	out, err := trace.Read("house", strings.NewReader(text), trace.Speed{Read: 1000, Write: 10})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJobsWithDeadlines(t *testing.T) {
	got := read(t, "cluster,submit_s,duration_s,num_gpu,deadline_s_generated,model_generated\n7,2000,60,1,2100,a\n9,1990,30,8,1995,b\n")
	if len(got.Tasks) != 2 || got.Span() != 10*time.Second || got.Work() != 90*time.Second {
		t.Fatalf("%+v", got)
	}
	first, second := got.Tasks[0], got.Tasks[1]
	if first.Tenant != "cluster-9" || first.At != 0 || first.Deadline != 5*time.Second || first.GPUs != 8 {
		t.Errorf("%+v", first)
	}
	if second.Tenant != "cluster-7" || second.At != 10*time.Second || second.Deadline != 100*time.Second {
		t.Errorf("%+v", second)
	}
}

func TestJobsWithoutAMomentAreLeftOut(t *testing.T) {
	got := read(t, "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,1,66.0,a\n,12.0,1,12.0,a\n2017-10-09 07:00:55,0,1,0,b\n2017-10-09 07:00:55,5,2,10,b\n")
	if len(got.Tasks) != 2 || got.Skipped != 2 || got.Tasks[1].At != time.Minute || got.Tasks[0].Tenant != "vc-b" {
		t.Errorf("%+v", got)
	}
}

func TestRequestsCostTheirTokens(t *testing.T) {
	got := read(t, "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.5000000,2000,10\n2023-11-16 18:17:04.0000000,500,20\n")
	if got.Tasks[0].Run != 3*time.Second || got.Tasks[1].Run != 2500*time.Millisecond || got.Tasks[1].At != 500*time.Millisecond || got.Tasks[0].Tenant != "house" {
		t.Errorf("%+v", got.Tasks)
	}
	got = read(t, "ts_ms,input_tokens,output_tokens,blocks512,prefix_blocks_seen_before\n0,2048,10,4,0\n1500,2048,10,4,3\n")
	if got.Tasks[0].Run != 3048*time.Millisecond || got.Tasks[1].Run != 1512*time.Millisecond || got.Tasks[1].Tokens != 2058 {
		t.Errorf("%+v", got.Tasks)
	}
}

func TestGraphsBelongToTheirWorkflow(t *testing.T) {
	got := read(t, "workflow,task,name,runtime_s,parents\nw1,0,a,1.5,\nw1,1,b,2,0\nw2,9,c,0,0 1\nw2,0,a,3,\nw2,1,b,1,\n")
	arrivals := got.Arrivals()
	if len(arrivals) != 2 || len(arrivals[0].Items) != 2 || len(arrivals[1].Items) != 3 {
		t.Fatalf("%+v", arrivals)
	}
	last := arrivals[1].Items[2]
	if last.Run != time.Millisecond || len(last.After) != 2 || last.After[0] != 0 || last.After[1] != 1 || last.Group != 2 {
		t.Errorf("%+v", last)
	}
}

func TestWhatCallsTakeStandsBesideThem(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"x_invocations.csv": "HashOwner,HashApp,HashFunction,Trigger,480\nabc,x,f1,timer,1\nabc,x,f2,timer,1\n",
		"x_durations.csv":   "HashOwner,HashFunction,Average\nabc,f1,250\nabc,f3,9\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := trace.ReadFile(filepath.Join(dir, "x_invocations.csv"), trace.DefaultSpeed)
	if err != nil || len(got.Tasks) != 2 || got.Tasks[0].Run != 250*time.Millisecond || got.Tasks[1].Run != time.Second {
		t.Errorf("%v %+v", err, got)
	}
}

func TestCallsOfTimersAreEvenOverTheirMinute(t *testing.T) {
	got := read(t, "HashOwner,HashApp,HashFunction,Trigger,480,481\nabc,x,f1,timer,1,2\nabc,x,f2,http,9,9\n")
	if len(got.Tasks) != 3 || got.Skipped != 1 || got.Tasks[2].At != 90*time.Second || got.Tasks[0].Class.Type != "timer.f1" {
		t.Errorf("%+v", got)
	}
}

func TestWhatCannotBeReadIsSaidWithItsLine(t *testing.T) {
	for text, want := range map[string]string{
		"":      "empty",
		"a,b\n": "of no format",
		"workflow,task,name,runtime_s,parents\nw,0,a,1,\nw,1,b,x,\n":                                     "line 3: runtime_s",
		"workflow,task,name,runtime_s,parents\nw,0,a,1,1\nw,1,a,1,0\n":                                   "wait for each other",
		"workflow,task,name,runtime_s,parents\nw,0,a,1,5\n":                                              "workflow w: task 0 waits for 5",
		"TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,1,1\n":                                       "line 2: TIMESTAMP",
		"cluster,submit_s,duration_s,num_gpu,deadline_s_generated\n1,2,3\n":                              "line 2",
		"cluster,submit_s,duration_s,num_gpu,deadline_s_generated\n1,NaN,3,1,4\n":                        "line 2: submit_s",
		"ts_ms,input_tokens,output_tokens,blocks512,prefix_blocks_seen_before\n0,1,1,0,0\n\"0,1,1,0,0\n": "line",
		"HashOwner,HashApp,HashFunction,Trigger,480\nabc,x,f1,timer,9999999\n":                           "more than",
		"timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,1e300,1,66.0,a\n":             "line 2: duration",
	} {
		if _, err := trace.Read("x", strings.NewReader(text), trace.DefaultSpeed); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// The recorded traces themselves are read where they are at hand.
func TestRecordedTraces(t *testing.T) {
	dir := os.Getenv("TRACE_DIR")
	if dir == "" {
		t.Skip("TRACE_DIR names no folder with recorded traces")
	}
	for name, tasks := range map[string]int{
		"msr_itp2021_jobs": 69_351, "philly2017_jobs": 82_000, "azure_llm2023_code": 8_000, "azure_llm2023_conv": 19_000,
		"mooncake_conversation": 12_000, "wfinstances_7dags": 6_000, "azure_functions2019_500fn_invocations": 100_000,
	} {
		got, err := trace.ReadFile(filepath.Join(dir, name+".csv.gz"), trace.DefaultSpeed)
		if err != nil {
			t.Error(err)
			continue
		}
		t.Logf("%s: %s, %d tasks of %d tenants over %s, work for %.0f slots, %d rows left out", name, got.Format, len(got.Tasks),
			len(got.Arrivals()), got.Span(), got.Work().Seconds()/max(1, got.Span().Seconds()), got.Skipped)
		if len(got.Tasks) < tasks {
			t.Errorf("%s has %d tasks, want at least %d", name, len(got.Tasks), tasks)
		}
	}
}
