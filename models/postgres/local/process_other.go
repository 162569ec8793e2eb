//go:build !linux

package local

import "syscall"

// locale orders by code point; not every system here has C.UTF-8.
const locale = "C"

// tied has no death signal here: a server whose owner was killed goes on, and the next start stops it.
func tied() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// workingIn knows only the postmaster that the pid file names.
func workingIn(_ string, postmaster int) []int {
	if postmaster > 0 && syscall.Kill(postmaster, 0) == nil {
		return []int{postmaster}
	}
	return nil
}
