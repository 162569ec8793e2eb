package web

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/models/postgres"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
)

// brainFigures asks the brain at each scrape, so that every replica shows the same; without a brain its figures are
// absent, not zero.
type brainFigures struct {
	deps *handlers.Deps
	loop *loop.Loop
}

var (
	readyTasks   = prometheus.NewDesc("nightshift_tasks_ready", "Ready tasks that stand in a line.", []string{"kind"}, nil)
	runningTasks = prometheus.NewDesc("nightshift_tasks_running", "Running tasks.", []string{"kind"}, nil)
	heldTasks    = prometheus.NewDesc("nightshift_tasks_held", "Ready tasks that are held back because other work needs the slots.", []string{"kind"}, nil)
	parkedTasks  = prometheus.NewDesc("nightshift_tasks_parked", "Ready tasks parked behind a gate.", []string{"kind"}, nil)
	queueWait    = prometheus.NewDesc("nightshift_queue_wait_seconds", "From ready to the first start.", []string{"kind"}, nil)
	execution    = prometheus.NewDesc("nightshift_execution_seconds", "Time of attempts that ended, however they did.", []string{"kind"}, nil)
	laneDepth    = prometheus.NewDesc("nightshift_lane_depth", "Ready tasks, parked ones among them, of the lane in all environments; of all lanes but the first four as other.", []string{"kind", "lane"}, nil)
	laneOldest   = prometheus.NewDesc("nightshift_lane_oldest_age_seconds", "How long the oldest head of a line has been ready.", []string{"kind", "lane"}, nil)
	workersUsed  = prometheus.NewDesc("nightshift_worker_utilization_ratio", "Slots in use of all that the pool has.", []string{"pool"}, nil)
	cardsUsed    = prometheus.NewDesc("nightshift_gpu_utilization_ratio", "Cards given to a task of all that the pool has.", []string{"pool"}, nil)
	fairLag      = prometheus.NewDesc("nightshift_fair_lag", "How far apart tenants with work for the pool are: weighted seconds of the pool, 0 is fair.", []string{"pool"}, nil)
	tokensUsed   = prometheus.NewDesc("nightshift_tokens_total", "Tokens that attempts reported: in, out or cached.", []string{"model", "direction"}, nil)
	costUsed     = prometheus.NewDesc("nightshift_cost_usd_total", "Money that attempts reported to have spent (actual), and that the callers of those that ended had expected (estimated).", []string{"model", "basis"}, nil)
	leasesLost   = prometheus.NewDesc("nightshift_leases_lost_total", "Leases that ended without their worker's word.", []string{"cause"}, nil)
	scheduleRuns = prometheus.NewDesc("nightshift_schedule_runs_total", "Occurrences of schedules by what became of them; one that started and was superseded or expired later counts in both.", []string{"outcome"}, nil)
	scheduleLate = prometheus.NewDesc("nightshift_schedule_runs_late_total", "Runs that had not ended within complete_within_seconds.", nil, nil)
	received     = prometheus.NewDesc("nightshift_messages_received_total", "Triggers and items of queues that were accepted.", []string{"source"}, nil)
	deduplicated = prometheus.NewDesc("nightshift_messages_deduplicated_total", "Those whose dedupe key came before.", []string{"source"}, nil)
	takenByRuns  = prometheus.NewDesc("nightshift_messages_taken_total", "Those that runs took; a trigger counts for each of its schedules.", []string{"source"}, nil)
	waiting      = prometheus.NewDesc("nightshift_messages_waiting", "Those that wait for a run; a trigger counts for each of its schedules.", []string{"source"}, nil)
	waitsOldest  = prometheus.NewDesc("nightshift_messages_oldest_age_seconds", "How long the oldest has waited; 0 when none does.", []string{"source"}, nil)
	boardEntries = prometheus.NewDesc("nightshift_board_entries", "Entries on the board.", nil, nil)
	boardLines   = prometheus.NewDesc("nightshift_board_lines", "Lines on the board.", nil, nil)
	waitingPolls = prometheus.NewDesc("nightshift_claims_parked", "Claims that wait for work.", nil, nil)
	decisions    = prometheus.NewDesc("nightshift_decisions_total", "Starts that this brain decided.", nil, nil)
	sweepFound   = prometheus.NewDesc("nightshift_sweep_found_total", "What a sweep of the rows found.", []string{"sweep"}, nil)
	sweepRun     = prometheus.NewDesc("nightshift_sweep_last_run_timestamp_seconds", "When a sweep ran last.", []string{"sweep"}, nil)
	brainEpoch   = prometheus.NewDesc("nightshift_brain_epoch", "Rises with each change of brain.", nil, nil)
)

