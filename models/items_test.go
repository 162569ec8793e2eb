package models

import (
	"slices"
	"testing"
)

func TestItemsThatKeepFailingAreTriedAlone(t *testing.T) {
	s := Items{Total: 4}
	s.Start(0)
	if got := s.Claim(); !slices.Equal(got, []int{0, 1, 2, 3}) {
		t.Fatalf("the first attempt carries %v", got)
	}
	s.Done, s.Left = 1, []Item{{Index: 0, Tries: 1}, {Index: 2, Tries: 1}, {Index: 3, Tries: 1, Over: true}}
	if got := s.Claim(); !slices.Equal(got, []int{0, 1}) {
		t.Fatalf("the second carries %v of what is left", got)
	}
	s.Left[0].Tries, s.Left[1].Tries = 2, 2
	if got := s.Claim(); !slices.Equal(got, []int{0}) {
		t.Fatalf("the third carries %v", got)
	}
	s.Left[0].Tries = 3
	if got := s.Claim(); !slices.Equal(got, []int{1}) {
		t.Fatalf("then comes %v", got)
	}
	if fewest, again := s.Next(); fewest != 2 || !again {
		t.Errorf("fewest tries %d, again %v", fewest, again)
	}
	s.Left[0].Over, s.Left[1].Over, s.Used = true, true, 3
	if _, again := s.Next(); again || len(s.Claim()) != 0 {
		t.Error("what is over is tried again")
	}
	s.Start(3)
	if _, again := s.Next(); again {
		t.Error("it begins anew without a redrive")
	}
	s.Start(0)
	if got := s.Claim(); !slices.Equal(got, []int{0, 1, 2}) || s.Left[0].Tries != 0 {
		t.Errorf("after a redrive an attempt carries %v", got)
	}
}
