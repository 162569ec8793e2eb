package index

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	"nightshift/workers/text"
)

// Format names the layout of the files.
const Format = "nightshift-index/1"

const (
	vectorMagic = "NSVEC001"
	idfMagic    = "NSIDF001"
	currentFile = "CURRENT"
)

// Meta is index.json.
type Meta struct {
	Format    string            `json:"format"`
	Dims      int               `json:"dims"`
	Chunks    int               `json:"chunks"`
	Sections  int               `json:"sections"`
	Queries   int               `json:"queries"`
	Documents int               `json:"documents"`
	SHA256    map[string]string `json:"sha256"`
}

// Write puts the index into the folder as a version of its own and makes it
// the one in force. A version that exists already is kept as it is.
func (x *Index) Write(folder string) (version string, err error) {
	target := filepath.Join(folder, x.name)
	if _, err := os.Stat(filepath.Join(target, "index.json")); err != nil {
		if err := x.writeVersion(folder, target); err != nil {
			return "", err
		}
	}
	return x.name, replace(filepath.Join(folder, currentFile), []byte(x.name+"\n"))
}

func (x *Index) writeVersion(folder, target string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	side, err := os.MkdirTemp(folder, ".building-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(side)
	meta := Meta{
		Format: Format, Dims: text.Dims, Chunks: len(x.Vectors), Sections: len(x.Sections),
		Queries: len(x.Queries), Documents: x.documents(), SHA256: map[string]string{},
	}
	sections, err := x.sectionLines()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"sections.jsonl": sections, "vectors.bin": vectorFile(x.Vectors),
		"queries.bin": vectorFile(x.Queries), "idf.bin": termFile(x.IDF),
	} {
		sum := sha256.Sum256(content)
		meta.SHA256[name] = hex.EncodeToString(sum[:])
		if err := os.WriteFile(filepath.Join(side, name), content, 0o644); err != nil {
			return err
		}
	}
	content, err := json.MarshalIndent(meta, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(side, "index.json"), append(content, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.Chmod(side, 0o755); err != nil {
		return err
	}
	if err := os.Rename(side, target); err != nil {
		// Another execution of the same task may have been first.
		if _, there := os.Stat(filepath.Join(target, "index.json")); there == nil {
			return nil
		}
		return err
	}
	return nil
}

func (x *Index) documents() int {
	seen := map[string]bool{}
	for _, s := range x.Sections {
		seen[s.Document] = true
	}
	return len(seen)
}

func (x *Index) sectionLines() ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	for _, s := range x.Sections {
		if err := e.Encode(s); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

func vectorFile(vectors []Vector) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(vectorMagic), uint32(len(vectors)))
	for _, v := range vectors {
		b = appendVector(b, v)
	}
	return b
}

func termFile(terms []text.Term) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(idfMagic), uint32(len(terms)))
	for _, t := range terms {
		b = binary.LittleEndian.AppendUint32(b, t.Dim)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(t.Weight))
	}
	return b
}

// replace writes a file so that readers see the old one or the new one.
func replace(path string, content []byte) error {
	side, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(side.Name())
	_, err = side.Write(content)
	if closing := side.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Chmod(side.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(side.Name(), path)
	}
	return err
}

// Open reads the version in force and checks every file against its sum.
func Open(folder string) (*Index, Meta, error) {
	var meta Meta
	name, err := os.ReadFile(filepath.Join(folder, currentFile))
	if err != nil {
		return nil, meta, err
	}
	x := &Index{name: strings.TrimSpace(string(name))}
	version := filepath.Join(folder, x.name)
	raw, err := os.ReadFile(filepath.Join(version, "index.json"))
	if err != nil {
		return nil, meta, err
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return nil, meta, fmt.Errorf("index.json: %w", err)
	}
	if meta.Format != Format {
		return nil, meta, fmt.Errorf("the index has format %q, not %q", meta.Format, Format)
	}
	files := map[string][]byte{}
	for file, want := range meta.SHA256 {
		content, err := os.ReadFile(filepath.Join(version, filepath.Base(file)))
		if err != nil {
			return nil, meta, err
		}
		if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != want {
			return nil, meta, fmt.Errorf("%s is not what was written: its sum differs", file)
		}
		files[file] = content
	}
	return x, meta, x.parse(files)
}

func (x *Index) parse(files map[string][]byte) error {
	lines := bufio.NewScanner(bytes.NewReader(files["sections.jsonl"]))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var s Section
		if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
			return fmt.Errorf("sections.jsonl: %w", err)
		}
		x.Sections = append(x.Sections, s)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("sections.jsonl: %w", err)
	}
	var err error
	if x.Vectors, err = parseVectors(files["vectors.bin"]); err != nil {
		return fmt.Errorf("vectors.bin: %w", err)
	}
	if x.Queries, err = parseVectors(files["queries.bin"]); err != nil {
		return fmt.Errorf("queries.bin: %w", err)
	}
	idf := reader{b: files["idf.bin"]}
	idf.magic(idfMagic)
	x.IDF = idf.terms(idf.u32())
	if idf.err != nil {
		return fmt.Errorf("idf.bin: %w", idf.err)
	}
	for _, v := range append(x.Vectors[:len(x.Vectors):len(x.Vectors)], x.Queries...) {
		if int(v.Section) >= len(x.Sections) {
			return fmt.Errorf("a vector names section %d of %d", v.Section, len(x.Sections))
		}
	}
	return nil
}

func parseVectors(b []byte) ([]Vector, error) {
	r := reader{b: b}
	r.magic(vectorMagic)
	var out []Vector
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		section := r.u32()
		out = append(out, Vector{section, r.terms(r.u32())})
	}
	return out, r.err
}

type reader struct {
	b   []byte
	err error
}

func (r *reader) take(n int) []byte {
	if r.err != nil || len(r.b) < n {
		if r.err == nil {
			r.err = fmt.Errorf("the file ends too early")
		}
		return make([]byte, 8)
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) magic(want string) {
	if got := r.take(len(want)); r.err == nil && string(got) != want {
		r.err = fmt.Errorf("begins with %q, not %q", got, want)
	}
}

func (r *reader) u32() uint32 { return binary.LittleEndian.Uint32(r.take(4)) }

func (r *reader) terms(n uint32) []text.Term {
	if r.err == nil && uint64(len(r.b)) < uint64(n)*8 {
		r.err = fmt.Errorf("the file ends too early")
	}
	if r.err != nil {
		return nil
	}
	out := make([]text.Term, n)
	for i := range out {
		out[i] = text.Term{Dim: r.u32(), Weight: math.Float32frombits(r.u32())}
	}
	return out
}
