// Package static holds the files a browser needs beside the pages: style,
// scripts, fonts and the vendored libraries, embedded in the binary.
//
// It promises that a URL from URL names one content for ever (the name carries
// the hash of the content), so answers are cached as immutable, and that
// nothing is fetched from another host. It never reads the disk at run time
// and never serves a path that is not in its own table.
package static
