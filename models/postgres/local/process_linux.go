package local

import (
	"os"
	"strconv"
	"syscall"
)

// locale orders by code point and knows the letters of every script.
const locale = "C.UTF-8"

// tied are the attributes of a child that ends in order when its parent dies, however it dies.
func tied() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGINT}
}

// workingIn finds the processes of a data folder: each process of PostgreSQL has it as its working directory, also the
// ones that outlive their postmaster for a moment. A zombie has none.
func workingIn(dir string, _ int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if cwd, err := os.Readlink("/proc/" + entry.Name() + "/cwd"); err == nil && cwd == dir {
			pids = append(pids, pid)
		}
	}
	return pids
}
