package dag

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"cel.dev/cel-go/cel"
)

// Bounds of a condition: how long its text may be, and how much work judging it once may take.
const (
	MostConditionBytes = 4_096
	mostWork           = 100_000
)

// Condition is a compiled run_if: whether a task is run, once nothing is left to wait for. It may be judged many times.
type Condition struct{ program cel.Program }

// Scope is what a condition sees. Deps are in the order in which they are listed.
type Scope struct {
	Deps    []Dep
	Payload json.RawMessage // null when there is none
	Labels  map[string]string
}

// Dep is a task that was waited for, as it ended.
type Dep struct {
	Key    string
	State  string
	Result json.RawMessage // of a success, else null
}

var conditions = sync.OnceValues(func() (*cel.Env, error) {
	return cel.NewEnv(
		cel.Variable("deps", cel.ListType(cel.MapType(cel.StringType, cel.DynType))),
		cel.Variable("payload", cel.DynType),
		cel.Variable("labels", cel.MapType(cel.StringType, cel.StringType)),
		cel.CrossTypeNumericComparisons(true),
		cel.ParserExpressionSizeLimit(MostConditionBytes),
		cel.ParserRecursionLimit(50),
	)
})

// Compile reads a condition; the error is a sentence for whoever wrote it.
func Compile(text string) (*Condition, error) {
	env, err := conditions()
	if err != nil {
		return nil, err
	}
	if len(text) > MostConditionBytes {
		return nil, fmt.Errorf("it must not be longer than %d bytes", MostConditionBytes)
	}
	tree, issues := env.Compile(text)
	if err := issues.Err(); err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	if out := tree.OutputType(); !out.IsExactType(cel.BoolType) && !out.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("it must say true or false, not %s", out)
	}
	program, err := env.Program(tree, cel.CostLimit(mostWork))
	if err != nil {
		return nil, errors.New(firstLine(err.Error()))
	}
	return &Condition{program}, nil
}

// firstLine cuts the drawing of the place off a message of the compiler.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(line, "ERROR: <input>:")
}

// Holds judges the condition. An error says why it cannot be judged: something it names is not there, it did not say true
// or false, or it took too much work.
func (c *Condition) Holds(s *Scope) (bool, error) {
	deps := make([]map[string]any, len(s.Deps))
	for i := range s.Deps {
		result, err := value(s.Deps[i].Result)
		if err != nil {
			return false, err
		}
		deps[i] = map[string]any{"key": s.Deps[i].Key, "state": s.Deps[i].State, "result": result}
	}
	payload, err := value(s.Payload)
	if err != nil {
		return false, err
	}
	labels := s.Labels
	if labels == nil {
		labels = map[string]string{}
	}
	out, _, err := c.program.Eval(map[string]any{"deps": deps, "payload": payload, "labels": labels})
	if err != nil {
		return false, errors.New(firstLine(err.Error()))
	}
	holds, is := out.Value().(bool)
	if !is {
		return false, fmt.Errorf("it must say true or false, not %s", out.Type().TypeName())
	}
	return holds, nil
}

// value reads a JSON text, nothing as null.
func value(text json.RawMessage) (v any, err error) {
	if len(text) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(text, &v); err != nil {
		return nil, fmt.Errorf("a stored value cannot be read: %w", err)
	}
	return v, nil
}
