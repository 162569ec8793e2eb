// Package rate counts what may pass in a time.
//
// A Bucket is refilled evenly and may go into debt: it suits amounts that are known only roughly, like tokens a minute. A
// Meter counts single starts and is strict: never more than its limit in any stretch of its length. Both are exact in whole
// numbers, know no clock, and say when they open, so that nobody has to ask again and again.
package rate
