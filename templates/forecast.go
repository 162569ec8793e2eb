package templates

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// ForecastView is what the schedules of the environment are going to ask for in a day.
type ForecastView struct {
	From       time.Time
	Slots      []ForecastSlot // by their moment; those that are left out are empty
	Capacity   int64          // slots; 0: no worker serves the environment
	Collisions []CollisionRow
	More       int // collisions that are not shown
}

// ForecastSlot is five minutes over all lanes.
type ForecastSlot struct {
	At       time.Time
	P50, P90 float64
}

// CollisionRow is a stretch in which schedules meet, with the move that lowers its peak.
type CollisionRow struct {
	From, To, MoveTo time.Time
	Peak, PeakAfter  float64
	Over             bool
	Count            int
	ID, Name         string // of the schedule to be moved; empty: there is none
}

// The picture of a day: five minutes are three units wide.
const (
	daySlots   = 288
	slotWidth  = 3
	dayHeight  = 96
	dayWidth   = daySlots * slotWidth
	slotLength = 5 * time.Minute
	hourRoom   = 30 * time.Minute // what an hour's text needs to the edges
)

// dayPicture is a forecast as it is drawn.
type dayPicture struct {
	Mid, High string // outlines of what is foreseen
	Top       float64
	Line      string // height of the capacity; empty: beyond the picture, or not known
	Bands     []dayBand
	Hours     []dayHour
}

type dayBand struct {
	X, Width string
	Title    string
}

type dayHour struct{ X, Text string }

func (v *ForecastView) picture() (d dayPicture) {
	begin := v.From.Truncate(slotLength)
	var mid, high [daySlots]float64
	for _, s := range v.Slots {
		if i := int(s.At.Sub(begin) / slotLength); i >= 0 && i < daySlots {
			mid[i], high[i] = s.P50, s.P90
			d.Top = max(d.Top, s.P90)
		}
	}
	scale := d.Top
	if c := float64(v.Capacity); c > 0 && c <= 3*d.Top {
		scale = max(scale, c)
		d.Line = drawn(dayHeight * (1 - c/(1.08*scale)))
	}
	outline := func(values *[daySlots]float64) string {
		var out strings.Builder
		fmt.Fprintf(&out, "M0 %d", dayHeight)
		last := -1.0
		for i, n := range values {
			if n != last {
				fmt.Fprintf(&out, "H%dV%s", i*slotWidth, drawn(dayHeight*(1-n/max(1.08*scale, 1e-9))))
				last = n
			}
		}
		fmt.Fprintf(&out, "H%dV%dZ", dayWidth, dayHeight)
		return out.String()
	}
	d.Mid, d.High = outline(&mid), outline(&high)
	for _, c := range v.Collisions {
		from, to := c.From.Sub(begin), c.To.Sub(begin)
		x := float64(max(0, from)) / float64(slotLength) * slotWidth
		width := max(2, float64(min(to, 24*time.Hour)-max(0, from))/float64(slotLength)*slotWidth)
		d.Bands = append(d.Bands, dayBand{drawn(x), drawn(width), c.when() + ": " + c.words()})
	}
	for at := begin.Truncate(time.Hour).Add(time.Hour); at.Before(begin.Add(24*time.Hour - hourRoom)); at = at.Add(time.Hour) {
		if at.UTC().Hour()%3 == 0 && !at.Before(begin.Add(hourRoom)) {
			d.Hours = append(d.Hours, dayHour{X: drawn(float64(at.Sub(begin)) / float64(slotLength) * slotWidth), Text: at.UTC().Format("15:04")})
		}
	}
	return d
}

// drawn is a number of a drawing.
func drawn(n float64) string { return strconv.FormatFloat(math.Round(n*10)/10, 'f', -1, 64) }

// tasksAtOnce is a number of tasks: whole ones where they are many.
func tasksAtOnce(n float64) string {
	if n >= 10 || n == math.Trunc(n) {
		return strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func (c *CollisionRow) when() string {
	return c.From.UTC().Format("15:04") + "–" + c.To.UTC().Format("15:04 UTC")
}

func (c *CollisionRow) words() string {
	out := tasksAtOnce(c.Peak) + " tasks at once, of " + plural(c.Count, "schedule", "schedules")
	if c.Over {
		out += ": more than there are slots"
	}
	return out
}

func (v *ForecastView) words() string {
	d := v.picture()
	out := "At most " + tasksAtOnce(d.Top) + " tasks at once"
	if d.Top == 1 {
		out = "At most 1 task at once"
	}
	if v.Capacity > 0 {
		out += ", with " + plural(int(v.Capacity), "slot", "slots") + " now"
	}
	return out
}

func moveAct(p Page, c CollisionRow) Act {
	return Act{
		Label: "Move", Icon: "calendar-time", To: p.Object("/schedules", c.ID, "move"), Fields: []Pair{{"move_to", c.MoveTo.UTC().Format(time.RFC3339)}},
		Explain: "This occurrence goes to " + c.MoveTo.UTC().Format("15:04 UTC") + ", and all others of the schedule move by as much. The peak goes from " + tasksAtOnce(c.Peak) + " to " + tasksAtOnce(c.PeakAfter) + ".",
	}
}

// words say what is foreseen when a rule runs next; empty where nothing is to be said.
func (v QuieterView) words() string {
	if v.At.IsZero() {
		return ""
	}
	out := "Nothing else is foreseen"
	if v.Peak > 0 {
		out = tasksAtOnce(v.Peak) + " tasks at once are foreseen"
		if v.Peak == 1 {
			out = "1 task is foreseen"
		}
	}
	out += " when it runs next, " + v.At.Format("15:04 UTC")
	if v.Capacity > 0 {
		out += ", with " + plural(int(v.Capacity), "slot", "slots") + " now"
	}
	return out + "."
}

// better names a quieter time near it, where there is one and it matters.
func (v QuieterView) better() string {
	if v.At.IsZero() || v.Least >= v.Peak || v.Peak < 2 && !v.Over {
		return ""
	}
	return "Quieter: " + v.Better.Format("15:04 UTC") + ", with " + tasksAtOnce(v.Least) + "."
}
