package templates

import (
	"strconv"
	"strings"
	"time"
)

// previewFields are the fields of the editor that say when.
const previewFields = "kind,expression,every_seconds,interval_from,run_at,timezone,dst_gap,dst_overlap,start_at,end_at,calendar_exclude,partitions," +
	"event_name,event_debounce_seconds,event_max_wait_seconds,event_max_events,drain_queue,drain_max_items,drain_batch_size"

func triggerAct(p Page, row ScheduleRow) Act {
	return Act{Label: "Run now", Icon: "player-play", To: p.Object("/schedules", row.ID, "trigger"), Explain: "One run is made at once, beside those of its rule, which go on as they would."}
}

func pauseAct(p Page, row ScheduleRow) Act {
	return Act{Label: "Pause", Icon: "player-pause", To: p.Object("/schedules", row.ID, "pause"), Explain: "Its occurrences are skipped until it is resumed; what runs goes on."}
}

func resumeAct(p Page, row ScheduleRow) Act {
	return Act{Label: "Resume", Icon: "player-play", To: p.Object("/schedules", row.ID, "resume"), Explain: "It goes on with its next occurrence. What was missed is not made up."}
}

func rollbackAct(p Page, v ScheduleView, version VersionRow) Act {
	return Act{
		Label: "Roll back", Icon: "arrow-back-up", To: p.Object("/schedules", v.ID, "rollback"),
		Explain: "A new version is made that says what version " + strconv.FormatInt(version.Version, 10) + " said.",
		Fields:  []Pair{{"to", strconv.FormatInt(version.Version, 10)}, {"version", strconv.FormatInt(v.Version, 10)}},
	}
}

func spanOrDash(seconds float64) string {
	if seconds <= 0 {
		return "–"
	}
	return span(seconds)
}

func inWords(now, at time.Time) string {
	if at.IsZero() {
		return "none"
	}
	return ago(now, at)
}

func nextNote(v ScheduleView) string {
	switch {
	case !v.Enabled:
		return "it is paused"
	case v.gathers():
		return "when something comes"
	case v.NextAt.IsZero():
		return "nothing is to come"
	default:
		return instant(v.NextAt) + " UTC"
	}
}

// gathers says that it follows no clock.
func (v ScheduleView) gathers() bool { return v.Kind == "event" || v.Kind == "drain" }

func lastNote(v ScheduleView) string {
	if v.LastFor.IsZero() {
		return "it has not run yet"
	}
	return outcomeWords(v.LastOutcome) + ", " + instant(v.LastFor) + " UTC"
}

func lateWords(v ScheduleView) string {
	switch {
	case !v.Timed:
		return "–"
	case v.Late < 0.001:
		return "on time"
	default:
		return span(v.Late)
	}
}

func outcomeWords(outcome string) string {
	if outcome == "" {
		return "waits"
	}
	return words(outcome)
}

func pausedWords(row ScheduleRow) string {
	text := "It is paused"
	switch {
	case row.PausedBy == "failures":
		text += " because too many of its runs failed in a row"
	case row.Reason != "":
		text += ": " + row.Reason
	}
	return text + "."
}

// marksWords sums the marks up for those who do not see them.
func marksWords(marks []RunMark) string {
	counts := map[string]int{}
	var order []string
	for _, mark := range marks {
		if counts[mark.Tone]++; counts[mark.Tone] == 1 {
			order = append(order, mark.Tone)
		}
	}
	var parts []string
	for _, tone := range order {
		parts = append(parts, strconv.Itoa(counts[tone])+" "+words(tone))
	}
	return "the last runs: " + strings.Join(parts, ", ")
}

func changedNames(version VersionRow) string {
	var names []string
	for _, change := range version.Changes {
		names = append(names, change.Name)
	}
	return strings.Join(names, ", ")
}

func (f ScheduleForm) title() string {
	if f.ID == "" {
		return ""
	}
	return f.Values["name"]
}

func (f ScheduleForm) save() string {
	if f.ID == "" {
		return "Create"
	}
	return "Save"
}

func (f ScheduleForm) action(p Page) string {
	if f.ID == "" {
		return p.URL("/schedules")
	}
	return p.Object("/schedules", f.ID, "edit")
}

func (f ScheduleForm) back(p Page) string {
	if f.ID == "" {
		return p.URL("/schedules")
	}
	return p.Object("/schedules", f.ID)
}

// otherMode is the editor as JSON, or as a form again.
func (f ScheduleForm) otherMode(p Page) string {
	as := "json"
	if f.JSON {
		as = ""
	}
	if f.ID == "" {
		return p.URL("/schedules/new", "as", as)
	}
	return p.URL(ObjectPath("/schedules", f.ID, "edit"), "as", as)
}

// elsewhere says that the schedule's clock shows another time than UTC.
func (r NextRun) elsewhere() bool {
	_, offset := r.At.Zone()
	return offset != 0
}

// to is the list with the same filter.
func (v SchedulesView) to(p Page, more ...string) string {
	return p.URL("/schedules", append([]string{"q", v.Filter["q"], "kind", v.Filter["kind"], "state", v.Filter["state"]}, more...)...)
}

// older is its next page; empty: there is none.
func (v SchedulesView) older(p Page) string {
	if v.Next == "" {
		return ""
	}
	return v.to(p, "cursor", v.Next)
}
