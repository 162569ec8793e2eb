// Package browser looks at the pages as people do: in a real Chromium, against a whole replica, with data made through
// the API.
//
// It promises that every page opens for whoever it is meant for without a word on the console, without a breach of the
// content security policy and without a script that somebody else wrote. It holds tests alone; they are skipped where no
// Chromium is installed, unless REQUIRE_BROWSER=1. It never looks behind the pages; only people who are no
// operators are written straight to the store.
package browser
