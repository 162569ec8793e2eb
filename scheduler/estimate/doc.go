// Package estimate keeps what run times, tokens and cost to expect: histograms for each tenant and class, in buckets that
// grow by a quarter of a doubling, in which old observations fade. Quantiles are read from it. Before anything was seen of a
// class the run times of the tenant's other tasks of its type and model answer, and before those a prior. It is pure and small: half a kilobyte a tenant and class.
package estimate
