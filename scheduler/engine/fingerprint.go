package engine

import (
	"crypto/sha256"
	"regexp"
	"strings"

	"nightshift/models"
)

// fingerprint groups dead letters that died of the same: type, class, message without what differs between two failures of one
// cause, and the frame in which it happened.
func fingerprint(taskType string, failure *models.TaskError) models.ID {
	sum := sha256.Sum256([]byte(strings.Join([]string{taskType, failure.Class, normalise(failure.Message), topFrame(failure.Stack)}, "\x00")))
	return models.ID(sum[:16])
}

// quoted is a name in quotes, of however many words. An apostrophe within a word begins none.
var quoted = regexp.MustCompile("\"[^\"]*\"|`[^`]*`|(^|[\\s(\\[{=:,])'[^']*'")

// normalise replaces what differs between two failures of one cause: what is quoted, and words with digits or paths in them.
func normalise(message string) string {
	words := strings.Fields(quoted.ReplaceAllString(message, "${1}·"))
	for i, w := range words {
		if strings.ContainsAny(w, "0123456789") || strings.ContainsAny(w, `"'/`+"`") {
			words[i] = "·"
		}
	}
	return strings.Join(words, " ")
}

var (
	pythonFrame = regexp.MustCompile(`^File "(?:[^"]*[/\\])?([^"/\\]*)", line \d+(?:, in (.*))?$`)
	position    = regexp.MustCompile(`(?::\d+)+\)?$`) // line and column
)

// topFrame is the function in which a failure happened, without lines, folders and arguments, which differ between versions and
// machines. It reads the stacks of Go, Python, and those whose frames begin with "at"; of any other it is the first line.
func topFrame(stack string) string {
	stack = strings.TrimSpace(stack)
	lines := strings.Split(stack, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], "\r ")
	}
	switch {
	case strings.HasPrefix(stack, "goroutine "):
		if f := goFrame(lines[1:]); f != "" {
			return f
		}
	case strings.Contains(stack, "Traceback (most recent call last)"):
		if f := lastPython(lines); f != "" {
			return f
		}
	}
	for _, line := range lines {
		if f, is := strings.CutPrefix(strings.TrimSpace(line), "at "); is {
			return atFrame(f)
		}
	}
	return normalise(position.ReplaceAllString(lines[0], ""))
}

// goFrame is the first function that is not the runtime's; after a panic, the one that panicked.
func goFrame(lines []string) (frame string) {
	for _, line := range lines {
		call := strings.LastIndexByte(line, '(')
		switch {
		case strings.HasPrefix(line, "goroutine "): // that of another follows
			return frame
		case call <= 0, line[0] == '\t', strings.HasPrefix(line, "created by "), strings.HasPrefix(line, "runtime."), strings.HasPrefix(line, "runtime/"):
		case strings.HasPrefix(line, "panic("):
			frame = "" // what stands above it ran because of it
		case frame == "":
			frame = line[:call]
		}
	}
	return frame
}

// lastPython is the innermost frame of the exception that was raised last.
func lastPython(lines []string) (frame string) {
	for _, line := range lines {
		if m := pythonFrame.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			frame = m[1] + " " + m[2]
		}
	}
	return frame
}

// atFrame is what stands behind "at": a function, with where it stands in brackets, or that alone.
func atFrame(f string) string {
	if i := strings.LastIndexByte(f, '('); i > 0 {
		return strings.TrimSpace(f[:i])
	}
	f = position.ReplaceAllString(f, "")
	return f[strings.LastIndexAny(f, `/\`)+1:]
}
