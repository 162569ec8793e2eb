package night

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// watch follows a night and shows it.
type watch struct {
	out       io.Writer
	screen    bool // lines may be drawn over
	night     *night
	customers []*customer
	begun     time.Time
	shown     time.Time
	lines     int // drawn last
	done      int // at the last show
	rate      float64
}

func newWatch(out io.Writer, n *night, customers []*customer) *watch {
	w := &watch{out: out, night: n, customers: customers, begun: time.Now(), shown: time.Now()}
	if file, ok := out.(*os.File); ok {
		info, err := file.Stat()
		w.screen = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return w
}

// pace is how often the server is asked.
func (w *watch) pace() time.Duration { return 700 * time.Millisecond }

// look asks for every tenant; true when all workflows have ended.
func (w *watch) look(ctx context.Context) (over bool, err error) {
	over = true
	for _, c := range w.customers {
		if err := c.look(ctx); err != nil {
			return false, err
		}
		over = over && c.over()
	}
	return over, nil
}

// show draws the progress: each second on a screen, each five in a log.
func (w *watch) show(last bool) {
	every := 5 * time.Second
	if w.screen {
		every = 0
	}
	since := time.Since(w.shown)
	if !last && since < every {
		return
	}
	done := 0
	for _, c := range w.customers {
		done += c.finished()
	}
	if w.done > 0 && since > 0 {
		w.rate = float64(done-w.done) / since.Seconds()
	}
	w.done, w.shown = done, time.Now()
	lines := w.draw()
	if w.screen && w.lines > 0 {
		fmt.Fprintf(w.out, "\x1b[%dA\x1b[J", w.lines)
	}
	w.lines = len(lines)
	fmt.Fprintln(w.out, strings.Join(lines, "\n"))
}

func (c *customer) finished() int {
	return c.counts["succeeded"] + c.counts["failed"] + c.counts["cancelled"] + c.counts["expired"] + c.counts["skipped"] +
		c.counts["dead_letter"]
}

func (w *watch) draw() []string {
	shares := sharesOf(w.customers)
	retries, again := 0, 0
	for _, c := range w.customers {
		retries += c.ledger.retries
		again += c.ledger.again
	}
	lines := []string{fmt.Sprintf("%7s  %.0f tasks/s, %d retries, %d run again", time.Since(w.begun).Round(100*time.Millisecond), w.rate, retries, again)}
	for i, c := range w.customers {
		share := "share –"
		if len(shares.Tenants) > 0 {
			share = fmt.Sprintf("share %.1f %% of %.1f %%", 100*shares.Tenants[i].Got, 100*shares.Tenants[i].Due)
		}
		total := c.total()
		lines = append(lines, fmt.Sprintf("  %-10s w%-2d %s %5d/%-5d  pending %d  ready %d  running %d  succeeded %d  dead %d  %s",
			c.tenant.Slug, c.tenant.Weight, bar(c.finished(), total), c.finished(), total, c.counts["pending"], c.counts["ready"],
			c.counts["running"], c.counts["succeeded"], c.counts["dead_letter"], share))
	}
	return lines
}

// bar draws how much of the whole is done.
func bar(done, total int) string {
	const width = 20
	full := 0
	if total > 0 {
		full = width * done / total
	}
	return "[" + strings.Repeat("#", full) + strings.Repeat(".", width-full) + "]"
}

func (w *watch) summary() Summary {
	s := Summary{ID: w.night.ID, Begun: w.night.Begun, Ended: time.Now(), Resumed: w.night.resumed, Shares: sharesOf(w.customers)}
	if w.night.resumed {
		s.Begun = w.begun
	}
	for _, c := range w.customers {
		s.Tenants = append(s.Tenants, TenantSummary{
			Slug: c.tenant.Slug, Weight: c.tenant.Weight, Documents: c.documents, WorkflowID: c.workflow, State: c.state,
			Counts: c.counts, DeadLetters: c.dead, Report: c.report, Index: c.index, Evaluation: c.evaluated,
		})
		s.Tasks += c.total()
		s.Succeeded += c.counts["succeeded"]
		s.Retries += c.ledger.retries
		s.RunAgain += c.ledger.again
	}
	if seconds := time.Since(w.begun).Seconds(); seconds > 0 {
		s.PerSecond = float64(s.Succeeded) / seconds
	}
	return s
}
