package store

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"nightshift/models/postgres"
)

// LeastRaw is the raw rate at batch 500 below which a run says nothing: the machine was busy with something else.
const LeastRaw = 10_000

// Options say what to measure on.
type Options struct {
	DSN    string // the login's, of an empty database
	Admin  string // an administrator's, of the same database: it reads the WAL's position
	Rounds int    // alternating runs; 0: 5
	Tasks  int    // a run; 0: 10,000
	// Patience is how long a connection or a batch may take; 0: the usual. A test on a busy machine gives more.
	Patience time.Duration
}

// Figures are what came out. Ratios are store ÷ raw of medians.
type Figures struct {
	Raw500, Raw50           float64 // tasks a second
	Ratio500, Ratio50       float64
	Together500, Together50 float64 // submitted and started in one commit
	RowWrites, WAL          float64 // a task, at batch 500
	TogetherWrites, RawWAL  float64
	Counts                  bool // the raw limit was high enough
}

// Measure runs everything and writes a table.
func Measure(ctx context.Context, o Options, out io.Writer) (*Figures, error) {
	b, err := prepare(ctx, &o)
	if err != nil {
		return nil, err
	}
	defer b.close()
	f := &Figures{}
	for _, warm := range []int{500, 50} {
		if _, err := b.round(ctx, warm, warm*4); err != nil {
			return nil, err
		}
	}
	for _, batch := range []int{500, 50} {
		n := o.Tasks
		if batch == 50 {
			n /= 2
		}
		var runs [3][]float64
		for range o.Rounds {
			got, err := b.round(ctx, batch, n)
			if err != nil {
				return nil, err
			}
			for i := range runs {
				runs[i] = append(runs[i], got[i])
			}
		}
		rawRate, store, together := median(runs[0]), median(runs[1]), median(runs[2])
		if batch == 500 {
			f.Raw500, f.Ratio500, f.Together500 = rawRate, store/rawRate, together/rawRate
		} else {
			f.Raw50, f.Ratio50, f.Together50 = rawRate, store/rawRate, together/rawRate
		}
	}
	if err := b.volumes(ctx, f); err != nil {
		return nil, err
	}
	f.Counts = f.Raw500 >= LeastRaw
	f.print(out)
	return f, nil
}

type bench struct {
	db      *postgres.DB
	raw     *raw
	cycles  *cycles
	admin   *pgx.Conn
	payload json.RawMessage
}

func prepare(ctx context.Context, o *Options) (*bench, error) {
	if o.Rounds == 0 {
		o.Rounds = 5
	}
	if o.Tasks == 0 {
		o.Tasks = 10_000
	}
	b := &bench{payload: json.RawMessage(`{"text":"` + strings.Repeat("lorem ipsum ", 40) + `"}`)} // 0.5 kB
	var err error
	if b.db, err = postgres.Open(ctx, postgres.Options{URL: o.DSN, PoolSize: 4, ConnectTimeout: o.Patience, BatchTimeout: o.Patience}); err != nil {
		return nil, err
	}
	if err = b.db.Migrate(ctx); err != nil {
		return nil, err
	}
	if b.cycles, err = newCycles(ctx, b.db); err != nil {
		return nil, err
	}
	if b.raw, err = openRaw(ctx, o.DSN); err != nil {
		return nil, err
	}
	b.admin, err = pgx.Connect(ctx, o.Admin)
	return b, err
}

func (b *bench) close() {
	b.cycles.store.Close()
	b.db.Close()
}

// round does the same n life cycles in the three ways and answers tasks a second.
func (b *bench) round(ctx context.Context, batch, n int) (rates [3]float64, err error) {
	for i, way := range []func() error{
		func() error { return b.raw.lifeCycles(ctx, n, batch, b.payload) },
		func() error { return b.cycles.lifeCycles(ctx, n, batch, b.payload, false) },
		func() error { return b.cycles.lifeCycles(ctx, n, batch, b.payload, true) },
	} {
		began := time.Now()
		if err := way(); err != nil {
			return rates, err
		}
		rates[i] = float64(n) / time.Since(began).Seconds()
	}
	return rates, nil
}

