//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuClock is the time this process has computed, whatever else the machine does; collecting garbage is part of it.
func cpuClock() func() time.Duration {
	return func() time.Duration {
		var use syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
			return 0 // it cannot fail for the own process
		}
		return time.Duration(use.Utime.Nano() + use.Stime.Nano())
	}
}
