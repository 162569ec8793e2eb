package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// oldest is the first PostgreSQL whose features the schema uses.
const oldest = 14

var binaryFolders = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/usr/local/pgsql/bin",
	"/usr/libexec/postgresql*",
}

// findBinaries returns the folder of a PostgreSQL that can run data of the wanted major version; empty: a new one.
func findBinaries(ctx context.Context, o Options, f folder, want string) (string, error) {
	if o.Bin != "" {
		major, err := majorOf(ctx, o.Bin)
		if err != nil {
			return "", fmt.Errorf("NIGHTSHIFT_PG_BIN: no PostgreSQL server in %s: %w", o.Bin, err)
		}
		if !fits(major, want) {
			return "", fmt.Errorf("NIGHTSHIFT_PG_BIN: %s is PostgreSQL %d and %s", o.Bin, major, needs(f, want))
		}
		return o.Bin, nil
	}
	best, bin := 0, ""
	for _, dir := range candidates() {
		major, err := majorOf(ctx, dir)
		if err == nil && fits(major, want) && major > best {
			best, bin = major, dir
		}
	}
	if bin != "" {
		return bin, nil
	}
	bin, err := download(ctx, o, f, want)
	if err != nil {
		return "", fmt.Errorf("no PostgreSQL server found, and %s: install one (Debian, Ubuntu: apt-get install postgresql; Fedora: dnf install postgresql-server; macOS: brew install postgresql@17), name its folder in NIGHTSHIFT_PG_BIN, or set DATABASE_URL: %w",
			needs(f, want), err)
	}
	return bin, nil
}

func candidates() []string {
	var dirs []string
	for _, pattern := range binaryFolders {
		found, _ := filepath.Glob(pattern) // only a malformed pattern is an error
		dirs = append(dirs, found...)
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		if real, err := filepath.EvalSymlinks(path); err == nil { // a link in PATH has no libraries beside it
			path = real
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	return slices.Compact(dirs)
}

// majorOf asks a folder's server for its version: "postgres (PostgreSQL) 15.18 (Debian …)".
func majorOf(ctx context.Context, dir string) (int, error) {
	if _, err := os.Stat(filepath.Join(dir, "initdb")); err != nil {
		return 0, err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "-V").Output()
	if err != nil {
		return 0, err
	}
	words := strings.Fields(string(out))
	if len(words) < 3 {
		return 0, fmt.Errorf("unknown version %q", out)
	}
	digits := words[2] // 15.18, or 18beta1
	if end := strings.IndexFunc(digits, func(r rune) bool { return r < '0' || r > '9' }); end > 0 {
		digits = digits[:end]
	}
	major, err := strconv.Atoi(digits)
	if err != nil {
		return 0, errors.New("unknown version " + words[2])
	}
	return major, nil
}

func fits(major int, want string) bool {
	if want != "" {
		return strconv.Itoa(major) == want
	}
	return major >= oldest
}

func needs(f folder, want string) string {
	if want == "" {
		return fmt.Sprintf("version %d or later is needed", oldest)
	}
	return fmt.Sprintf("the data in %s needs version %s", f.path, want)
}