// taskCounters count tasks by kind and type.
var taskCounters = []struct {
	desc *prometheus.Desc
	of   func(*engine.TypeCounts) int64
}{
	{prometheus.NewDesc("nightshift_tasks_submitted_total", "Tasks accepted.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Submitted }},
	{prometheus.NewDesc("nightshift_tasks_started_total", "Attempts started.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Started }},
	{prometheus.NewDesc("nightshift_tasks_succeeded_total", "Tasks that succeeded.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Succeeded }},
	{prometheus.NewDesc("nightshift_tasks_failed_total", "Tasks that failed for good.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Failed }},
	{prometheus.NewDesc("nightshift_tasks_retried_total", "Attempts that failed and are followed by another.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Retried }},
	{prometheus.NewDesc("nightshift_tasks_dead_lettered_total", "Tasks that became dead letters.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.DeadLettered }},
	{prometheus.NewDesc("nightshift_tasks_expired_total", "Tasks that did not start in time.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Expired }},
	{prometheus.NewDesc("nightshift_tasks_cancelled_total", "Tasks that were cancelled.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Cancelled }},
	{prometheus.NewDesc("nightshift_tasks_skipped_total", "Tasks that what they waited for has made needless.", []string{"kind", "type"}, nil), func(c *engine.TypeCounts) int64 { return c.Skipped }},
}

// boardCounters count what the board did to stay within its bounds, by their names among the brain's.
var boardCounters = map[string]*prometheus.Desc{
	"refills":    prometheus.NewDesc("nightshift_board_refills_total", "Lines read on from the database.", nil, nil),
	"shrinks":    prometheus.NewDesc("nightshift_board_shrinks_total", "Lines cut to make room.", nil, nil),
	"parkings":   prometheus.NewDesc("nightshift_board_parkings_total", "Tasks put behind a gate.", nil, nil),
	"unparkings": prometheus.NewDesc("nightshift_board_unparkings_total", "Tasks let back from behind a gate.", nil, nil),
	"rebuilds":   prometheus.NewDesc("nightshift_board_loads_total", "Times the brain took a board from the database.", nil, nil),
}

// Describe names nothing: what is there depends on whether there is a brain.
func (brainFigures) Describe(chan<- *prometheus.Desc) {}

// Collect reads the figures.
func (b brainFigures) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	p := scraped{out}
	if brain, err := b.deps.World.Brain(ctx); err == nil {
		p.gauge(brainEpoch, float64(brain.Epoch))
	}
	if sweeps, err := postgres.NewReads(b.deps.DB).Sweeps(ctx); err == nil {
		for _, s := range sweeps {
			p.counter(sweepFound, float64(s.Total), s.Name)
			p.gauge(sweepRun, float64(s.LastRun)/1e6, s.Name)
		}
	}
	s := b.stats(ctx)
	if s == nil {
		return
	}
	p.gauge(boardEntries, float64(s.Entries))
	p.gauge(boardLines, float64(s.Lines))
	p.gauge(waitingPolls, float64(s.Claims))
	p.counter(decisions, float64(s.Decisions))
	for name, desc := range boardCounters {
		p.counter(desc, float64(s.Counters[name]))
	}
	for outcome, n := range s.ScheduleRuns {
		p.counter(scheduleRuns, float64(n), outcome)
	}
	p.counter(scheduleLate, float64(s.ScheduleLate))
	for i := range s.Messages {
		m := &s.Messages[i]
		p.counter(received, float64(m.Received), m.Source)
		p.counter(deduplicated, float64(m.Deduplicated), m.Source)
		p.counter(takenByRuns, float64(m.Taken), m.Source)
		p.gauge(waiting, float64(m.Waiting), m.Source)
		p.gauge(waitsOldest, m.Oldest, m.Source)
	}
	for cause, n := range s.LeasesLost {
		p.counter(leasesLost, float64(n), cause)
	}
	for i := range s.Types {
		for _, c := range taskCounters {
			p.counter(c.desc, float64(c.of(&s.Types[i])), s.Types[i].Kind, s.Types[i].Type)
		}
	}
	p.kinds(s)
	p.pools(s)
	for _, m := range s.Models {
		p.counter(tokensUsed, float64(m.TokensIn), m.Model, "in")
		p.counter(tokensUsed, float64(m.TokensOut), m.Model, "out")
		p.counter(tokensUsed, float64(m.TokensCached), m.Model, "cached")
		p.counter(costUsed, m.CostUSD, m.Model, "actual")
		p.counter(costUsed, m.EstimatedUSD, m.Model, "estimated")
	}
}

// stats are the brain's figures as of now; one that is too busy to answer shows what it sampled last.
func (b brainFigures) stats(ctx context.Context) *engine.Stats {
	if b.deps.Door != nil {
		answer, err := b.deps.Door.Do(ctx, &engine.Command{ID: b.deps.Mint(), Actor: models.Actor{Kind: "replica"}, Look: &engine.Look{Stats: true}})
		if err == nil && answer.Looked != nil && answer.Looked.Stats != nil {
			return answer.Looked.Stats
		}
	}
	if b.loop != nil && b.loop.Role().Brain {
		return b.loop.Figures().Board
	}
	return nil
}

// scraped is what a scrape is answered. A figure whose labels can't be written is left out: it must not cost the others.
type scraped struct{ out chan<- prometheus.Metric }

func (p scraped) put(m prometheus.Metric, err error) {
	if err == nil {
		p.out <- m
	}
}

func (p scraped) gauge(desc *prometheus.Desc, v float64, labels ...string) {
	p.put(prometheus.NewConstMetric(desc, prometheus.GaugeValue, v, labels...))
}

func (p scraped) counter(desc *prometheus.Desc, v float64, labels ...string) {
	p.put(prometheus.NewConstMetric(desc, prometheus.CounterValue, v, labels...))
}

func (p scraped) histogram(desc *prometheus.Desc, h loop.Histogram, labels ...string) {
	buckets := make(map[float64]uint64, len(h.Bounds))
	for i, bound := range h.Bounds {
		buckets[bound] = h.Counts[i]
	}
	p.put(prometheus.NewConstHistogram(desc, h.Count, h.Sum, buckets, labels...))
}

func (p scraped) kinds(s *engine.Stats) {
	for _, k := range s.Kinds {
		p.gauge(readyTasks, float64(k.Ready), k.Kind)
		p.gauge(runningTasks, float64(k.Running), k.Kind)
		p.gauge(heldTasks, float64(k.Held), k.Kind)
		p.gauge(parkedTasks, float64(k.Parked), k.Kind)
		p.histogram(queueWait, loop.Histogram(k.Wait), k.Kind)
		p.histogram(execution, loop.Histogram(k.Run), k.Kind)
	}
	for _, l := range s.Lanes {
		p.gauge(laneDepth, float64(l.Depth), l.Kind, l.Lane)
		p.gauge(laneOldest, l.Oldest, l.Kind, l.Lane)
	}
}

func (p scraped) pools(s *engine.Stats) {
	for _, pool := range s.Pools {
		if pool.Slots > 0 {
			p.gauge(workersUsed, float64(pool.SlotsBusy)/float64(pool.Slots), pool.Pool)
		}
		if pool.Cards > 0 {
			p.gauge(cardsUsed, float64(pool.CardsBusy)/float64(pool.Cards), pool.Pool)
		}
		p.gauge(fairLag, pool.Lag, pool.Pool)
	}
}
