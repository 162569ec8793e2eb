package templates

// DocsView is the API's description as a page.
type DocsView struct {
	About   string
	Version string
	Tags    []DocsTag
	Schemas []DocsSchema
}

// DocsTag is a group of operations.
type DocsTag struct {
	Name, Anchor string
	Operations   []DocsOperation
}

// DocsOperation is one method of one path.
type DocsOperation struct {
	ID           string
	Method, Path string
	Summary      string
	Detail       []string // paragraphs
	Params       []DocsField
	Body         *DocsBody
	Replies      []DocsBody
	Curl         string
}

// DocsBody is what is sent or answered.
type DocsBody struct {
	Status   string // of an answer
	About    string
	Content  string // media type; empty: nothing is sent
	Optional bool
	Type     DocsType
	Fields   []DocsField // of an object, one level deep
}

// DocsField is a parameter or a member of an object.
type DocsField struct {
	Name     string
	In       string // query, path, header; empty for a member
	Type     DocsType
	Required bool
	About    string
	Values   []string // the only ones it may have
}

// DocsType is a type in words, with the schema that it names.
type DocsType struct {
	Before, Schema, After string
}

// DocsSchema is a named object.
type DocsSchema struct {
	Name   string
	Type   DocsType
	Fields []DocsField
}
