// Package estimate keeps what run times to expect: one moving mean for a tenant and class, with a prior before any was seen.
package estimate
