package text

import (
	"unicode"
	"unicode/utf8"
)

// Words answers the words of a text in lower case: names are split where the
// case changes ("readFrom" gives read, from), plurals lose their s, and what
// is shorter than two or longer than forty runes is no word.
func Words(text string) []string {
	words := make([]string, 0, len(text)/6)
	start := -1
	var before rune
	for i, r := range text {
		letter := unicode.IsLetter(r) || unicode.IsDigit(r)
		hump := letter && start >= 0 && boundary(before, r, text[i+utf8.RuneLen(r):])
		if start >= 0 && (!letter || hump) {
			words = keep(words, text[start:i])
			start = -1
		}
		if letter && start < 0 {
			start = i
		}
		before = r
	}
	if start >= 0 {
		words = keep(words, text[start:])
	}
	return words
}

// boundary is where a name has its hump: readFrom, HTTPServer, utf8Rune.
func boundary(before, r rune, after string) bool {
	if !unicode.IsUpper(r) {
		return false
	}
	if !unicode.IsUpper(before) {
		return true
	}
	next, _ := utf8.DecodeRuneInString(after)
	return unicode.IsLower(next)
}

func keep(words []string, word string) []string {
	if len(word) < 2 || len(word) > 40 {
		return words
	}
	lower := []byte(word)
	for i, c := range lower {
		if c >= utf8.RuneSelf {
			return append(words, toLower(word))
		}
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	if n := len(lower); n > 3 && lower[n-1] == 's' && lower[n-2] != 's' {
		lower = lower[:n-1]
	}
	return append(words, string(lower))
}

func toLower(word string) string {
	out := make([]rune, 0, len(word))
	for _, r := range word {
		out = append(out, unicode.ToLower(r))
	}
	return string(out)
}
