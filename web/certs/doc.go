// Package certs makes the TLS configuration of the listener: from files, from an authority of our own in the data
// folder, or from an ACME authority such as Let's Encrypt.
//
// It holds certificates and their renewal: files that change are read again, a self-signed certificate near its end is
// replaced while the server runs, and the authority that signed it stays the same across restarts. It offers HTTP/1.1
// alone, which is what the server speaks. It never turns verification off anywhere.
package certs
