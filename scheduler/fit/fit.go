package fit

import (
	"fmt"
	"slices"

	"nightshift/models"
)

// Cards is how many cards a class needs: naming VRAM means at least one.
func Cards(c *models.Class) int {
	if c.VRAMMB > 0 {
		return max(1, int(c.GPU))
	}
	return int(c.GPU)
}

// Lack says in a few words what the worker could never give the class even when idle; empty: nothing.
func Lack(w *models.Worker, c *models.Class) string {
	switch {
	case len(w.TaskTypes) > 0 && !models.MatchPattern(w.TaskTypes, c.Type):
		return fmt.Sprintf("it does not take tasks of type %s", c.Type)
	case c.CPUMilli > w.CPUMilli:
		return fmt.Sprintf("it has %.3g cpu of %.3g", float64(w.CPUMilli)/1000, float64(c.CPUMilli)/1000)
	case c.MemoryMB > w.MemoryMB:
		return fmt.Sprintf("it has %d MB of memory of %d", w.MemoryMB, c.MemoryMB)
	case c.DiskMB > w.DiskMB:
		return fmt.Sprintf("it has %d MB of disk of %d", w.DiskMB, c.DiskMB)
	case c.Model != "" && !c.Hosted && !w.AnyModel && !slices.Contains(w.Models, c.Model):
		return fmt.Sprintf("it has not loaded the model %s", c.Model)
	}
	if need := Cards(c); need > 0 {
		if got := Pick(w.GPUs, make([]int64, len(w.GPUs)), c); got == nil {
			return fmt.Sprintf("it has no %d card(s) with %d MB of VRAM each", need, c.VRAMMB)
		}
	}
	for _, p := range c.Permissions {
		if !w.AnyPermit && !slices.Contains(w.Permissions, p) {
			return fmt.Sprintf("it may not %s", p)
		}
	}
	keys := make([]string, 0, len(c.Selector))
	for k := range c.Selector { // any order: sorted below
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		if w.Labels[k] != c.Selector[k] {
			return fmt.Sprintf("its label %s is %q, not %q", k, w.Labels[k], c.Selector[k])
		}
	}
	return ""
}

// Pick chooses the cards for a class given what is in use of each, the fullest that fit first; nil when there are not
// enough, an empty slice when none are needed.
func Pick(cards []models.GPUCard, usedMB []int64, c *models.Class) []int {
	need := Cards(c)
	if need == 0 {
		return []int{}
	}
	var fitting []int
	for i, card := range cards {
		free := card.VRAMMB - usedMB[i]
		if c.VRAMMB == 0 && usedMB[i] == 0 || c.VRAMMB > 0 && free >= c.VRAMMB {
			fitting = append(fitting, i)
		}
	}
	if len(fitting) < need {
		return nil
	}
	slices.SortStableFunc(fitting, func(a, b int) int {
		return int((cards[a].VRAMMB - usedMB[a]) - (cards[b].VRAMMB - usedMB[b]))
	})
	fitting = fitting[:need]
	slices.Sort(fitting)
	return fitting
}

// Use is what of a worker is taken.
type Use struct {
	Slots    int32
	BySlot   map[string]int32 // by kind
	CPUMilli int64
	MemoryMB int64
	DiskMB   int64
	VRAMMB   []int64 // a card; a card taken whole counts all of it
}

// NewUse is an idle worker's.
func NewUse(w *models.Worker) *Use {
	return &Use{BySlot: map[string]int32{}, VRAMMB: make([]int64, len(w.GPUs))}
}

// SlotFree says whether one more task of the kind fits into the worker's slots.
func (u *Use) SlotFree(w *models.Worker, kind models.KindName) bool {
	if w.KindSlots != nil {
		return u.BySlot[kind.String()] < w.KindSlots[kind.String()]
	}
	return u.Slots < w.Slots
}

// Room says whether the class fits beside what runs, and on which cards.
func (u *Use) Room(w *models.Worker, kind models.KindName, c *models.Class) (cards []int, ok bool) {
	if !u.SlotFree(w, kind) || u.CPUMilli+c.CPUMilli > w.CPUMilli && c.CPUMilli > 0 ||
		u.MemoryMB+c.MemoryMB > w.MemoryMB && c.MemoryMB > 0 || u.DiskMB+c.DiskMB > w.DiskMB && c.DiskMB > 0 {
		return nil, false
	}
	cards = Pick(w.GPUs, u.VRAMMB, c)
	return cards, cards != nil
}

// Take books the class; Give takes it off again with the same cards.
func (u *Use) Take(w *models.Worker, kind models.KindName, c *models.Class, cards []int) {
	u.book(w, kind, c, cards, 1)
}

// Give frees what Take booked.
func (u *Use) Give(w *models.Worker, kind models.KindName, c *models.Class, cards []int) {
	u.book(w, kind, c, cards, -1)
}

func (u *Use) book(w *models.Worker, kind models.KindName, c *models.Class, cards []int, sign int64) {
	u.Slots += int32(sign)
	u.BySlot[kind.String()] += int32(sign)
	u.CPUMilli += sign * c.CPUMilli
	u.MemoryMB += sign * c.MemoryMB
	u.DiskMB += sign * c.DiskMB
	for _, i := range cards {
		if i < len(u.VRAMMB) {
			mb := c.VRAMMB
			if mb == 0 {
				mb = w.GPUs[i].VRAMMB
			}
			u.VRAMMB[i] += sign * mb
		}
	}
}

// Fullness is the share in use of the worker's most used resource, for "the fullest that fits goes first".
func (u *Use) Fullness(w *models.Worker) float64 {
	share := func(used, all int64) float64 {
		if all <= 0 {
			return 0
		}
		return float64(used) / float64(all)
	}
	slots := int64(w.Slots)
	for _, n := range w.KindSlots { // any order: a sum
		slots += int64(n)
	}
	most := max(share(int64(u.Slots), slots), share(u.CPUMilli, w.CPUMilli), share(u.MemoryMB, w.MemoryMB))
	for i, mb := range u.VRAMMB {
		most = max(most, share(mb, w.GPUs[i].VRAMMB))
	}
	return most
}
