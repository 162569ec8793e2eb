package board

import (
	"cmp"
	"fmt"
	"slices"

	"nightshift/models"
)

// appears counts lines of a class, or tasks of it behind gates, that there are now in an environment or are no longer.
func (b *Board) appears(env, class int32, n int64) {
	of := b.present[env]
	if of == nil {
		of = map[int32]int64{}
		b.present[env] = of
	}
	if of[class] += n; of[class] == 0 {
		delete(of, class)
	}
	if len(of) == 0 {
		delete(b.present, env)
	}
}

// LiveClasses counts the distinct classes of what is ready in an environment, behind gates too.
func (b *Board) LiveClasses(env int32) int { return len(b.present[env]) }

// Live says whether a class is among those.
func (b *Board) Live(env, class int32) bool { return b.present[env][class] != 0 }

// ClassesOf lists them.
func (b *Board) ClassesOf(env int32) (out []*models.Class) {
	for n := range b.present[env] { // any order: sorted below
		if c := b.Classes[n]; c != nil {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *models.Class) int { return cmp.Compare(a.Number, b.Number) })
	return out
}

// checkPresent compares what is counted with what the rows say.
func (b *Board) checkPresent(fresh *Board) error {
	for _, pair := range [][2]*Board{{b, fresh}, {fresh, b}} {
		for env, of := range pair[0].present { // any order: whichever differs
			for class, n := range of { // any order: whichever differs
				if is := pair[1].present[env][class]; is != n {
					return fmt.Errorf("of class %d in environment %d %d are there, and %d", class, env, b.present[env][class], fresh.present[env][class])
				}
			}
		}
	}
	return nil
}
