package web

import (
	"strconv"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"nightshift/handlers"
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
			Name: "nightshift_http_requests_total", Help: "Requests answered by this replica.",
		}, []string{"method", "route", "status"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "nightshift_http_request_seconds", Help: "Time to answer, long polls among them.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method", "route"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(m.requests, m.seconds, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), brainFigures{d, l})
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
