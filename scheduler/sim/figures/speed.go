package figures

import (
	"fmt"
	"time"
)

// speed measures the engine alone, on one thread: a decision is one task chosen and started.
func speed(l *lab) (out []Figure) {
	for _, c := range []struct {
		tenants, classes int
		goal, fails      float64
	}{{1_000, 32, 100_000, 50_000}, {10_000, 4, 60_000, 30_000}} {
		b := newBench(l.Clock, c.tenants, c.classes)
		b.fill(c.tenants * c.classes * 2)
		b.cycle(40)
		b.forget()
		b.cycle(2_000)
		out = append(out, Figure{
			Name: fmt.Sprintf("decisions a second, %d tenants × %d classes", c.tenants, c.classes), Value: b.rate(b.deciding), Goal: c.goal, Fails: c.fails, Format: "%.0f", More: true,
			Note: fmt.Sprintf("with their ends %.0f", b.rate(b.deciding+b.settling)),
		})
	}
	return append(out, flatness(l)...)
}

// flatness compares what a task costs the engine from its submit to its end, with a short and a long backlog of the same
// 100 tenants × 10 classes: long enough for every line to be refilled several times. What is read is entered in time that
// counts; the reading itself is the store's. The two are measured in turns, so that the machine's mood weighs on both alike.
func flatness(l *lab) []Figure {
	short, long := newBench(l.Clock, 100, 10), newBench(l.Clock, 100, 10)
	short.fill(1_000)
	long.fill(1_000_000)
	for _, b := range []*bench{short, long} {
		b.cycle(200)
		b.forget()
	}
	before := long.engine.Board().Counted.Refills
	for range 25 {
		short.cycle(200)
		long.cycle(200)
	}
	refills := long.engine.Board().Counted.Refills - before
	return []Figure{
		{Name: "cost of a task, backlog of 1,000,000 ÷ 1,000", Value: short.rate(short.whole()) / long.rate(long.whole()), Goal: 1.3, Fails: 3, Format: "%.2f", Note: fmt.Sprintf("%.0f and %.0f a second; a line read again every %d starts", long.rate(long.whole()), short.rate(short.whole()), long.started/int(max(1, refills)))},
		{Name: "entries on the board with a backlog of 1,000,000", Value: float64(long.engine.Board().Entries()), Goal: 200_000, Fails: 250_000, Format: "%.0f"},
	}
}

// memory is what a task on the board takes, the board being as full as it gets.
func memory(l *lab) []Figure {
	b := newBench(l.Clock, 1_000, 32)
	before := l.Heap()
	b.fill(96_000)
	held := b.engine.Board().Entries()
	used := float64(l.Heap()) - float64(before) - float64(b.bytes())
	return []Figure{{Name: "bytes a task on the board", Value: used / float64(max(1, held)), Goal: 1_536, Fails: 4_096, Format: "%.0f", Note: fmt.Sprintf("%d entries in %d lines", held, b.engine.Board().Lines())}}
}

// rate is started tasks a second.
func (b *bench) rate(spent time.Duration) float64 {
	return float64(b.started) / max(1e-9, spent.Seconds())
}

// whole is everything the engine did for the tasks that passed.
func (b *bench) whole() time.Duration { return b.deciding + b.settling + b.entering }

// forget begins the measurement anew.
func (b *bench) forget() { b.deciding, b.settling, b.entering, b.started = 0, 0, 0, 0 }
