package calendar

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
)

// Values fill the placeholders of one run's payload.
type Values struct {
	ScheduledFor   time.Time
	RunID          string
	PartitionIndex int
	PartitionCount int
	Watermarks     map[string]string // one that was never set is empty
	Vars           map[string]string // one that is not there is an error
}

const (
	opening = "{{"
	closing = "}}"
)

// Expand fills {{scheduled_for}} {{run_id}} {{partition.index}} {{partition.count}} {{watermark.NAME}} {{vars.NAME}} in a
// payload, which is JSON, so that each stands inside a string and is escaped for one. Anything else in braces is the
// payload's own and stays, and what was filled in is not looked at again. The answer has at most so many bytes.
func Expand(payload string, v Values, most int) (string, error) {
	var out strings.Builder
	for rest := payload; ; {
		before, name, after, found := nextPlaceholder(rest)
		out.WriteString(before)
		if !found {
			break
		}
		value, err := v.value(name)
		if err != nil {
			return "", err
		}
		out.WriteString(escaped(value))
		if rest = after; out.Len() > most {
			break
		}
	}
	if out.Len() > most {
		return "", models.Errorf(models.ValidationFailed, "the payload with its placeholders filled in has more than %d bytes", most)
	}
	return out.String(), nil
}

// Placeholders are the watermarks and variables that a payload asks for, each once and sorted.
func Placeholders(payload string) (watermarks, vars []string) {
	for rest := payload; ; {
		_, name, after, found := nextPlaceholder(rest)
		if !found {
			break
		}
		if mark, ok := strings.CutPrefix(name, "watermark."); ok {
			watermarks = append(watermarks, mark)
		} else if variable, ok := strings.CutPrefix(name, "vars."); ok {
			vars = append(vars, variable)
		}
		rest = after
	}
	slices.Sort(watermarks)
	slices.Sort(vars)
	return slices.Compact(watermarks), slices.Compact(vars)
}

// Unknown are the names in braces that look like placeholders and are none of ours, each once: a slip of whoever wrote them.
func Unknown(payload string) (names []string) {
	for rest := payload; ; {
		_, inside, found := strings.Cut(rest, opening)
		if !found {
			break
		}
		rest = inside
		if end := strings.Index(inside[:min(len(inside), mostName)], closing); end >= 0 {
			if name := strings.TrimSpace(inside[:end]); isName(name) && !isOurs(name) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// isName says that a text is words joined by dots, as placeholders are.
func isName(text string) bool {
	for i, r := range text {
		switch {
		case r == '_', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		case i > 0 && (r == '.' || r == ':' || r == '-' || '0' <= r && r <= '9'):
		default:
			return false
		}
	}
	return text != ""
}

// nextPlaceholder cuts a text around the first placeholder that is ours; without one, all of it comes before.
func nextPlaceholder(text string) (before, name, after string, found bool) {
	for from := 0; ; {
		begin := strings.Index(text[from:], opening)
		if begin < 0 {
			return text, "", "", false
		}
		begin += from
		inside := text[begin+len(opening):]
		if end := strings.Index(inside[:min(len(inside), mostName)], closing); end >= 0 {
			if name := strings.TrimSpace(inside[:end]); isOurs(name) {
				return text[:begin], name, inside[end+len(closing):], true
			}
		}
		from = begin + 1
	}
}

// mostName bounds how far a placeholder reaches.
const mostName = 256

func isOurs(name string) bool {
	switch name {
	case "scheduled_for", "run_id", "partition.index", "partition.count":
		return true
	}
	mark, isMark := strings.CutPrefix(name, "watermark.")
	variable, isVar := strings.CutPrefix(name, "vars.")
	return isMark && mark != "" || isVar && variable != ""
}

func (v Values) value(name string) (string, error) {
	switch name {
	case "scheduled_for":
		return v.ScheduledFor.UTC().Format(time.RFC3339Nano), nil
	case "run_id":
		return v.RunID, nil
	case "partition.index":
		return strconv.Itoa(v.PartitionIndex), nil
	case "partition.count":
		return strconv.Itoa(v.PartitionCount), nil
	}
	if mark, ok := strings.CutPrefix(name, "watermark."); ok {
		return v.Watermarks[mark], nil
	}
	variable := strings.TrimPrefix(name, "vars.")
	value, ok := v.Vars[variable]
	if !ok {
		return "", models.Errorf(models.ValidationFailed, "the payload asks for the variable %q, which is not set", variable)
	}
	return value, nil
}

// escaped is a text as it stands between the quotes of a JSON string.
func escaped(text string) string {
	quoted, err := json.Marshal(text)
	if err != nil { // no string fails
		return ""
	}
	return string(quoted[1 : len(quoted)-1])
}
