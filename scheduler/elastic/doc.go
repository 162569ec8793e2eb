// Package elastic says how much of a pool work that can wait may take while other work needs it: what the other work took
// lately, what is foreseen of it, and how its waits turned out become a number of tasks that may run at once.
//
// It promises that the number is never below one, that it is lowered at once and raised only after it could have been
// higher for a whole dwell, and that nothing is held back where nobody needs it. It never looks at a task or a clock.
package elastic
