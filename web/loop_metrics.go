package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"nightshift/scheduler/loop"
)

// loopFigures shows what this replica's loop has counted.
type loopFigures struct{ loop *loop.Loop }

var (
	isBrain       = prometheus.NewDesc("nightshift_brain", "1 on the replica that decides.", nil, nil)
	inboxDepth    = prometheus.NewDesc("nightshift_inbox_depth", "Commands that wait to be decided.", nil, nil)
	commandsTotal = prometheus.NewDesc("nightshift_commands_total", "Commands decided and answered.", nil, nil)
	batchesTotal  = prometheus.NewDesc("nightshift_batches_total", "Batches committed.", nil, nil)
	takeovers     = prometheus.NewDesc("nightshift_takeovers_total", "Times this replica became the brain.", nil, nil)
	rebuilds      = prometheus.NewDesc("nightshift_board_rebuilds_total", "Times the board was rebuilt.", nil, nil)
	refusedTotal  = prometheus.NewDesc("nightshift_inbox_refused_total", "Commands refused by the inbox.", []string{"code"}, nil)
	alertsTotal   = prometheus.NewDesc("nightshift_loop_alerts_total", "What should not happen: each has a page in the operations guide.", []string{"alert"}, nil)
	batchCommands = prometheus.NewDesc("nightshift_batch_commands", "Commands a batch.", nil, nil)
	commitSeconds = prometheus.NewDesc("nightshift_batch_commit_seconds", "Time of a batch's transaction.", nil, nil)
	rebuildTime   = prometheus.NewDesc("nightshift_board_rebuild_seconds", "Time to rebuild the board.", nil, nil)
)

// Describe names nothing: what is there depends on who decides.
func (loopFigures) Describe(chan<- *prometheus.Desc) {}

// Collect reads the figures.
func (l loopFigures) Collect(out chan<- prometheus.Metric) {
	f := l.loop.Figures()
	brain := 0.0
	if f.Brain {
		brain = 1
	}
	out <- prometheus.MustNewConstMetric(isBrain, prometheus.GaugeValue, brain)
	out <- prometheus.MustNewConstMetric(inboxDepth, prometheus.GaugeValue, float64(f.Waiting))
	count := func(desc *prometheus.Desc, n uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), labels...)
	}
	count(commandsTotal, f.Commands)
	count(batchesTotal, f.Batches)
	count(takeovers, f.Takeovers)
	count(rebuilds, f.Rebuilds)
	for code, n := range f.Refused {
		count(refusedTotal, n, string(code))
	}
	count(alertsTotal, f.CounterDrift, "counter_drift")
	count(alertsTotal, f.Culprits, "culprit")
	count(alertsTotal, f.Unclear, "unclear_commit")
	count(alertsTotal, f.TicksAside, "tick_set_aside")
	count(alertsTotal, f.HistoryLost, "history_lost")
	count(alertsTotal, f.AddressTaken, "address_taken")
	count(alertsTotal, f.Behind, "version_behind")
	count(alertsTotal, f.SchedulesAside, "schedule_set_aside")
	count(alertsTotal, f.OwnWork, "own_work")
	p := scraped{out}
	p.histogram(batchCommands, f.BatchCommands)
	p.histogram(commitSeconds, f.CommitSeconds)
	p.histogram(rebuildTime, f.RebuildSeconds)
}
