package ui

import (
	"strings"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

// A query line is words `name:value`; values of one name are alternatives, names must all fit. A bare word is a type, and
// a value with blanks stands in quotes.

// readQuery turns a query line into a filter.
func readQuery(line string, now models.Instant) (*postgres.TaskFilter, error) {
	filter := &postgres.TaskFilter{Labels: map[string][]string{}}
	for _, word := range splitQuery(line) {
		name, value, named := strings.Cut(word, ":")
		if !named {
			name, value = "type", word
		}
		if err := addWord(filter, name, value, now); err != nil {
			return nil, err
		}
	}
	return filter, nil
}

func addWord(f *postgres.TaskFilter, name, value string, now models.Instant) (err error) {
	if value == "" {
		return wrongWord("“%s:” has no value", name)
	}
	switch name {
	case "state":
		state, ok := models.ParseState(value)
		if !ok {
			return wrongWord("there is no state “%s”", value)
		}
		f.States = append(f.States, state)
	case "type":
		f.Types = append(f.Types, value)
	case "lane":
		f.Lanes = append(f.Lanes, value)
	case "kind":
		kind, ok := models.ParseKind(value)
		if !ok {
			return wrongWord("there is no kind “%s”", value)
		}
		f.Kinds = append(f.Kinds, kind)
	case "workflow":
		return addID(&f.Workflows, models.WorkflowPrefix, value)
	case "worker":
		return addID(&f.Workers, models.WorkerPrefix, value)
	case "fingerprint":
		var id models.ID
		if id.UnmarshalText([]byte(value)) != nil {
			return wrongWord("“%s” is no fingerprint", value)
		}
		f.Fingerprints = append(f.Fingerprints, id)
	case "created":
		return addCreated(f, value, now)
	default:
		label, ok := strings.CutPrefix(name, "label.")
		if !ok || label == "" {
			return wrongWord("there is no filter “%s”: use state, type, lane, kind, worker, workflow, fingerprint, created or label.NAME", name)
		}
		f.Labels[label] = append(f.Labels[label], value)
	}
	return nil
}

func addID(to *[]models.ID, prefix, value string) error {
	id, err := models.ParseID(prefix, value)
	if err != nil {
		return wrongWord("“%s” is no id like %s_…", value, prefix)
	}
	*to = append(*to, id)
	return nil
}

// addCreated reads "<1h" (younger than) and ">2d" (older than).
func addCreated(f *postgres.TaskFilter, value string, now models.Instant) error {
	if len(value) < 3 || value[0] != '<' && value[0] != '>' {
		return wrongWord("“created:%s” is not like created:<1h or created:>2d", value)
	}
	unit := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[value[len(value)-1]]
	count := 0
	for _, digit := range value[1 : len(value)-1] {
		if digit < '0' || digit > '9' || count > 100_000 {
			return wrongWord("“created:%s” is not like created:<1h or created:>2d", value)
		}
		count = 10*count + int(digit-'0')
	}
	if unit == 0 || count == 0 {
		return wrongWord("“created:%s” is not like created:<1h or created:>2d", value)
	}
	at := max(1, now.Add(-min(time.Duration(count)*unit, 100*365*24*time.Hour)))
	if value[0] == '<' {
		f.CreatedAfter = at
	} else {
		f.CreatedBefore = at
	}
	return nil
}

func wrongWord(format string, args ...any) error {
	return models.Errorf(models.InvalidQuery, format, args...)
}

// splitQuery cuts at blanks outside of quotes; the quotes go.
func splitQuery(line string) []string {
	var words []string
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range line {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case !quoted && (r == ' ' || r == '\t' || r == '\n' || r == '\r'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words
}
