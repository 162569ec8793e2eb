package rate_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"nightshift/models"
	"nightshift/scheduler/rate"
)

const t0 = models.Instant(1_700_000_000_000_000)

func at(seconds float64) models.Instant { return t0 + models.Instant(seconds*1e6) }

// TestBucket walks one bucket through what may happen to it.
func TestBucket(t *testing.T) {
	terms := rate.Terms{Limit: 60, Per: time.Minute, Burst: 10}
	b := rate.NewBucket(terms, t0)
	for _, step := range []struct {
		name  string
		now   float64
		take  int64
		left  int64
		opens float64
	}{
		{"full", 0, 0, 10, 0},
		{"one of ten", 0, 1, 9, 0},
		{"it may go into debt", 0, 29, -20, 21},
		{"the debt is paid evenly", 20.5, 0, 0, 21},
		{"one has come back", 21, 0, 1, 21},
		{"never more than the burst", 500, 0, 10, 500},
		{"all", 500, 10, 0, 501},
		{"given back", 500, -4, 4, 500},
		{"not more than the burst is given back", 500, -100, 10, 500},
		{"a clock that goes back changes nothing", 400, 10, 0, 501},
	} {
		b.Take(terms, at(step.now), step.take)
		if left := b.Left(terms, at(step.now)); left != step.left {
			t.Errorf("%s: %d left, not %d", step.name, left, step.left)
		}
		if opens := b.OpensAt(terms, at(step.now)); opens != at(step.opens) {
			t.Errorf("%s: opens after %v s, not %v", step.name, opens.Sub(t0).Seconds(), step.opens)
		}
		if open := b.Open(terms, at(step.now)); open != (step.left > 0) {
			t.Errorf("%s: open %v with %d left", step.name, open, step.left)
		}
		want := at(step.opens)
		if step.left > 0 {
			want = 0
		}
		if dry, opens := b.Dry(terms, at(step.now)); dry == (step.left > 0) || opens != want {
			t.Errorf("%s: dry %v, and opens %v, not %v", step.name, dry, opens, want)
		}
	}
	if dry, opens := b.Dry(rate.Terms{}, t0); dry || opens != 0 {
		t.Errorf("without a limit: dry %v, opens %v", dry, opens)
	}
}

// TestBucketChange keeps what is used over a change of terms.
func TestBucketChange(t *testing.T) {
	small, large := rate.Terms{Limit: 10, Per: time.Second}, rate.Terms{Limit: 100, Per: time.Minute, Burst: 50}
	b := rate.NewBucket(small, t0)
	b.Take(small, t0, 4)
	b.Change(small, large, t0)
	if left := b.Left(large, t0); left != 46 {
		t.Errorf("%d left of 50 after 4 were used", left)
	}
	b.Change(large, small, t0)
	if left := b.Left(small, t0); left != 6 {
		t.Errorf("%d left of 10 after 4 were used", left)
	}
}

// TestBucketHuge holds numbers far beyond any sensible rate within their bounds.
func TestBucketHuge(t *testing.T) {
	terms := rate.Terms{Limit: 1 << 60, Per: 365 * 24 * time.Hour, Burst: 1 << 60}
	b := rate.NewBucket(terms, t0)
	for range 100 {
		b.Take(terms, t0, 1<<62)
	}
	if left := b.Left(terms, t0); left >= 0 {
		t.Errorf("%d left after much more than everything was taken", left)
	}
	if opens := b.OpensAt(terms, t0); opens < t0 || opens > models.Forever {
		t.Errorf("opens at %d", opens)
	}
}

func drawTerms(r *rapid.T) rate.Terms {
	return rate.Terms{
		Limit: rapid.Int64Range(1, 700).Draw(r, "limit"),
		Per:   time.Duration(rapid.Int64Range(1, 3_600_000_000).Draw(r, "per")) * time.Microsecond,
		Burst: rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 900)).Draw(r, "burst"),
	}
}

// TestBucketProperties: a bucket that opens at a moment is open then and not a microsecond before; over any stretch no more
// than its burst and what came back can pass one by one.
func TestBucketProperties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := drawTerms(r)
		b := rate.NewBucket(terms, t0)
		burst := terms.Burst
		if burst == 0 {
			burst = terms.Limit
		}
		now, passed := t0, int64(0)
		for range rapid.IntRange(1, 200).Draw(r, "steps") {
			opens := b.OpensAt(terms, now)
			if opens > now && b.Left(terms, opens-1) > 0 {
				r.Fatalf("%d are left a microsecond before it opens", b.Left(terms, opens-1))
			}
			if b.Left(terms, opens) < 1 {
				r.Fatalf("%d are left when it opens", b.Left(terms, opens))
			}
			now = opens + models.Instant(rapid.Int64Range(0, int64(terms.Per/time.Microsecond)/4).Draw(r, "later"))
			b.Take(terms, now, 1)
			passed++
			if least := (passed - burst) * int64(terms.Per/time.Microsecond) / terms.Limit; int64(now-t0) < least {
				r.Fatalf("%d passed in %d µs: %d of burst, %d in %v", passed, now-t0, burst, terms.Limit, terms.Per)
			}
		}
	})
}

