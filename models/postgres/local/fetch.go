package local

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// The binaries a machine without PostgreSQL gets: pinned by version and by the checksum of each archive.
const (
	pinnedMajor    = "15"
	pinnedVersion  = "15.18.0-beta.17"
	publicRegistry = "https://registry.npmjs.org"
	fetchPatience  = 5 * time.Minute
	mostFile       = 256 << 20
)

var pinnedSums = map[string]string{
	"linux-x64":    "sha512-TC0kHcDMAusLbQXRc+9KMz1BLJY+ntfPNbwFP79f9IURSxPRgFLy0Ig8oF1J8Wy9Wnj0XdZkMItV3Nov/LwqhA==",
	"linux-arm64":  "sha512-ape8eUuz4O2KrO8mySDMEKuHYEppJ71EJ4IanBa1fH6LOui9wifm4+iJnhFkaY+WGBa/Rgw/of+RlFHO2i+bLg==",
	"darwin-arm64": "sha512-1hTznqARpTs+IaX3YYltEIJVNwXCuUoHhif+Xiub09SgtzpVhX1LRaJCpzp8kVJV0zxsBBFfv8kkT9TqJdJ32Q==",
	"darwin-x64":   "sha512-W4Vd2hDkezdUAniJesLY0MZIfVJtyN7DNg2Q6X0ciwuhGYw/dh8ZDdZLZxSFmVNvpz8Itfj2s2P4MTFPczMMnQ==",
}

// download returns the folder's own copy of the pinned binaries, fetched at its first use.
func download(ctx context.Context, o Options, f folder, want string) (string, error) {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	sum, known := pinnedSums[platform]
	switch {
	case !known:
		return "", fmt.Errorf("there is no download for %s", platform)
	case want != "" && want != pinnedMajor:
		return "", fmt.Errorf("the download has version %s", pinnedMajor)
	}
	dst := filepath.Join(f.path, "binaries", pinnedVersion)
	bin := filepath.Join(dst, "bin")
	if _, err := os.Stat(filepath.Join(bin, "postgres")); err == nil {
		return bin, nil
	}
	if o.Mirror == "off" {
		return "", errors.New("downloads are off (NIGHTSHIFT_PG_MIRROR)")
	}
	mirror := o.Mirror
	if mirror == "" {
		mirror = publicRegistry
	}
	source := fmt.Sprintf("%s/@embedded-postgres/%s/-/%s-%s.tgz", strings.TrimRight(mirror, "/"), platform, platform, pinnedVersion)
	o.Logger.Info("fetching PostgreSQL", "version", pinnedVersion, "from", source)
	if err := fetch(ctx, source, sum, dst); err != nil {
		return "", fmt.Errorf("fetching %s: %w", source, err)
	}
	return bin, nil
}

// fetch unpacks an archive beside its place and moves it there only when the checksum is right.
func fetch(ctx context.Context, source, sum, dst string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	if err := os.MkdirAll(filepath.Dir(dst), 0o755); err != nil {
		return err
	}
	side, err := os.MkdirTemp(filepath.Dir(dst), ".unpack-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(side)
	// The server's account, not ours alone, reads and runs what is in it.
	if err := errors.Join(os.Chmod(filepath.Dir(dst), 0o755), os.Chmod(side, 0o755)); err != nil {
		return err
	}
	hash := sha512.New()
	body := io.TeeReader(response.Body, hash)
	if err := unpack(body, side); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return err
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(hash.Sum(nil)); got != sum {
		return fmt.Errorf("the checksum is %s, not %s", got, sum)
	}
	return os.Rename(side, dst)
}

type link struct{ Source, Target string }

// unpack writes the archive's files below one folder; os.Root keeps hostile names inside it.
func unpack(archive io.Reader, dst string) error {
	plain, err := gzip.NewReader(archive)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dst)
	if err != nil {
		return err
	}
	defer root.Close()
	var links []link
	for files := tar.NewReader(plain); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		name, ok := strings.CutPrefix(header.Name, "package/native/")
		switch {
		case !ok || header.Typeflag != tar.TypeReg:
		case name == "pg-symlinks.json":
			if err := json.NewDecoder(files).Decode(&links); err != nil {
				return err
			}
		default:
			if err := writeFile(root, name, files); err != nil {
				return err
			}
		}
	}
	for _, l := range links {
		if err := root.Symlink(path.Base(l.Source), strings.TrimPrefix(l.Target, "native/")); err != nil {
			return err
		}
	}
	return nil
}

func writeFile(root *os.Root, name string, content io.Reader) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(name, "bin/") {
		mode = 0o755
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.CopyN(file, content, mostFile)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return errors.Join(err, file.Close())
}
