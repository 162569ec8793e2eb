package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"
)

//go:embed *.css *.js *.svg vendor licenses
var files embed.FS

// Prefix is the path below which Handler serves.
const Prefix = "/static/"

// contentTypes says what may be served; a file with another ending stays inside.
var contentTypes = map[string]string{
	".css":   "text/css; charset=utf-8",
	".js":    "text/javascript; charset=utf-8",
	".svg":   "image/svg+xml",
	".woff2": "font/woff2",
	".txt":   "text/plain; charset=utf-8",
}

// asset is one file under its fingerprinted name.
type asset struct {
	name        string
	contentType string
	body        []byte
	squeeze     sync.Once
	squeezed    []byte
}

var (
	byURL  = map[string]*asset{}
	byName = map[string]string{}
)

func init() {
	names := listed()
	// Style sheets go last: they point at fonts by fingerprinted name.
	sort.SliceStable(names, func(i, j int) bool {
		return path.Ext(names[i]) != ".css" && path.Ext(names[j]) == ".css"
	})
	for _, name := range names {
		body, err := files.ReadFile(name)
		if err != nil {
			panic(fmt.Sprintf("static: the embedded file %s can't be read: %v", name, err))
		}
		if path.Ext(name) == ".css" {
			body = pointAtFonts(body)
		}
		add(name, body)
	}
}

func listed() []string {
	var names []string
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if contentTypes[path.Ext(name)] != "" {
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		panic(fmt.Sprintf("static: the embedded files can't be listed: %v", err))
	}
	return names
}

func add(name string, body []byte) {
	sum := sha256.Sum256(body)
	ext := path.Ext(name)
	short := strings.TrimSuffix(path.Base(name), ext)
	hashed := short + "." + hex.EncodeToString(sum[:5]) + ext
	byName[path.Base(name)] = Prefix + hashed
	byURL[hashed] = &asset{name: name, contentType: contentTypes[ext], body: body}
}

func pointAtFonts(css []byte) []byte {
	for name, url := range byName {
		if path.Ext(name) == ".woff2" {
			css = bytes.ReplaceAll(css, []byte(`url("`+name+`")`), []byte(`url("`+url+`")`))
		}
	}
	return css
}

// URL is the fingerprinted address of a file, by its base name. A name that is
// not embedded is a mistake in a template, found by the first page drawn.
func URL(name string) string {
	url, ok := byName[name]
	if !ok {
		panic("static: no file " + name)
	}
	return url
}

// Handler serves the files below Prefix: `app.Get("/static/*", static.Handler)`.
func Handler(c *fiber.Ctx) error {
	found, ok := byURL[c.Params("*")]
	if !ok {
		return fiber.ErrNotFound
	}
	c.Set(fiber.HeaderContentType, found.contentType)
	c.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	c.Set(fiber.HeaderXContentTypeOptions, "nosniff")
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if strings.Contains(c.Get(fiber.HeaderAcceptEncoding), "gzip") {
		if small := found.gzipped(); small != nil {
			c.Set(fiber.HeaderContentEncoding, "gzip")
			return c.Send(small)
		}
	}
	return c.Send(found.body)
}

// gzipped is the packed body, made at the first request that takes it, or nil
// where packing wins nothing.
func (a *asset) gzipped() []byte {
	a.squeeze.Do(func() {
		if path.Ext(a.name) == ".woff2" || len(a.body) < 1024 {
			return
		}
		var packed bytes.Buffer
		writer, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return
		}
		if _, err := writer.Write(a.body); err != nil {
			return
		}
		if err := writer.Close(); err != nil {
			return
		}
		a.squeezed = packed.Bytes()
	})
	return a.squeezed
}

// All gives every file by its URL, for whoever serves the pages from elsewhere.
func All() map[string][]byte {
	out := make(map[string][]byte, len(byURL))
	for hashed, file := range byURL {
		out[Prefix+hashed] = file.body
	}
	return out
}
