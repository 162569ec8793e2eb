// Package ui turns pages into verbs: each handler reads what its page shows, or does one verb and sends the browser
// back to where the result can be seen (post, redirect, get).
//
// It promises that a page is read in the scope of the viewer, that an action is checked here however the page was drawn,
// and that a page stands when the brain does not answer: what only the brain knows is then left out. It holds no SQL
// and decides nothing.
package ui
