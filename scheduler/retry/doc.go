// Package retry decides whether a failed attempt is followed by another, and after which wait.
package retry
