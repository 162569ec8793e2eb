package templates

import (
	"fmt"
	"strconv"
	"strings"
)

// Act is a button with a reason to be given.
type Act struct {
	Label   string
	Icon    string
	To      string // where the form posts
	Explain string
	Must    bool // a reason is required
	Plain   bool // no reason is asked
	Danger  bool
	Fields  []Pair // hidden
	Inputs  []Input
	Count   string // where a sentence comes from that says how many it would reach; empty: nowhere
}

// Input is a field of a small form.
type Input struct {
	Name, Label, Value string
	Note, Hint         string
	Kind               string // number, text, choice; empty: a line
	Least, Most        string // of a number
	Options            []string
	Must               bool
}

func (in Input) list() string {
	if len(in.Options) == 0 {
		return "no-list"
	}
	return "list-" + in.Name
}

// redriveAct offers to redrive a group: all of it, a sample, at a pace, with a changed payload.
func redriveAct(p Page, g DeadGroup) Act {
	return Act{
		Label: "Redrive", Icon: "refresh", To: p.URL("/dead-letters/redrive"), Explain: "They get new attempts, and what waits behind them goes on.",
		Fields: []Pair{{"fingerprint", g.Fingerprint}}, Count: p.URL("/dead-letters/count", "fingerprint", g.Fingerprint),
		Inputs: []Input{
			{Name: "sample", Label: "How many", Note: "empty: all", Kind: "number", Least: "1", Most: "1000000", Hint: "all"},
			{Name: "rate", Label: "A second", Note: "empty: at once", Kind: "number", Least: "0.001", Most: "10000", Hint: "at once"},
			{Name: "payload_patch", Label: "Change of the payload", Note: "JSON, merged", Kind: "text", Hint: `{"model": "large"}`},
		},
	}
}

func (a Act) tone() string {
	if a.Danger {
		return "btn-outline-danger"
	}
	return ""
}

func (a Act) solid() string {
	if a.Danger {
		return "btn-danger"
	}
	return "btn-primary"
}

func nameOf(ref Ref) string {
	if ref.Name != "" {
		return ref.Name
	}
	return brief(ref.ID)
}

func percentWidth(part float64) string {
	return strconv.FormatFloat(100*min(1, max(0, part)), 'f', 2, 64)
}

func (u Use) part() float64 {
	if u.Total <= 0 {
		return 0
	}
	return u.Used / u.Total
}

// tone warns where little is left.
func (u Use) tone() string {
	switch {
	case u.part() >= 0.95:
		return "full"
	case u.part() >= 0.8:
		return "high"
	default:
		return "calm"
	}
}

// piece is a part of a stacked bar.
type piece struct{ State, X, Width, Label string }

// stackOrder puts what is done first, so that a bar grows like progress.
var stackOrder = []string{
	"succeeded", "skipped", "cancelled", "expired", "failed", "dead_letter",
	"running", "cancel_requested", "retry_wait", "ready", "pending", "scheduled",
}

// aliveOrder puts what moves first.
var aliveOrder = []string{
	"running", "ready", "pending", "scheduled", "retry_wait", "cancel_requested",
	"dead_letter", "failed", "succeeded", "skipped", "cancelled", "expired",
}

func ordered(counts []StateCount) []StateCount { return arranged(counts, stackOrder) }

func arranged(counts []StateCount, order []string) []StateCount {
	var out []StateCount
	for _, state := range order {
		for _, entry := range counts {
			if entry.State == state && entry.Count > 0 {
				out = append(out, entry)
			}
		}
	}
	return out
}

// tabs are the states that a list offers, with their figures as far as they are known.
func tabs(counts []StateCount) []StateCount {
	var out []StateCount
	for _, state := range []string{"running", "ready", "pending", "scheduled", "retry_wait", "dead_letter", "failed", "succeeded", "cancelled"} {
		entry := StateCount{State: state}
		for _, known := range counts {
			if known.State == state {
				entry = known
			}
		}
		out = append(out, entry)
	}
	return out
}

func (s StateCount) figure() string {
	if s.More {
		return short(s.Count) + "+"
	}
	return short(s.Count)
}

func total(counts []StateCount) int {
	sum := 0
	for _, entry := range counts {
		sum += entry.Count
	}
	return sum
}

func countOf(counts []StateCount, state string) int {
	for _, entry := range counts {
		if entry.State == state {
			return entry.Count
		}
	}
	return 0
}

// over is how many have ended, one way or another.
func over(counts []StateCount) int {
	sum := 0
	for _, state := range []string{"succeeded", "skipped", "cancelled", "expired", "failed"} {
		sum += countOf(counts, state)
	}
	return sum
}

func stack(counts []StateCount) []piece {
	whole := total(counts)
	if whole == 0 {
		return nil
	}
	var pieces []piece
	at := 0.0
	for _, entry := range ordered(counts) {
		width := 100 * float64(entry.Count) / float64(whole)
		pieces = append(pieces, piece{
			State: entry.State,
			X:     strconv.FormatFloat(at, 'f', 2, 64),
			Width: strconv.FormatFloat(width, 'f', 2, 64),
			Label: count(entry.Count) + " " + words(entry.State),
		})
		at += width
	}
	return pieces
}

func sentence(counts []StateCount) string {
	var parts []string
	for _, entry := range ordered(counts) {
		parts = append(parts, count(entry.Count)+" "+words(entry.State))
	}
	if len(parts) == 0 {
		return "no tasks"
	}
	return strings.Join(parts, ", ")
}

func sparkPoints(values []int) []string {
	most := 1
	for _, value := range values {
		most = max(most, value)
	}
	points := make([]string, len(values))
	for i, value := range values {
		x := 100 * float64(i) / float64(len(values)-1)
		y := 22.5 - 21*float64(value)/float64(most)
		points[i] = fmt.Sprintf("%.1f %.1f", x, y)
	}
	return points
}

func sparkLine(values []int) string { return "M" + strings.Join(sparkPoints(values), "L") }

func sparkArea(values []int) string { return sparkLine(values) + "L100 24L0 24Z" }