// volumes reads row writes and WAL a task from the server's own counters.
func (b *bench) volumes(ctx context.Context, f *Figures) error {
	const n = 5000
	measure := func(do func() error) (writes, wal float64, err error) {
		var before, after [2]int64
		if before, err = b.counters(ctx); err != nil {
			return 0, 0, err
		}
		if err = do(); err != nil {
			return 0, 0, err
		}
		if after, err = b.counters(ctx); err != nil {
			return 0, 0, err
		}
		return float64(after[0]-before[0]) / n, float64(after[1]-before[1]) / n, nil
	}
	var err error
	if f.RowWrites, f.WAL, err = measure(func() error { return b.cycles.lifeCycles(ctx, n, 500, b.payload, false) }); err != nil {
		return err
	}
	if f.TogetherWrites, _, err = measure(func() error { return b.cycles.lifeCycles(ctx, n, 500, b.payload, true) }); err != nil {
		return err
	}
	_, f.RawWAL, err = measure(func() error { return b.raw.lifeCycles(ctx, n, 500, b.payload) })
	return err
}

// counters are rows inserted and updated so far, and the WAL's position. Sessions report their rows at most once a
// second, so it waits until nothing more is reported.
func (b *bench) counters(ctx context.Context) (c [2]int64, err error) {
	const read = `SELECT (SELECT sum(n_tup_ins + n_tup_upd)::bigint FROM pg_stat_user_tables WHERE relname NOT IN ('raw_tasks', 'brain')),
		pg_current_wal_insert_lsn() - '0/0'::pg_lsn`
	time.Sleep(1100 * time.Millisecond)
	if err := b.cycles.store.Renew(ctx, b.cycles.epoch); err != nil { // a commit makes the session report
		return c, err
	}
	time.Sleep(100 * time.Millisecond)
	return c, b.admin.QueryRow(ctx, read).Scan(&c[0], &c[1])
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}

func (f *Figures) print(out io.Writer) {
	fmt.Fprintf(out, "raw life cycles (one table, one connection)   batch 500 %8.0f/s   batch 50 %8.0f/s\n", f.Raw500, f.Raw50)
	fmt.Fprintf(out, "store ÷ raw                                   batch 500 %8.2f     batch 50 %8.2f     goals 0.50, 0.60\n", f.Ratio500, f.Ratio50)
	fmt.Fprintf(out, "store ÷ raw, submit and start in one commit   batch 500 %8.2f     batch 50 %8.2f     goal  0.70\n", f.Together500, f.Together50)
	fmt.Fprintf(out, "row writes a task %.2f (goal ≤ 5), with submit-and-start %.2f; WAL a task %.2f kB (goal ≤ 2.7), raw %.2f kB\n",
		f.RowWrites, f.TogetherWrites, f.WAL/1000, f.RawWAL/1000)
	if !f.Counts {
		fmt.Fprintf(out, "the raw limit is below %d tasks/s: this run counts for nothing\n", LeastRaw)
	}
}

// Verdict is what fails a run, well below the goals. A run on a busy machine is none.
func (f *Figures) Verdict() error {
	switch {
	case !f.Counts:
		return nil
	case f.Ratio500 < 0.4 || f.Ratio50 < 0.5 || f.Together500 < 0.6:
		return fmt.Errorf("the store is too slow: %.2f, %.2f and %.2f of the raw limit where 0.4, 0.5 and 0.6 fail", f.Ratio500, f.Ratio50, f.Together500)
	case f.RowWrites > 5.9 || f.WAL > 3500:
		return fmt.Errorf("the store writes too much: %.2f rows and %.0f bytes of WAL a task", f.RowWrites, f.WAL)
	}
	return nil
}
