package handlers

import (
	"crypto/sha256"
	"encoding/json"
	"net/url"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// Bounds of a list's page.
const (
	PageDefault = 50
	PageMost    = 500
)

// ListQuery is what a list was asked for.
type ListQuery struct {
	Limit int
	Desc  bool // newest first, the default
	Count bool
	// Values are the filters, by name; several values come from repeating or from commas.
	Values map[string][]string

	after  []byte
	bound  []byte // what a cursor of this list is bound to
	cursor cursorCodec
}

// Page is the answer of a list.
type Page[T any] struct {
	Data       []T     `json:"data"`
	NextCursor *string `json:"next_cursor"`
	Total      *Total  `json:"total,omitempty"`
}

// Total is how many rows a filter has.
type Total struct {
	Value    int64  `json:"value"`
	Relation string `json:"relation" enum:"eq,gte"`
}

// ReadList reads limit, cursor, order, count and the named filters. A name that ends in "." stands for all that begin
// with it ("label."). Anything else in the query is invalid_query. Filters named with a leading "=" keep their commas.
func ReadList(d *Deps, c *fiber.Ctx, filters ...string) (*ListQuery, error) {
	return readList(d, c, true, filters)
}

// ReadOldestFirst is ReadList for what is told in the order it happened unless the caller asks otherwise.
func ReadOldestFirst(d *Deps, c *fiber.Ctx, filters ...string) (*ListQuery, error) {
	return readList(d, c, false, filters)
}

func readList(d *Deps, c *fiber.Ctx, desc bool, filters []string) (*ListQuery, error) {
	values, err := ReadQuery(c, append(filters, "limit", "=cursor", "order", "count")...)
	if err != nil {
		return nil, err
	}
	q := &ListQuery{Limit: PageDefault, Desc: desc, Values: values, cursor: cursorCodec{d.Vault}}
	if err := q.readPage(); err != nil {
		return nil, err
	}
	token := q.One("cursor")
	for _, name := range []string{"limit", "cursor", "order", "count"} {
		delete(q.Values, name)
	}
	q.bound = boundTo(c, q)
	if token != "" {
		if q.after, err = q.cursor.open(token, q.bound); err != nil {
			return nil, err
		}
	}
	return q, nil
}

func (q *ListQuery) readPage() error {
	for _, name := range []string{"limit", "cursor", "order", "count"} {
		if len(q.Values[name]) > 1 {
			return queryError(name, "it has more than one value")
		}
	}
	if text := q.One("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil && !isDigits(text) || err == nil && n < 1 {
			return queryError("limit", "%q is no whole number from 1", Shorten(text, 40))
		}
		if err != nil || n > PageMost {
			n = PageMost
		}
		q.Limit = n
	} else if _, given := q.Values["limit"]; given {
		return queryError("limit", "it is empty")
	}
	switch text := q.One("order"); text {
	case "":
	case "asc", "desc":
		q.Desc = text == "desc"
	default:
		return queryError("order", "%q is neither asc nor desc", Shorten(text, 40))
	}
	count, err := boolean(q.Values, "count")
	q.Count = count
	return err
}

func isDigits(text string) bool { return text != "" && strings.Trim(text, "0123456789") == "" }

// ReadQuery reads the raw query: only the names given, each as often as it comes, split at commas.
func ReadQuery(c *fiber.Ctx, names ...string) (map[string][]string, error) {
	raw := string(c.Request().URI().QueryString())
	parsed, err := url.ParseQuery(raw)
	if err != nil {
		return nil, models.Errorf(models.InvalidQuery, "the query can't be read: %q", Shorten(raw, 80))
	}
	out := map[string][]string{}
	for _, name := range sortedNames(parsed) {
		known, whole := knownName(names, name)
		if !known {
			return nil, queryError(name, "there is no such parameter")
		}
		for _, value := range parsed[name] {
			if !Storable(value) {
				return nil, queryError(name, "not UTF-8, or it holds a NUL")
			}
			if whole {
				out[name] = append(out[name], value)
				continue
			}
			out[name] = append(out[name], strings.Split(value, ",")...)
		}
	}
	return out, nil
}

func knownName(names []string, name string) (known, whole bool) {
	for _, n := range names {
		bare := strings.TrimPrefix(n, "=")
		if bare == name || strings.HasSuffix(bare, ".") && strings.HasPrefix(name, bare) && name != bare {
			return true, bare != n
		}
	}
	return false, false
}

func sortedNames(values url.Values) []string {
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}

func queryError(name, format string, args ...any) *models.Error {
	e := models.Invalid("query."+Shorten(name, 80), format, args...)
	e.Code = models.InvalidQuery
	return e
}

// QueryError refuses a parameter of the query as unreadable (400).
func QueryError(name, format string, args ...any) error { return queryError(name, format, args...) }

// DryRun says whether ?dry_run=true was sent; any other parameter is refused.
func DryRun(c *fiber.Ctx, others ...string) (bool, error) {
	values, err := ReadQuery(c, append(others, "dry_run")...)
	if err != nil {
		return false, err
	}
	return boolean(values, "dry_run")
}

// NoQuery refuses any parameter. web asks it for every route that names none; a handler need not.
func NoQuery(c *fiber.Ctx) error {
	_, err := ReadQuery(c)
	return err
}

func boolean(values map[string][]string, name string) (bool, error) {
	given, ok := values[name]
	switch {
	case !ok:
		return false, nil
	case len(given) == 1 && given[0] == "true":
		return true, nil
	case len(given) == 1 && given[0] == "false":
		return false, nil
	}
	return false, queryError(name, "it is true or false")
}

// One is the first value of a filter, empty when it was not given.
func (q *ListQuery) One(name string) string {
	if values := q.Values[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// After reads the place where the page before ended into v; false for the first page.
func (q *ListQuery) After(v any) (bool, error) {
	if q.after == nil {
		return false, nil
	}
	if err := json.Unmarshal(q.after, v); err != nil {
		return false, badCursor("this cursor does not belong to this list")
	}
	return true, nil
}

// Next makes the cursor that continues after the place v; nil for no further page.
func (q *ListQuery) Next(more bool, v any) (*string, error) {
	if !more {
		return nil, nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	token := q.cursor.seal(text, q.bound)
	return &token, nil
}

// PageOf answers rows read with a limit of Limit+1: the row too many only tells that there is a next page. The place is
// what After reads back.
func PageOf[T, R any](q *ListQuery, rows []R, show func(R) T, place func(R) any) (*Page[T], error) {
	page := &Page[T]{Data: make([]T, 0, min(len(rows), q.Limit))}
	more := len(rows) > q.Limit
	if more {
		rows = rows[:q.Limit]
	}
	for _, row := range rows {
		page.Data = append(page.Data, show(row))
	}
	if !more {
		return page, nil
	}
	next, err := q.Next(true, place(rows[len(rows)-1]))
	page.NextCursor = next
	return page, err
}

// boundTo is the digest of all that a cursor is good for: the path, the caller's world, the order and the filters.
func boundTo(c *fiber.Ctx, q *ListQuery) []byte {
	caller := CallerOf(c)
	names := make([]string, 0, len(q.Values))
	for name := range q.Values {
		names = append(names, name)
	}
	slices.Sort(names)
	filters := make([][]string, 0, len(names))
	for _, name := range names {
		values := slices.Clone(q.Values[name])
		slices.Sort(values)
		filters = append(filters, append([]string{name}, values...))
	}
	text, err := json.Marshal([]any{c.Path(), caller.Tenant, caller.Env, q.Desc, filters})
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	sum := sha256.Sum256(text)
	return sum[:]
}
