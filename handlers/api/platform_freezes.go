package api

import (
	"cmp"
	"fmt"
	"slices"

	"nightshift/handlers"
	"nightshift/models"
)

// mostFreezes is how many freeze windows an environment has.
const mostFreezes = 100

// FreezeWindow is a time in which no schedule of an environment fires: from its start until just before its end.
type FreezeWindow struct {
	StartsAt handlers.Time `json:"starts_at"`
	EndsAt   handlers.Time `json:"ends_at"`
	Reason   *string       `json:"reason"`
}

type freezeInput struct {
	StartsAt string               `json:"starts_at" required:"true"`
	EndsAt   string               `json:"ends_at" required:"true"`
	Reason   handlers.Opt[string] `json:"reason" maxLength:"500"`
}

func showFreezes(list []models.Freeze) []FreezeWindow {
	out := make([]FreezeWindow, len(list))
	for i, f := range list {
		out[i] = FreezeWindow{handlers.Time(f.Begin), handlers.Time(f.End), handlers.Null(f.Reason)}
	}
	return out
}

// readFreezes checks freeze windows and puts them in order.
func readFreezes(list []freezeInput) (out []models.Freeze, err error) {
	var k handlers.Check
	k.That(len(list) <= mostFreezes, "body.freeze_windows", "there are at most %d", mostFreezes)
	for i := range list[:min(len(list), mostFreezes)] {
		at, f := fmt.Sprintf("body.freeze_windows[%d]", i), models.Freeze{Reason: list[i].Reason.Or("")}
		if f.Begin, err = handlers.ParseTime(at+".starts_at", list[i].StartsAt); err != nil {
			return nil, err
		}
		if f.End, err = handlers.ParseTime(at+".ends_at", list[i].EndsAt); err != nil {
			return nil, err
		}
		k.That(f.Begin < f.End, at+".ends_at", "it must lie after starts_at")
		k.Text(at+".reason", f.Reason, 0, 500)
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b models.Freeze) int { return cmp.Compare(a.Begin, b.Begin) })
	for i := 1; i < len(out); i++ {
		k.That(out[i-1].End <= out[i].Begin, "body.freeze_windows", "two of them overlap: one that begins at %s", handlers.Time(out[i].Begin).String())
	}
	return out, k.Err()
}
