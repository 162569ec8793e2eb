package local

import (
	"errors"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// account is who runs the server when the process is root, which PostgreSQL refuses to be.
type account struct {
	name     string
	uid, gid int
}

func serverAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(found.Uid)
		if err != nil {
			continue
		}
		gid, err := strconv.Atoi(found.Gid)
		if err != nil {
			continue
		}
		return &account{name: name, uid: uid, gid: gid}, nil
	}
	return nil, errors.New("PostgreSQL refuses to run as root, and this machine has neither a user postgres nor nobody to run it: start as another user, or set DATABASE_URL")
}

func (a *account) mayEnter(dir os.FileInfo) bool {
	mode := dir.Mode().Perm()
	stat, ok := dir.Sys().(*syscall.Stat_t)
	switch {
	case ok && int(stat.Uid) == a.uid:
		return mode&0o100 != 0
	case ok && int(stat.Gid) == a.gid:
		return mode&0o010 != 0
	default:
		return mode&0o001 != 0
	}
}
