package templates

import (
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
)

// Bounds of a drawn tree: what lies beyond is told, not drawn.
const (
	treeNodes   = 600
	treeDepth   = 24
	treeLetters = 4000
)

// leaf is a value of JSON ready to be drawn; the order of the text is kept.
type leaf struct {
	Name   string // of the member or index, "" at the root
	Kind   string // object, array, string, number, word
	Text   string // of a scalar
	Inner  []leaf
	Hidden int // members not drawn
}

// tree reads JSON text. What is not JSON is drawn as one string.
func tree(text string) leaf {
	reader := &treeReader{decoder: json.NewDecoder(strings.NewReader(text)), left: treeNodes}
	reader.decoder.UseNumber()
	root, err := reader.value("", 0)
	if err != nil {
		return leaf{Kind: "string", Text: cut(text, treeLetters)}
	}
	if _, err := reader.decoder.Token(); !errors.Is(err, io.EOF) {
		return leaf{Kind: "string", Text: cut(text, treeLetters)}
	}
	return root
}

type treeReader struct {
	decoder *json.Decoder
	left    int
}

func (r *treeReader) value(name string, depth int) (leaf, error) {
	token, err := r.decoder.Token()
	if err != nil {
		return leaf{}, err
	}
	r.left--
	switch value := token.(type) {
	case json.Delim:
		if value == '{' {
			return r.inner(leaf{Name: name, Kind: "object"}, depth)
		}
		return r.inner(leaf{Name: name, Kind: "array"}, depth)
	case string:
		return leaf{Name: name, Kind: "string", Text: cut(value, treeLetters)}, nil
	case json.Number:
		return leaf{Name: name, Kind: "number", Text: value.String()}, nil
	case bool:
		return leaf{Name: name, Kind: "word", Text: strconv.FormatBool(value)}, nil
	default:
		return leaf{Name: name, Kind: "word", Text: "null"}, nil
	}
}

// inner reads members until the closing sign; past the bounds it only counts.
func (r *treeReader) inner(node leaf, depth int) (leaf, error) {
	for index := 0; r.decoder.More(); index++ {
		name := strconv.Itoa(index)
		if node.Kind == "object" {
			token, err := r.decoder.Token()
			if err != nil {
				return node, err
			}
			name, _ = token.(string)
		}
		if r.left <= 0 || depth >= treeDepth {
			if err := r.skip(); err != nil {
				return node, err
			}
			node.Hidden++
			continue
		}
		member, err := r.value(name, depth+1)
		if err != nil {
			return node, err
		}
		node.Inner = append(node.Inner, member)
	}
	_, err := r.decoder.Token()
	return node, err
}

func (r *treeReader) skip() error {
	var ignored json.RawMessage
	return r.decoder.Decode(&ignored)
}

// folded says whether a branch starts closed: long ones and deep ones do.
func (l leaf) folded(depth int) bool { return depth > 2 || len(l.Inner) > 30 }

func (l leaf) size() string {
	n := len(l.Inner) + l.Hidden
	if l.Kind == "array" {
		return plural(n, "item", "items")
	}
	return plural(n, "field", "fields")
}
