package fit

import (
	"slices"
	"strings"
	"testing"

	"nightshift/models"
	"pgregory.net/rapid"
)

func cards(mb ...int64) (out []models.GPUCard) {
	for _, m := range mb {
		out = append(out, models.GPUCard{VRAMMB: m})
	}
	return out
}

func TestLackNamesWhatIsMissing(t *testing.T) {
	worker := &models.Worker{
		TaskTypes: []string{"llm.*", "embed"}, CPUMilli: 4000, MemoryMB: 8192, GPUs: cards(24576, 24576), Slots: 4,
		Models: []string{"small"}, Permissions: []string{"internet"}, Labels: map[string]string{"region": "eu"},
	}
	for _, c := range []struct {
		class models.Class
		want  string
	}{
		{models.Class{Type: "llm.generate", CPUMilli: 4000, GPU: 2, VRAMMB: 24576, Model: "small"}, ""},
		{models.Class{Type: "embed", Selector: map[string]string{"region": "eu"}, Permissions: []string{"internet"}}, ""},
		{models.Class{Type: "embed.more"}, "type"},
		{models.Class{Type: "embed", CPUMilli: 4001}, "cpu"},
		{models.Class{Type: "embed", MemoryMB: 9000}, "memory"},
		{models.Class{Type: "embed", DiskMB: 1}, "disk"},
		{models.Class{Type: "embed", VRAMMB: 40960}, "VRAM"}, // does not fit two cards with 24 GB
		{models.Class{Type: "embed", GPU: 3}, "card"},
		{models.Class{Type: "embed", Model: "large"}, "model"},
		{models.Class{Type: "embed", Permissions: []string{"shell"}}, "may not"},
		{models.Class{Type: "embed", Selector: map[string]string{"region": "us"}}, "label"},
	} {
		if got := Lack(worker, &c.class); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.class, got, c.want)
		}
	}
}

func TestAWorkerOfAllLacksNoModelAndNoPermission(t *testing.T) {
	class := &models.Class{Type: "a", Model: "large", Permissions: []string{"shell"}}
	for _, c := range []struct{ model, permit, fits bool }{{true, true, true}, {true, false, false}, {false, true, false}} {
		if got := Lack(&models.Worker{AnyModel: c.model, AnyPermit: c.permit}, class); (got == "") != c.fits {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

func TestCardsAreFilledBeforeFreshOnesAreOpened(t *testing.T) {
	class := &models.Class{VRAMMB: 8000}
	if got := Pick(cards(24000, 24000), []int64{0, 10000}, class); !slices.Equal(got, []int{1}) {
		t.Errorf("took card %v", got)
	}
	if got := Pick(cards(24000), []int64{1}, &models.Class{GPU: 1}); got != nil {
		t.Errorf("a card in use was given whole: %v", got)
	}
}

func TestUseNeverPassesTheWorkerAndEndsIdle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &models.Worker{CPUMilli: 8000, MemoryMB: 16000, GPUs: cards(24000, 48000), Slots: rapid.Int32Range(1, 8).Draw(t, "slots")}
		use := NewUse(w)
		type taken struct {
			class models.Class
			cards []int
		}
		var live []taken
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if len(live) > 0 && rapid.Bool().Draw(t, "give") {
				use.Give(w, models.Compute, &live[0].class, live[0].cards)
				live = live[1:]
				continue
			}
			c := models.Class{CPUMilli: rapid.Int64Range(0, 5000).Draw(t, "cpu"), MemoryMB: rapid.Int64Range(0, 9000).Draw(t, "memory"), GPU: rapid.Int32Range(0, 2).Draw(t, "gpu"), VRAMMB: rapid.Int64Range(0, 30000).Draw(t, "vram")}
			if got, ok := use.Room(w, models.Compute, &c); ok {
				use.Take(w, models.Compute, &c, got)
				live = append(live, taken{c, got})
			}
			if use.Slots > w.Slots || use.CPUMilli > w.CPUMilli || use.MemoryMB > w.MemoryMB || use.VRAMMB[0] > 24000 || use.VRAMMB[1] > 48000 {
				t.Fatalf("over the worker: %+v", use)
			}
		}
		for _, l := range live {
			use.Give(w, models.Compute, &l.class, l.cards)
		}
		if use.Slots != 0 || use.CPUMilli != 0 || use.MemoryMB != 0 || use.VRAMMB[0] != 0 || use.VRAMMB[1] != 0 {
			t.Fatalf("not idle at the end: %+v", use)
		}
	})
}
