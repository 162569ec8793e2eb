// Package forecast says what schedules are going to ask of the pools, minute by minute, where their work meets, and where
// there is a quieter place for it.
//
// Loads go in: when each schedule fires, how many tasks a run makes and how long they take, as quantiles. What comes out
// is, of each pool and kind, how many tasks are foreseen to run at the same time in each minute, in the middle (p50) and
// nine times in ten (p90); collisions, each with the move that lowers its peak most; and the quietest place in a window.
//
// It promises that the answer depends on its arguments alone and not on the order of the loads; that a suggestion never
// raises the peak, and that what it says of the peak afterwards is what the forecast says once the move was made; and
// that corrections by what was seen move slowly and stay within bounds.
//
// It never reads a calendar, an estimate or a clock: whoever asks brings them. A run counts in every minute it touches.
package forecast
