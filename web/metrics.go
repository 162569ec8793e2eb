package web

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
	"nightshift/scheduler/loop"
)

// meters are this replica's figures, and the brain's as any replica can ask them. No label names a task, key or user.
type meters struct {
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	serve    fiber.Handler
}

func newMeters(d *handlers.Deps, l *loop.Loop) *meters {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "nightshift_http_requests_total", Help: "Requests answered by this replica."}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nightshift_http_request_seconds", Help: "Time to answer, long polls among them.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}}, []string{"method", "route"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), brainFigures{d})
	if l != nil {
		registry.MustRegister(loopFigures{l})
	}
	m.serve = adaptor.HTTPHandler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return m
}

func (m *meters) request(method, route string, status int, took time.Duration) {
	if route == "/" && status == fiber.StatusNotFound {
		route = "none"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.seconds.WithLabelValues(method, route).Observe(took.Seconds())
}

func (s *Server) metrics(_ *handlers.Deps, c *fiber.Ctx) error { return s.meters.serve(c) }

// brainFigures asks the brain at each scrape; without a brain its figures are absent, not zero.
type brainFigures struct{ deps *handlers.Deps }

var (
	readyTasks   = prometheus.NewDesc("nightshift_tasks_ready", "Ready tasks that stand in a line.", []string{"kind"}, nil)
	runningTasks = prometheus.NewDesc("nightshift_tasks_running", "Running tasks.", nil, nil)
	parkedTasks  = prometheus.NewDesc("nightshift_tasks_parked", "Ready tasks parked behind a gate.", nil, nil)
	boardEntries = prometheus.NewDesc("nightshift_board_entries", "Entries on the board.", nil, nil)
	boardLines   = prometheus.NewDesc("nightshift_board_lines", "Lines on the board.", nil, nil)
	waitingPolls = prometheus.NewDesc("nightshift_claims_parked", "Claims that wait for work.", nil, nil)
	decisions    = prometheus.NewDesc("nightshift_decisions_total", "Decisions of this brain.", nil, nil)
	brainEpoch   = prometheus.NewDesc("nightshift_brain_epoch", "Rises with each change of brain.", nil, nil)
)

// Describe names nothing: counters come as the brain has them.
func (brainFigures) Describe(chan<- *prometheus.Desc) {}

// Collect reads the figures.
func (b brainFigures) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if brain, err := b.deps.World.Brain(ctx); err == nil {
		out <- prometheus.MustNewConstMetric(brainEpoch, prometheus.GaugeValue, float64(brain.Epoch))
	}
	if b.deps.Door == nil {
		return
	}
	answer, err := b.deps.Door.Do(ctx, &engine.Command{ID: b.deps.Mint(), Actor: models.Actor{Kind: "replica"}, Look: &engine.Look{Stats: true}})
	if err != nil || answer.Looked == nil || answer.Looked.Stats == nil {
		return
	}
	s := answer.Looked.Stats
	gauge := func(desc *prometheus.Desc, v int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(v), labels...)
	}
	for kind, n := range s.Ready {
		gauge(readyTasks, n, kind)
	}
	gauge(runningTasks, s.Running)
	gauge(parkedTasks, s.Parked)
	gauge(boardEntries, s.Entries)
	gauge(boardLines, s.Lines)
	gauge(waitingPolls, s.Claims)
	out <- prometheus.MustNewConstMetric(decisions, prometheus.CounterValue, float64(s.Decisions))
	for name, n := range s.Counters {
		desc := prometheus.NewDesc("nightshift_"+counterName(name)+"_total", "Counted by this brain since it began.", nil, nil)
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n))
	}
}

// taskCounters are the brain's counters that count tasks; the others are of its board and leases.
var taskCounters = []string{"submitted", "started", "succeeded", "failed", "retried", "dead_lettered", "expired", "cancelled", "skipped"}

// counterName is a counter's name among the metrics.
func counterName(name string) string {
	switch {
	case slices.Contains(taskCounters, name):
		return "tasks_" + name
	case slices.Contains([]string{"refills", "shrinks", "parkings", "unparkings"}, name):
		return "board_" + name
	case name == "rebuilds": // the loop counts its own
		return "board_loads"
	}
	return name
}
