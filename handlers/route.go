package handlers

import "github.com/gofiber/fiber/v2"

// Route is one endpoint: the table of routes is the one place that says who may call what.
type Route struct {
	Method string
	Path   string // fiber's: "/v1/tasks/:id"
	// Scopes are those of which the caller needs one. A route without any is a mistake that ends the start: Public and
	// AnyToken say that none is needed.
	Scopes []string
	// TenantNeeded refuses a platform token that names no tenant.
	TenantNeeded bool
	// MaxBody is the largest body in bytes; 0: BodyLimit.
	MaxBody int64
	// Bulk says that the handler reads the body as a stream, through BodyOf.
	Bulk bool
	// Long says that the answer may take its time (a long poll or a stream).
	Long    bool
	Handler func(*Deps, *fiber.Ctx) error
	Doc     Doc
}

// Markers in place of scopes.
const (
	Public   = "public"    // no token is needed
	AnyToken = "any token" // any valid token will do
)

// Limits of bodies.
const (
	BodyLimit = 1 << 20
	BulkLimit = 64 << 20
)

// Doc is what the OpenAPI document says of a route. Types are given as zero values and described by reflection:
// field names by `json`, sentences by `doc:"…"`, allowed values by `enum:"a,b"`, bounds by `minimum:"1"` and
// `maximum:"9"`; a field that must be sent has `required:"true"`.
type Doc struct {
	Tag     string
	Summary string
	Detail  string
	Query   []Param
	Headers []Param
	Body    any
	// BodyType is the body's content type; empty: application/json. BodyOptional says that it may be left out.
	BodyType     string
	BodyOptional bool
	// Once says that the call takes an Idempotency-Key.
	Once bool
	// Replies maps a status to the zero value of what it answers with; nil: nothing.
	Replies map[int]any
	// ContentType of the replies; empty: application/json.
	ContentType string
}

// Param is a parameter of the query or a header.
type Param struct {
	Name   string
	Type   string // string, integer, number, boolean
	Repeat bool   // may come several times or with commas
	Enum   []string
	About  string
}

// IfMatchHeader is for actions that honour If-Match; edits and removals name it anyway.
var IfMatchHeader = Param{Name: fiber.HeaderIfMatch, Type: "string", About: "the ETag that must still stand"}

// Schema is a JSON schema written by hand, for a body or reply that no Go type describes.
type Schema map[string]any

// Either are the zero values of an answer that has one of several forms, as what is and what a dry run says would be.
type Either []any

// ListParams are the parameters that every list takes.
func ListParams(more ...Param) []Param { return listParams("by age; newest first when left out", more) }

// OldestFirstParams are those of a list that begins with the oldest.
func OldestFirstParams(more ...Param) []Param {
	return listParams("by age; oldest first when left out", more)
}

// ByNameParams are those of a list that is ordered by name.
func ByNameParams(more ...Param) []Param { return listParams("by name; asc when left out", more) }

func listParams(order string, more []Param) []Param {
	return append(more,
		Param{Name: "limit", Type: "integer", About: "rows a page: 1 to 500, 50 when left out"},
		Param{Name: "cursor", Type: "string", About: "next_cursor of the page before"},
		Param{Name: "order", Type: "string", Enum: []string{"asc", "desc"}, About: order},
		Param{Name: "count", Type: "boolean", About: "true: the answer says how many there are"},
	)
}
