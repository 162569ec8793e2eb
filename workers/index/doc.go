// Package index holds the on-disk index of sections: how it is built from
// term vectors, written, opened and asked.
//
// # Format "nightshift-index/1"
//
// An index is a folder of versions and a file CURRENT that names the one in
// force. A version is a folder of five files; numbers are little endian.
//
//	index.json     {"format", "dims", "chunks", "sections", "queries", "documents", "sha256": {file: hex}}
//	sections.jsonl one line a section, in order of its number: {"section", "document", "heading"}
//	vectors.bin    "NSVEC001", u32 count, then count records: u32 section, u32 terms, terms × (u32 dim, f32 weight)
//	queries.bin    the same layout; section is the only relevant one for the query
//	idf.bin        "NSIDF001", u32 count, count × (u32 dim, f32 idf)
//
// Vectors and queries have the length 1 and dims in rising order, so the score
// of a chunk is the plain inner product. A section scores as its best chunk.
// The rank of a section is one more than the number of sections that score
// higher by more than 1e-6; recall@k is the part of the queries whose section
// ranks k or better, MRR the mean of 1/rank within the first hundred.
//
// The name of a version is a hash of what went in, so building twice from the
// same vectors gives the same folder, and CURRENT moves by one rename: a
// reader sees the old index or the new one, never a mixture.
//
// The package never computes a vector from text and never decides what to
// index.
package index
