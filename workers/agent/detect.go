package agent

import (
	"bufio"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"nightshift/workers/protocol"
)

// detectCPU counts the CPUs this process may use; the runtime knows of quotas.
func detectCPU() int { return max(1, runtime.GOMAXPROCS(0)) }

// detectMemoryMB is the machine's memory, or the container's limit when that is
// less; 0 when neither can be told.
func detectMemoryMB() int64 {
	total := meminfoKB("MemTotal:") / 1024
	if total == 0 && runtime.GOOS == "darwin" {
		out, err := exec.Command("sysctl", "-n", "hw.memsize").Output()
		if bytes, bad := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64); err == nil && bad == nil {
			total = bytes >> 20
		}
	}
	for _, file := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && bytes>>20 > 0 {
			total = min(total, bytes>>20)
		}
	}
	return total
}

func meminfoKB(name string) int64 {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) >= 2 && fields[0] == name {
			kb, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0
			}
			return kb
		}
	}
	return 0
}

// detectDiskMB is what is free where the artefacts go.
func detectDiskMB(folder string) int64 {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0
	}
	return int64(uint64(s.Bavail) * uint64(s.Bsize) >> 20)
}

// load measures how busy the machine's CPUs were since it was last asked.
type load struct {
	mu          sync.Mutex
	busy, total float64
}

func newLoad() *load {
	l := &load{}
	l.utilization()
	return l
}

// utilization is nil where the machine does not tell.
func (l *load) utilization() *protocol.Utilization {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return nil
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	fields := strings.Fields(line)
	if len(fields) < 6 || fields[0] != "cpu" {
		return nil
	}
	total, idle := 0.0, 0.0
	for i, field := range fields[1:] {
		value, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return nil
		}
		total += value
		if i == 3 || i == 4 { // idle and waiting for a disk
			idle += value
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	spent, busy := total-l.total, total-idle-l.busy
	l.total, l.busy = total, total-idle
	if spent <= 0 {
		return nil
	}
	share := min(1, max(0, busy/spent))
	return &protocol.Utilization{CPU: &share}
}