// TestMeterNeverExceeds: whatever comes when, no stretch of the length has more than the limit, at most the burst pass at
// once, and who always takes what is there gets nearly all of the rate.
func TestMeterNeverExceeds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := drawTerms(r)
		terms.Per = max(terms.Per, time.Millisecond*time.Duration(terms.Limit))
		burst := terms.Burst
		if burst == 0 {
			burst = terms.Limit
		}
		m := rate.NewMeter(terms, t0)
		greedy := rapid.Bool().Draw(r, "greedy")
		now, starts := t0, []models.Instant{}
		for range rapid.IntRange(1, 3_000).Draw(r, "starts") {
			now = m.OpensAt(now)
			if m.Left(now) < 1 {
				r.Fatalf("nothing is left when it opens")
			}
			if !greedy && rapid.IntRange(0, 9).Draw(r, "pause") == 0 {
				now += models.Instant(rapid.Int64Range(0, int64(terms.Per/time.Microsecond)*2).Draw(r, "later"))
			}
			m.Pass(now, 1)
			starts = append(starts, now)
		}
		if len(m.Marks()) > rate.Slices+2 {
			r.Fatalf("%d marks", len(m.Marks()))
		}
		checkWindows(r, starts, terms, max(burst, terms.Limit), burst)
		if span := now.Sub(t0); greedy && span > 3*terms.Per {
			most := float64(len(starts)-int(max(burst, terms.Limit))) / float64(terms.Limit) * terms.Per.Seconds()
			if span.Seconds() > most*(1+1.0/rate.Slices)+3*terms.Per.Seconds() {
				r.Fatalf("%d starts took %v, at its rate they take %v s", len(starts), span, most)
			}
		}
	})
}

func checkWindows(r *rapid.T, starts []models.Instant, terms rate.Terms, most, burst int64) {
	first := 0
	for i, s := range starts {
		for starts[first] <= terms.Since(s) {
			first++
		}
		if n := int64(i - first + 1); n > most {
			r.Fatalf("%d starts within %v, at most %d are allowed", n, terms.Per, most)
		}
		if j := i - int(burst); j >= 0 && starts[j] == s {
			r.Fatalf("more than %d at once", burst)
		}
	}
}

// TestMeterSurvives: saved and restored at any moment, and summed up by slice as a store would, it goes on as if nothing
// had happened.
func TestMeterSurvives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		terms := drawTerms(r)
		m := rate.NewMeter(terms, t0)
		now, saved := t0, []rate.Mark{}
		for range rapid.IntRange(1, 200).Draw(r, "starts") {
			now = m.OpensAt(now) + models.Instant(rapid.Int64Range(0, int64(terms.Per/time.Microsecond)/3).Draw(r, "later"))
			n := min(m.Left(now), rapid.Int64Range(1, 5).Draw(r, "n"))
			m.Pass(now, n)
			saved = append(saved, rate.Mark{At: now, N: n})
		}
		again := rate.Restore(terms, m.Bucket(), saved)
		for range 20 {
			if a, b := m.OpensAt(now), again.OpensAt(now); a != b {
				r.Fatalf("opens at %d, restored at %d", a, b)
			}
			if a, b := m.Left(now), again.Left(now); a != b {
				r.Fatalf("%d left, restored %d", a, b)
			}
			now = m.OpensAt(now)
			m.Pass(now, 1)
			again.Pass(now, 1)
		}
	})
}

// TestMeterChange keeps what has passed when the terms change.
func TestMeterChange(t *testing.T) {
	m := rate.NewMeter(rate.Terms{Limit: 10, Per: time.Minute}, t0)
	m.Pass(t0, 6)
	m.Change(rate.Terms{Limit: 4, Per: time.Minute}, at(1))
	if left, opens := m.Left(at(1)), m.OpensAt(at(1)); left != 0 || opens != at(60) {
		t.Errorf("%d left, opens after %v", left, opens.Sub(t0))
	}
	m.Change(rate.Terms{Limit: 20, Per: time.Minute}, at(2))
	if left := m.Left(at(2)); left != 14 {
		t.Errorf("%d left of 20 after 6", left)
	}
	m.Change(rate.Terms{Limit: 6, Per: 10 * time.Second}, at(3))
	if left, opens := m.Left(at(3)), m.OpensAt(at(3)); left != 0 || opens != at(13) || m.Passed(at(3)) != 6 {
		t.Errorf("another length: %d left, opens after %v, %d passed", left, opens.Sub(t0), m.Passed(at(3)))
	}
}
