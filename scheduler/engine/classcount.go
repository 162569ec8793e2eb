package engine

import (
	"fmt"
	"maps"
	"slices"

	"nightshift/models"
)

// MostClasses is how many distinct requirements an environment may have waiting at once.
const MostClasses = 200

// awaits counts a task by its class that is not ready yet, or is so no longer. Only those that this brain saw begin to wait are
// counted, so there may be more, never fewer: a new brain begins with what the board shows.
func (e *Engine) awaits(row *models.Task, n int64) {
	of := e.awaited[row.Env]
	if of == nil {
		of = map[int32]int64{}
		e.awaited[row.Env] = of
	}
	if of[row.Class] += n; of[row.Class] <= 0 {
		delete(of, row.Class)
	}
}

// hasClass says whether a class of an environment is on the board or awaited there.
func (e *Engine) hasClass(env, class int32) bool {
	return e.board.Live(env, class) || e.awaited[env][class] > 0
}

// liveClasses counts those.
func (e *Engine) liveClasses(env int32) int {
	n := e.board.LiveClasses(env)
	for class := range e.awaited[env] { // any order: a count
		if !e.board.Live(env, class) {
			n++
		}
	}
	return n
}

// classCount counts what the tasks of a body add to the classes of an environment.
type classCount struct {
	e     *Engine
	env   int32
	known map[int32]bool
	fresh map[string]bool
}

func newClassCount(e *Engine, env int32) *classCount { return &classCount{e: e, env: env} }

// asks notes the class of a task, with its number where it has one.
func (c *classCount) asks(number int32, class *models.Class) {
	switch {
	case number == 0:
		if c.fresh == nil {
			c.fresh = map[string]bool{}
		}
		c.fresh[class.Digest()] = true
	case !c.e.hasClass(c.env, number):
		if c.known == nil {
			c.known = map[int32]bool{}
		}
		c.known[number] = true
	}
}

// refusal says that they are too many.
func (c *classCount) refusal() error {
	if n := len(c.known) + len(c.fresh); n > 0 && c.e.liveClasses(c.env)+n > MostClasses {
		return c.e.tooManyClasses(c.env)
	}
	return nil
}

// classesOf are the classes that count in an environment.
func (e *Engine) classesOf(env int32) []*models.Class {
	out := e.board.ClassesOf(env)
	for _, n := range slices.Sorted(maps.Keys(e.awaited[env])) {
		if c := e.board.Classes[n]; c != nil && !e.board.Live(env, n) {
			out = append(out, c)
		}
	}
	return out
}

func (e *Engine) tooManyClasses(env int32) error {
	seen := map[string]map[string]bool{}
	note := func(field, value string) {
		if seen[field] == nil {
			seen[field] = map[string]bool{}
		}
		seen[field][value] = true
	}
	for _, c := range e.classesOf(env) {
		note("type", c.Type)
		note("resources.cpu", fmt.Sprint(c.CPUMilli))
		note("resources.memory_mb", fmt.Sprint(c.MemoryMB))
		note("resources.disk_mb", fmt.Sprint(c.DiskMB))
		note("resources.gpu", fmt.Sprint(c.GPU, c.VRAMMB))
		note("model", c.Model)
		note("worker_selector", fmt.Sprint(c.Selector))
	}
	field := "type"
	for _, name := range []string{"resources.cpu", "resources.memory_mb", "resources.disk_mb", "resources.gpu", "model", "worker_selector"} {
		if len(seen[name]) > len(seen[field]) {
			field = name
		}
	}
	err := models.Errorf(models.TooManyClasses, "more than %d different requirements wait at once; %s varies most", MostClasses, field)
	err.RetryAfterSeconds = 5
	return err
}
