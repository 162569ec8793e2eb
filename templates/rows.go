package templates

import (
	"math"
	"strconv"
	"strings"
	"time"
)

func limitOf(limit int) string {
	if limit == 0 {
		return ""
	}
	return "/ " + strconv.Itoa(limit)
}

// emptyIn says when a lane will be empty at its present pace.
func emptyIn(lane LaneTile) string {
	switch {
	case lane.Depth == 0:
		return "nothing waits"
	case lane.EmptySeconds == nil:
		return "not emptying"
	default:
		return "empty in " + coarse(*lane.EmptySeconds)
	}
}

func joined(list []string) string { return strings.Join(list, ", ") }

// anchor is a fragment identifier made of whatever a fingerprint holds.
func anchor(fingerprint string) string {
	var out strings.Builder
	out.WriteString("group-")
	for _, r := range fingerprint {
		if r < 128 && (r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			out.WriteRune(r)
		} else {
			out.WriteString(strconv.FormatInt(int64(r), 36))
		}
	}
	return out.String()
}

func rowName(row TaskRow) string {
	if row.Key != "" {
		return row.Key
	}
	return row.Type
}

func rowSub(row TaskRow) string {
	if row.Key != "" {
		return row.Type + " " + brief(row.ID)
	}
	return brief(row.ID)
}

// waited is the time from ready to the start, or to now.
func waited(now time.Time, row TaskRow) string {
	switch {
	case row.ReadyAt.IsZero():
		return "–"
	case !row.StartedAt.IsZero() && row.StartedAt.After(row.ReadyAt):
		return between(row.ReadyAt, row.StartedAt)
	case row.FinishedAt.IsZero():
		return between(row.ReadyAt, now)
	default:
		return between(row.ReadyAt, row.FinishedAt)
	}
}

func ran(now time.Time, row TaskRow) string {
	switch {
	case row.StartedAt.IsZero():
		return "–"
	case row.FinishedAt.After(row.StartedAt):
		return between(row.StartedAt, row.FinishedAt)
	case row.State == "running" || row.State == "cancel_requested":
		return between(row.StartedAt, now)
	default:
		return "–"
	}
}

// withState puts a state in place of those the query line names.
func withState(query, state string) string {
	var kept []string
	for _, word := range strings.Fields(query) {
		if !strings.HasPrefix(word, "state:") {
			kept = append(kept, word)
		}
	}
	if state != "" {
		kept = append([]string{"state:" + state}, kept...)
	}
	return strings.Join(kept, " ")
}

func hasState(query string) bool { return strings.Contains(" "+query, " state:") }

func isState(query, state string) bool {
	for _, word := range strings.Fields(query) {
		if word == "state:"+state {
			return true
		}
	}
	return false
}

// nextOf is the link to the page behind the cursor, "" on the last.
func nextOf(p Page, path, name, value, cursor string) string {
	if cursor == "" {
		return ""
	}
	return p.URL(path, name, value, "cursor", cursor)
}

func servedBy(card WorkerCard) string {
	if card.Tenant == "" {
		return "every tenant"
	}
	return card.Tenant
}

func orAll(list []string) string {
	if len(list) == 0 {
		return "all"
	}
	return joined(list)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func deadSum(v DeadLettersView) string {
	if v.Total == 0 {
		return ""
	}
	return plural(v.Total, "task waits", "tasks wait") + " for a decision, in " + plural(len(v.Groups), "group", "groups")
}

func laneSub(lane LaneRow) string {
	text := lane.Kind
	if lane.Elastic {
		text += ", elastic"
	}
	if lane.Description != "" {
		text += " · " + lane.Description
	}
	return text
}

// holdText is how much of a pool is left for a lane that is held.
func holdText(h LaneHold) string {
	return strconv.Itoa(h.Room) + " of " + number(h.Slots) + " slots of " + h.Pool + ", " + number(math.Round(h.Needed*10)/10) + " needed"
}

func agoOrNever(now, at time.Time) string {
	if at.IsZero() || now.Sub(at) > 24*time.Hour {
		return "never"
	}
	return ago(now, at)
}
