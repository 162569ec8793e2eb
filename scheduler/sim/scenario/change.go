package scenario

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"nightshift/models"
	"nightshift/scheduler/sim"
)

// Change is the same world with one value changed, like tenant.acorn.weight=3: the same work arrives.
//
//	tenant.NAME.weight   worker.NAME.count   worker.NAME.slots   lane.TENANT.NAME.max_concurrent
//	kind.NAME.weight     kind.NAME.precedence   kind.NAME.min_share
//	kind.NAME.elastic    kind.NAME.yields_to   kind.NAME.max_hold_seconds   and those three of lanes
//	arrival.NAME.priority   arrival.NAME.deadline
func Change(s sim.Scenario, text string) (sim.Scenario, error) {
	what, value, ok := strings.Cut(text, "=")
	path := strings.Split(what, ".")
	if !ok || len(path) < 3 {
		return s, fmt.Errorf("%q is no change: write it like tenant.acorn.weight=3", text)
	}
	c := changer{name: strings.Join(path[1:len(path)-1], "."), field: path[len(path)-1], value: value}
	switch path[0] {
	case "tenant":
		s.Tenants = slices.Clone(s.Tenants)
		c.tenant(s.Tenants)
	case "worker":
		s.Workers = slices.Clone(s.Workers)
		c.worker(s.Workers)
	case "lane":
		s.Lanes = slices.Clone(s.Lanes)
		c.lane(&s)
	case "kind":
		s.Kinds = slices.Clone(s.Kinds)
		c.kind(&s)
	case "arrival":
		s.Arrivals = slices.Clone(s.Arrivals)
		c.arrival(s.Arrivals)
	default:
		return s, fmt.Errorf("%s: what can be changed begins with tenant, worker, lane, kind or arrival", text)
	}
	switch {
	case c.err != nil:
		return s, fmt.Errorf("%s: %w", text, c.err)
	case !c.found:
		return s, fmt.Errorf("%s: there is no %s %q, only %s", text, path[0], c.name, listed(c.names))
	}
	return s, nil
}

// changer changes the field of what has the name.
type changer struct {
	name, field, value string
	found              bool
	names              []string // that there are
	err                error
}

// mostNames is how many names a refusal lists.
const mostNames = 20

func listed(names []string) string {
	switch names = slices.Compact(names); {
	case len(names) == 0:
		return "those that the file names"
	case len(names) > mostNames:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostNames], ", "), len(names)-mostNames)
	}
	return strings.Join(names, ", ")
}

func (c *changer) is(name string) bool {
	c.names = append(c.names, name)
	c.found = c.found || name == c.name
	return name == c.name
}

// number reads the value between two bounds.
func (c *changer) number(least, most float64) float64 {
	v, err := strconv.ParseFloat(c.value, 64)
	if err != nil || !(v >= least && v <= most) {
		c.err = fmt.Errorf("%s is a number from %v to %v", c.field, least, most)
		return least
	}
	return v
}

func (c *changer) unknown(fields string) {
	c.err = fmt.Errorf("%s cannot be changed here, only %s", c.field, fields)
}

func (c *changer) tenant(tenants []sim.Tenant) {
	for i := range tenants {
		switch {
		case !c.is(tenants[i].Name):
		case c.field == "weight":
			tenants[i].Weight = c.number(0.001, 1000)
		default:
			c.unknown("weight")
		}
	}
}

func (c *changer) worker(workers []sim.Worker) {
	for i := range workers {
		switch {
		case !c.is(workers[i].Name):
		case c.field == "count":
			workers[i].Count = int(c.number(1, 10_000))
		case c.field == "slots":
			workers[i].Slots = int32(c.number(1, 100_000))
		default:
			c.unknown("count and slots")
		}
	}
}

func (c *changer) lane(s *sim.Scenario) {
	for _, t := range s.Tenants { // of those that a tenant has anyway, the file need not name one
		name, ours := strings.CutPrefix(c.name, t.Name+".")
		kind, first := models.ParseKind(name)
		if ours && first && !slices.ContainsFunc(s.Lanes, func(l sim.Lane) bool { return l.Tenant == t.Name && l.Name == name }) {
			s.Lanes = append(s.Lanes, sim.Lane{Tenant: t.Name, Name: name, Kind: kind})
		}
	}
	lanes := s.Lanes
	for i := range lanes {
		switch {
		case !c.is(lanes[i].Tenant + "." + lanes[i].Name):
		case c.field == "max_concurrent":
			lanes[i].MaxConcurrent = int32(c.number(0, 1_000_000))
		case c.yields(&lanes[i].Elastic, &lanes[i].YieldsTo, &lanes[i].MaxHold):
		default:
			c.unknown("max_concurrent, elastic, yields_to and max_hold_seconds")
		}
	}
}

// yields changes whom something yields to, names being separated by commas; false where the field is another.
func (c *changer) yields(elastic *bool, to *[]string, most *int32) bool {
	switch c.field {
	case "elastic":
		if c.value != "true" && c.value != "false" {
			c.err = fmt.Errorf("elastic is true or false")
		}
		*elastic = c.value == "true"
	case "yields_to":
		*to = nil
		if c.value != "" {
			*to = strings.Split(c.value, ",")
		}
	case "max_hold_seconds":
		*most = int32(c.number(0, 31*86400))
	default:
		return false
	}
	return true
}

func (c *changer) kind(s *sim.Scenario) {
	name, ok := models.ParseKind(c.name)
	if !ok {
		return
	}
	c.found = true
	at := slices.IndexFunc(s.Kinds, func(k models.Kind) bool { return k.Name == name })
	if at < 0 {
		at = len(s.Kinds)
		s.Kinds = append(s.Kinds, models.DefaultKinds()[name])
	}
	k := &s.Kinds[at]
	if c.yields(&k.Elastic, &k.YieldsTo, &k.MaxHold) {
		return
	}
	switch c.field {
	case "weight":
		s.Kinds[at].Weight = c.number(0.001, 1000)
	case "precedence":
		s.Kinds[at].Precedence = int32(c.number(0, 1000))
	case "min_share":
		s.Kinds[at].MinShare = c.number(0, 1)
	default:
		c.unknown("weight, precedence, min_share, elastic, yields_to and max_hold_seconds")
	}
}

func (c *changer) arrival(arrivals []sim.Arrival) {
	for i := range arrivals {
		name := arrivals[i].Name
		if name == "" {
			name = arrivals[i].Tenant
		}
		switch {
		case !c.is(name):
		case c.field == "priority":
			p := int16(c.number(0, 100))
			arrivals[i].Priority, arrivals[i].PriorityTo = p, p
			arrivals[i].Items = slices.Clone(arrivals[i].Items)
			for j := range arrivals[i].Items {
				arrivals[i].Items[j].Priority = p
			}
		case c.field == "deadline":
			d, err := time.ParseDuration(c.value)
			if err != nil || d < 0 {
				c.err = fmt.Errorf("a deadline is a span of time like 90s")
				return
			}
			arrivals[i].Deadline = d
			arrivals[i].Items = slices.Clone(arrivals[i].Items)
			for j := range arrivals[i].Items {
				arrivals[i].Items[j].Deadline = d
			}
		default:
			c.unknown("priority and deadline")
		}
	}
}
