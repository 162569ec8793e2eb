package board

import (
	"math"

	"nightshift/models"
	"nightshift/scheduler/calendar"
)

// hours is when a lane with windows opens and closes.
type hours struct {
	windows calendar.Windows
	closed  bool
	until   models.Instant // it may change then; 0: not known yet
}

// never is later than every moment.
const never = models.Instant(math.MaxInt64)

// setHours reads a lane's windows. What was stored was read before; were it unreadable, the lane would stay closed.
func (b *Board) setHours(l *Lane) {
	delete(b.timed, l.Number)
	l.hours = hours{}
	if len(l.OpenWindows) == 0 {
		return
	}
	windows, err := calendar.ParseWindows("open_windows", l.OpenWindows)
	l.hours = hours{windows: windows, closed: true}
	if err != nil {
		l.hours.until = never
	}
	b.timed[l.Number] = l
	b.nextHours = 0
}

// NextHours is when a lane may open or close by time alone; 0: that is not known yet.
func (b *Board) NextHours() models.Instant { return b.nextHours }

// OpensAt is when a closed lane opens by its windows; 0: it is open, or none of them opens again.
func (b *Board) OpensAt(lane int32) models.Instant {
	if l := b.Lanes[lane]; l != nil && l.hours.closed && l.hours.until != never {
		return l.hours.until
	}
	return 0
}

// KeepHours opens and closes lanes as the time says, and says whether one opened.
func (b *Board) KeepHours(now models.Instant) (opened bool) {
	if now < b.nextHours {
		return false
	}
	b.nextHours = never
	for _, l := range b.timed { // any order: each on its own
		if h := &l.hours; h.until <= now {
			open, until := h.windows.At(now.Time())
			h.until = never
			if !until.IsZero() {
				h.until = models.InstantOf(until)
			}
			if h.closed == open {
				h.closed = !open
				opened = opened || open
				for _, line := range l.lines {
					b.offer(line)
				}
			}
		}
		b.nextHours = min(b.nextHours, l.hours.until)
	}
	return opened
}
