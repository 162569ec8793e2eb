// Package templates draws the pages. Each page has a typed view (views_*.go:
// plain values, no nouns of the store) and a component that turns it into HTML.
//
// It promises that every text is escaped, that no style or script stands inside
// a page (the pages live under a strict Content-Security-Policy), that links
// stay whole whatever names hold, and that a viewer who may not write sees no
// button that would be refused. It decides nothing: what may be done to an
// object is said by the view. It never reads a clock; "now" is part of the page.
package templates
