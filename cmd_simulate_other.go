//go:build !unix

package main

import "time"

// cpuClock is real time where the system does not tell what a process has computed.
func cpuClock() func() time.Duration {
	began := time.Now()
	return func() time.Duration { return time.Since(began) }
}
