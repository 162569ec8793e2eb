package api

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
)

// byName answers a list that is ordered by name, from the first unless order=desc is asked for. read gives at most so many
// rows after a name, or before it in descending order, and how many there are in all.
func byName[V, R any](d *handlers.Deps, c *fiber.Ctx, read func(after string, desc bool, most int) ([]R, int64, error), show func(R) V, name func(R) string) error {
	q, err := handlers.ReadOldestFirst(d, c)
	if err != nil {
		return err
	}
	var after string
	if _, err := q.After(&after); err != nil {
		return err
	}
	rows, all, err := read(after, q.Desc, q.Limit+1)
	if err != nil {
		return err
	}
	page, err := handlers.PageOf(q, rows, show, func(row R) any { return name(row) })
	if err != nil {
		return err
	}
	if q.Count {
		page.Total = total(all, false)
	}
	return handlers.Answer(c, fiber.StatusOK, page)
}

// following are the rows after a name, at most so many, of a list ordered by name; in descending order those before it, the
// last first.
func following[R any](list []R, after string, desc bool, most int, name func(R) string) (rows []R) {
	if desc {
		list = slices.Clone(list)
		slices.Reverse(list)
	}
	for _, row := range list {
		if len(rows) < most && (after == "" || name(row) > after && !desc || name(row) < after && desc) {
			rows = append(rows, row)
		}
	}
	return rows
}
