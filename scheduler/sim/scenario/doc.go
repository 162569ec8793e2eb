// Package scenario reads worlds from files that people write.
//
// A file is YAML, strictly read: what is not known is refused with its line, and so is what makes no sense. The same file
// gives the same world. What-if questions change one value of a world that was read. It never opens a file by itself.
package scenario
