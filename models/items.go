package models

// Items is how far a task is that carries items: a row beside it, changed in the transactions that settle its attempts.
// With none done and none left it has not been tried: all are still to do.
type Items struct {
	Env      int32
	Task     ID
	Workflow ID    // the batch it is a slice of
	First    int32 // the place of its first item in the batch
	Total    int32
	Done     int32
	Used     int32  // the task's AttemptsUsed when this was written; where another one stands, a redrive tries all that is left anew
	Left     []Item // those that were tried and are not done, by index
}

// Item is one that failed when it was last tried.
type Item struct {
	Index   int32  // within the task
	Tries   int32  // those that count as attempts
	Over    bool   `json:",omitempty"` // it is not tried again
	Class   string `json:",omitempty"`
	Message string `json:",omitempty"`
}

// Bounds of items. An item that failed aloneAfter times is tried alone from then on.
const (
	MostItems       = 1000 // a task
	MostItemMessage = 500  // bytes; longer ones are cut
	aloneAfter      = 2
)

// Start makes the row say what is left one by one: of a task not tried before all, of one with another life all that is
// left, as if it had not been tried.
func (s *Items) Start(attemptsUsed int32) {
	if s.Done == 0 && len(s.Left) == 0 {
		s.Left = make([]Item, s.Total)
		for i := range s.Left {
			s.Left[i].Index = int32(i)
		}
	}
	if attemptsUsed != s.Used {
		for i := range s.Left {
			s.Left[i].Tries, s.Left[i].Over = 0, false
		}
		s.Used = attemptsUsed
	}
}

// Claim is which of Left the next attempt carries: all that failed less than twice, else the first of those that failed
// least, alone. Start comes before it.
func (s *Items) Claim() (places []int) {
	least := -1
	for i := range s.Left {
		switch it := &s.Left[i]; {
		case it.Over:
		case it.Tries < aloneAfter:
			places = append(places, i)
		case least < 0 || it.Tries < s.Left[least].Tries:
			least = i
		}
	}
	if len(places) == 0 && least >= 0 {
		places = []int{least}
	}
	return places
}

// Next says what remains to do: the fewest tries of the items that are tried again, whether any is, and whether the next
// of them is still to be tried as often as those that failed in this attempt.
func (s *Items) Next() (fewest int32, again bool) {
	for i := range s.Left {
		if it := &s.Left[i]; !it.Over && (!again || it.Tries < fewest) {
			fewest, again = it.Tries, true
		}
	}
	return fewest, again
}
