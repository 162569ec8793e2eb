package templates

import "fmt"

// The drawing of a task's states: where each stands, and the usual ways.
const (
	stateWidth  = 124
	stateHeight = 42
)

type spot struct{ X, Y int }

var spots = map[string]spot{
	"scheduled":        {8, 22},
	"pending":          {8, 102},
	"ready":            {184, 62},
	"running":          {360, 62},
	"retry_wait":       {184, 150},
	"cancel_requested": {396, 150},
	"succeeded":        {560, 8},
	"failed":           {560, 79},
	"dead_letter":      {560, 150},
	"cancelled":        {716, 8},
	"expired":          {716, 79},
	"skipped":          {716, 150},
}

// usual are the ways that are drawn for every task.
var usual = [][2]string{
	{"scheduled", "ready"},
	{"pending", "ready"},
	{"ready", "running"},
	{"running", "succeeded"},
	{"running", "failed"},
	{"running", "dead_letter"},
	{"running", "retry_wait"},
	{"retry_wait", "ready"},
	{"running", "cancel_requested"},
}

var stateOrder = []string{
	"scheduled", "pending", "ready", "running", "retry_wait", "cancel_requested",
	"succeeded", "failed", "dead_letter", "cancelled", "expired", "skipped",
}

// station is a state as drawn for one task.
type station struct {
	State   string
	Place   string
	Note    string // the time, and how often
	Current bool
	Visited bool
}

type way struct {
	Path  string
	Taken bool
}

func stations(state string, steps []Step) []station {
	last := map[string]Step{}
	for _, step := range steps {
		last[step.State] = step
	}
	out := make([]station, 0, len(stateOrder))
	for _, name := range stateOrder {
		step, visited := last[name]
		s := station{
			State:   name,
			Place:   fmt.Sprintf("translate(%d %d)", spots[name].X, spots[name].Y),
			Current: name == state,
			Visited: visited || name == state,
		}
		if visited && !step.At.IsZero() {
			s.Note = clock(step.At)
		}
		if step.Times > 1 {
			s.Note += fmt.Sprintf(" ×%d", step.Times)
		}
		out = append(out, s)
	}
	return out
}

// ways are the usual ones and whatever else the task took.
func ways(steps []Step) []way {
	taken := map[[2]string]bool{}
	for i := 1; i < len(steps); i++ {
		taken[[2]string{steps[i-1].State, steps[i].State}] = true
	}
	var out []way
	drawn := map[[2]string]bool{}
	for _, ends := range usual {
		drawn[ends] = true
		if !taken[ends] {
			out = append(out, way{Path: wayPath(ends[0], ends[1])})
		}
	}
	for i := 1; i < len(steps); i++ {
		ends := [2]string{steps[i-1].State, steps[i].State}
		if !taken[ends] || ends[0] == ends[1] {
			continue
		}
		taken[ends] = false
		out = append(out, way{Path: wayPath(ends[0], ends[1]), Taken: true})
	}
	return out
}

// wayPath leaves by the side that faces the other state.
func wayPath(from, to string) string {
	a, b := spots[from], spots[to]
	right, middle := a.X+stateWidth, a.Y+stateHeight/2
	switch {
	case b.Y >= a.Y+stateHeight && b.X >= a.X && b.X < right: // down
		return fmt.Sprintf("M%d %dV%d", (b.X+right)/2, a.Y+stateHeight, b.Y)
	case a.Y >= b.Y+stateHeight && a.X >= b.X && a.X < b.X+stateWidth: // up
		return fmt.Sprintf("M%d %dV%d", (a.X+b.X+stateWidth)/2, a.Y, b.Y+stateHeight)
	case b.X < a.X && b.Y > a.Y: // down and back: out below, in by the side
		x, y := a.X+stateWidth/8, b.Y+stateHeight/2
		side := b.X + stateWidth
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x, a.Y+stateHeight, x, y-12, side+38, y, side, y)
	case b.X < a.X: // straight back
		return fmt.Sprintf("M%d %dL%d %d", a.X, middle, b.X+stateWidth, b.Y+stateHeight/2)
	default:
		bend := (b.X - right) / 2
		return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", right, middle, right+bend, middle, b.X-bend, b.Y+stateHeight/2, b.X, b.Y+stateHeight/2)
	}
}
