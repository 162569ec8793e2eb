package templates

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// count writes a whole number with thin groups: 12,345.
func count(n int) string {
	text := strconv.Itoa(n)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return sign + text
}

// short writes a number in at most four signs: 950, 12.3k, 4.1M.
func short(n int) string {
	switch {
	case n < 10_000:
		return count(n)
	case n < 1_000_000:
		return trimmed(float64(n)/1e3) + "k"
	default:
		return trimmed(float64(n)/1e6) + "M"
	}
}

func trimmed(x float64) string {
	if x >= 100 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strings.TrimSuffix(strconv.FormatFloat(x, 'f', 1, 64), ".0")
}

// rate writes events a second.
func rate(perSecond float64) string {
	switch {
	case perSecond <= 0:
		return "0/s"
	case perSecond < 0.1:
		return trimmed(perSecond*60) + "/min"
	default:
		return trimmed(perSecond) + "/s"
	}
}

// span writes a length of time in its two largest units: 1 h 04 min.
func span(seconds float64) string {
	switch {
	case math.IsNaN(seconds) || math.IsInf(seconds, 0):
		return "–"
	case seconds < 0.001:
		return "0 s"
	case seconds < 1:
		return fmt.Sprintf("%d ms", int(seconds*1000+0.5))
	case seconds < 10:
		return trimmed(seconds) + " s"
	case seconds < 60:
		return fmt.Sprintf("%d s", int(seconds+0.5))
	}
	whole := int(seconds + 0.5)
	switch {
	case whole < 3600:
		return fmt.Sprintf("%d min %02d s", whole/60, whole%60)
	case whole < 86_400:
		return fmt.Sprintf("%d h %02d min", whole/3600, whole%3600/60)
	default:
		return fmt.Sprintf("%d d %02d h", whole/86_400, whole%86_400/3600)
	}
}

func between(from, to time.Time) string {
	if from.IsZero() || to.IsZero() {
		return "–"
	}
	return span(math.Max(0, to.Sub(from).Seconds()))
}

// ago writes a moment as seen from now; app.js keeps it fresh.
func ago(now, at time.Time) string {
	seconds := now.Sub(at).Seconds()
	switch {
	case seconds < -1:
		return "in " + coarse(-seconds)
	case seconds < 2:
		return "just now"
	default:
		return coarse(seconds) + " ago"
	}
}

// coarse writes a length of time in its largest unit.
func coarse(seconds float64) string {
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", int(seconds))
	case seconds < 3600:
		return fmt.Sprintf("%d min", int(seconds/60))
	case seconds < 2*86_400:
		return fmt.Sprintf("%d h", int(seconds/3600))
	default:
		return fmt.Sprintf("%d d", int(seconds/86_400))
	}
}

func machine(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

func clock(at time.Time) string { return at.UTC().Format("15:04:05") }

func instant(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

// memory writes megabytes.
func memory(mb int) string {
	if mb < 1024 {
		return strconv.Itoa(mb) + " MB"
	}
	return trimmed(float64(mb)/1024) + " GB"
}

// bytesOf writes a size in bytes.
func bytesOf(n int) string {
	switch {
	case n < 1024:
		return strconv.Itoa(n) + " B"
	case n < 1<<20:
		return trimmed(float64(n)/1024) + " kB"
	default:
		return trimmed(float64(n)/(1<<20)) + " MB"
	}
}

// money writes US dollars, with as many decimals as the amount needs.
func money(usd float64) string {
	if usd != 0 && math.Abs(usd) < 0.01 {
		return "$" + strconv.FormatFloat(usd, 'f', 6, 64)
	}
	return "$" + strconv.FormatFloat(usd, 'f', 2, 64)
}

func percent(part float64) string { return trimmed(part*100) + " %" }

// number writes a quantity without needless decimals.
func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// words turns a stable snake_case word into what people read.
func words(code string) string { return strings.ReplaceAll(code, "_", " ") }

// brief shortens an id to its prefix and last signs, which tell rows apart.
func brief(id string) string {
	prefix, rest, ok := strings.Cut(id, "_")
	if !ok || len(rest) <= 10 {
		return id
	}
	return prefix + "_…" + rest[len(rest)-8:]
}

// plural writes a count with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return count(n) + " " + many
}

// cut shortens a text to about so many letters.
func cut(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters {
		return text
	}
	return string(runes[:letters-1]) + "…"
}
