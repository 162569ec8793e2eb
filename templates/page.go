package templates

import (
	"net/url"
	"strings"
	"time"
)

// Page is what every page needs around its own content.
type Page struct {
	Name   string // the h1, as the navigation calls it
	Title  string // the browser tab; Name where empty
	Path   string // the navigation entry that is lit
	Now    time.Time
	Viewer Viewer
	Scope  Scope
	CSRF   string
	Notice *Notice

	Tenants      []Choice // what the switch offers; empty hides it
	Environments []Choice
	DeadLetters  int // the figure beside the navigation entry
}

// Viewer is the person looking.
type Viewer struct {
	Email     string
	Role      string
	Write     bool // may act on tasks, workflows and dead letters
	Admin     bool // may change lanes and workers
	Schedules bool // may change schedules
	Platform  bool // belongs to no tenant and may look at each
}

// Scope is the world that the page shows.
type Scope struct {
	Tenant      string // slug
	TenantName  string
	Environment string
	Production  bool
	Timezone    string // IANA, of the tenant
	Stream      string // what hints of the live stream call this scope
	Carry       bool   // links name the scope, because the viewer may change it
}

// Choice is an entry of a switch.
type Choice struct {
	Slug       string
	Name       string
	Production bool
}

// Notice tells what became of the last action.
type Notice struct {
	Good bool
	Text string
}

// Entry is a line of the navigation. Key is the second key of its `g` jump.
type Entry struct {
	Path, Name, Icon, Key string
	Platform              bool // only for viewers of the platform
}

// Navigation lists the pages that exist, in the order of the sidebar.
func Navigation() []Entry {
	return []Entry{
		{Path: "/", Name: "Now", Icon: "layout-dashboard", Key: "n"},
		{Path: "/schedules", Name: "Schedules", Icon: "calendar-time", Key: "c"},
		{Path: "/tasks", Name: "Tasks", Icon: "list-check", Key: "t"},
		{Path: "/workflows", Name: "Workflows", Icon: "sitemap", Key: "f"},
		{Path: "/dead-letters", Name: "Dead letters", Icon: "skull", Key: "d"},
		{Path: "/lanes", Name: "Lanes", Icon: "stack-2", Key: "l"},
		{Path: "/workers", Name: "Workers", Icon: "server-2", Key: "w"},
		{Path: "/activity", Name: "Activity", Icon: "history", Key: "a"},
		{Path: "/settings", Name: "Settings", Icon: "settings", Key: "k"},
		{Path: "/environments", Name: "Environments", Icon: "world", Key: "v"},
		{Path: "/tenants", Name: "Tenants", Icon: "building", Key: "e", Platform: true},
		{Path: "/system", Name: "System", Icon: "activity-heartbeat", Key: "s", Platform: true},
		{Path: "/start", Name: "Start here", Icon: "rocket", Key: "h"},
	}
}

// Entries are the lines that this viewer may open.
func (p Page) Entries() []Entry {
	var shown []Entry
	for _, entry := range Navigation() {
		if !entry.Platform || p.Viewer.Platform {
			shown = append(shown, entry)
		}
	}
	return shown
}

func (p Page) tab() string {
	if p.Title != "" {
		return p.Title
	}
	return p.Name
}

// URL is a link inside the scope. The path is already escaped; the rest are
// names and values of the query in pairs, an empty value leaves its name out.
func (p Page) URL(path string, query ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(query); i += 2 {
		if query[i+1] != "" {
			values.Add(query[i], query[i+1])
		}
	}
	if p.Scope.Carry && p.Scope.Tenant != "" {
		values.Set("tenant", p.Scope.Tenant)
		values.Set("environment", p.Scope.Environment)
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// Object is the link of one thing, or of an action on it.
func (p Page) Object(collection, id string, action ...string) string {
	return p.URL(ObjectPath(collection, id, action...))
}

// ObjectPath is the path of one thing: its id or name may hold anything.
func ObjectPath(collection, id string, action ...string) string {
	path := collection + "/" + url.PathEscape(id)
	for _, verb := range action {
		path += "/" + verb
	}
	return path
}

// look is the link that looks at another scope.
func (p Page) look(tenant, environment string) string {
	return "/?" + url.Values{"tenant": {tenant}, "environment": {environment}}.Encode()
}

// initials stand for a tenant where its name has no room.
func initials(s Scope) string {
	name := s.TenantName
	if name == "" {
		name = s.Tenant
	}
	var letters []rune
	for _, word := range strings.Fields(name) {
		if len(letters) < 2 {
			letters = append(letters, []rune(strings.ToUpper(word))[0])
		}
	}
	return string(letters)
}
