package text

import "strings"

// ChunkBytes is what a chunk holds at most; a single longer line is cut.
const ChunkBytes = 1600

// Chunk is a piece of a section, small enough for one vector.
type Chunk struct {
	Section int    `json:"section"` // its number within the document
	Piece   int    `json:"piece"`   // its number within the section
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// Chunks cuts a document into chunks, at ends of lines where it can.
func Chunks(path, content string) []Chunk {
	var out []Chunk
	for number, s := range Sections(path, content) {
		for piece, text := range pieces(s.Body) {
			out = append(out, Chunk{number, piece, s.Heading, text})
		}
	}
	return out
}

func pieces(body string) []string {
	var out []string
	var piece strings.Builder
	flush := func() {
		if text := strings.TrimSpace(piece.String()); text != "" {
			out = append(out, text)
		}
		piece.Reset()
	}
	for line := range strings.Lines(body) {
		for len(line) > ChunkBytes {
			flush()
			cut := strings.ToValidUTF8(line[:ChunkBytes], "")
			piece.WriteString(cut)
			line = line[len(cut):]
		}
		if piece.Len()+len(line) > ChunkBytes {
			flush()
		}
		piece.WriteString(line)
	}
	flush()
	return out
}
