package board

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"nightshift/scheduler/fair"
)

// Whatever is charged, given back, put in and taken out, the first stand is the tenant with the smallest virtual time.
func TestTheFirstStandIsThatOfTheLeastServed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		clock, h, places := fair.NewClock(), &standHeap{}, map[int32]*Stand{}
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			tenant := rapid.Int32Range(1, 30).Draw(t, "tenant")
			p := places[tenant]
			switch op := rapid.IntRange(0, 3).Draw(t, "op"); {
			case p == nil:
				p = &Stand{Tenant: tenant, account: clock.Of(tenant)}
				places[tenant] = p
				h.push(p)
			case op == 0:
				h.remove(p.index)
				delete(places, tenant)
			case op == 1:
				clock.Correct(tenant, -rapid.Float64Range(0, 5).Draw(t, "refund"), 1)
				h.raise(p)
			default:
				clock.Start(tenant, rapid.Float64Range(0, 5).Draw(t, "seconds"), 1)
			}
			var order []*Stand
			for _, p := range places { // any order: sorted below
				order = append(order, p)
			}
			slices.SortFunc(order, func(a, b *Stand) int {
				x, y := standItem{a.account.Virtual(), a.Tenant, a}, standItem{b.account.Virtual(), b.Tenant, b}
				if x.before(&y) {
					return -1
				}
				return 1
			})
			if got := h.first(); len(order) > 0 && got != order[0] || len(order) == 0 && got != nil {
				t.Fatalf("first is %v of %d", got, len(order))
			}
		}
	})
}
