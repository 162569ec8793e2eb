// Package rival holds plain schedulers to measure the engine against: whoever comes first, the earliest deadline first,
// the longest path first, and the fair share of a fluid.
//
// They know every run time and take no time to decide. Each is as simple as can be: what the engine is compared with must
// be seen to be right. None of them is ever used to run anything.
package rival
