// Package fair is start-time fair queueing over dominant-resource seconds, one clock for a pool and kind.
//
// A tenant's virtual time grows by what it was charged divided by its weight; the tenant with the smallest goes next.
// It promises that no tenant saves up credit while it is idle. It is pure: it knows no time of day.
package fair
