// Package route chooses a model: the cheapest that is good enough, quick enough and there. How good a model is is never known,
// only how good it was said and seen to be; what counts is a low quantile of that, so that a model of which little is known has
// to be better to be chosen. It is pure: prices, breakers and what was seen are arguments, and equal arguments give equal
// choices.
package route
