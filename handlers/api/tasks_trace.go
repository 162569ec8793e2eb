package api

import (
	"encoding/hex"
	"strconv"
	"strings"

	"nightshift/models"
)

// traceparent gives a W3C traceparent back when it is one, else nothing: a bad one is ignored.
func traceparent(text string) string {
	if len(text) < 55 || len(text) > 255 || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return ""
	}
	version, trace, span, flags := text[:2], text[3:35], text[36:52], text[53:55]
	switch {
	case !lowerHex(version) || version == "ff" || version == "00" && len(text) != 55 || len(text) > 55 && text[55] != '-':
	case !lowerHex(trace) || strings.Trim(trace, "0") == "":
	case !lowerHex(span) || strings.Trim(span, "0") == "" || !lowerHex(flags):
	default:
		return text
	}
	return ""
}

func lowerHex(text string) bool { return strings.Trim(text, "0123456789abcdef") == "" }

// traceID is the trace of a traceparent, empty for none.
func traceID(parent string) string {
	if len(parent) < 35 {
		return ""
	}
	return parent[3:35]
}

// traceOf is the trace that a task belongs to: the submitter's, else its workflow's or its own.
func traceOf(trace string, workflow, task models.ID) string {
	switch {
	case trace != "":
		return traceID(trace)
	case !workflow.IsZero():
		return hex.EncodeToString(workflow[:])
	}
	return hex.EncodeToString(task[:])
}

// plural is "1 task" or "3 tasks".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatInt(n, 10) + " " + noun + "s"
}
