// Package inputschema checks payloads by the JSON Schema that an environment keeps for a task type.
//
// A schema is a customer's own, and checking by it is work for a process that others share: it refers to nothing outside
// itself, and what one check may cost is bounded.
package inputschema
