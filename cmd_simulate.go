package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"nightshift/models"
	"nightshift/scheduler/sim"
	"nightshift/scheduler/sim/figures"
	"nightshift/scheduler/sim/report"
	"nightshift/scheduler/sim/scenario"
	"nightshift/scheduler/sim/trace"
)

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	traces         []string
	slots          int
	speed          trace.Speed
	whatIf         []string
	json           bool
	svg            string
	seed           uint64
	seeded         bool
	figures, quick bool
	only           []string
}

func newSimulateCommand() *cobra.Command {
	f := simulateFlags{speed: trace.DefaultSpeed}
	cmd := &cobra.Command{
		Use:   "simulate SCENARIO.yaml | --trace FILE.csv[.gz] | --figures",
		Short: "Live through a scenario or a recorded trace with the production engine on a virtual clock",
		Example: `  nightshift simulate examples/scenarios/weights.yaml --what-if tenant.birch.weight=4
  nightshift simulate --trace jobs.csv.gz --slots 330 --svg jobs.svg
  nightshift simulate --figures --quick`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.seeded = cmd.Flags().Changed("seed")
			return simulate(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.traces, "trace", nil, "a recorded trace to live through; may be named several times")
	flags.IntVar(&f.slots, "slots", 0, "with --trace: slots in all (enough for a tenth more than the mean of the work)")
	flags.Float64Var(&f.speed.Read, "read-speed", f.speed.Read, "with --trace: tokens a second that a model reads")
	flags.Float64Var(&f.speed.Write, "write-speed", f.speed.Write, "with --trace: tokens a second that a model writes")
	flags.StringArrayVar(&f.whatIf, "what-if", nil, "live through it again with this changed, like tenant.acorn.weight=3; may be named several times")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	flags.StringVar(&f.svg, "svg", "", "draw the timeline into this file")
	flags.Uint64Var(&f.seed, "seed", 0, "draw another world of the same kind")
	flags.BoolVar(&f.figures, "figures", false, "print the figures of scheduling quality with their goals")
	flags.BoolVar(&f.quick, "quick", false, "with --figures: those that take seconds")
	flags.StringSliceVar(&f.only, "only", nil, "with --figures: these alone, of "+strings.Join(figures.Names(), ", "))
	return cmd
}

// stray is a flag that says nothing beside what is asked for.
func stray(cmd *cobra.Command, f *simulateFlags) error {
	for _, group := range []struct {
		with  bool
		where string
		names []string
	}{
		{f.figures, "with --figures", []string{"quick", "only"}},
		{len(f.traces) > 0, "with --trace", []string{"slots", "read-speed", "write-speed"}},
		{!f.figures, "with a scenario file or --trace", []string{"what-if", "json", "svg", "seed"}},
	} {
		for _, name := range group.names {
			if !group.with && cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s goes %s alone", name, group.where)
			}
		}
	}
	return nil
}

func simulate(cmd *cobra.Command, args []string, f *simulateFlags) error {
	if err := stray(cmd, f); err != nil {
		return usageError{err}
	}
	switch {
	case f.figures && len(args)+len(f.traces) == 0:
		return printFigures(cmd, f)
	case f.figures, len(args) == 1 && len(f.traces) > 0, len(args)+len(f.traces) == 0:
		return usageError{errors.New("name a scenario file, or --trace, or --figures")}
	}
	world, title, err := readWorld(args, f)
	if err != nil {
		return usageError{err}
	}
	if f.seeded {
		world.Seed = f.seed
	}
	changed := world
	for _, text := range f.whatIf {
		if changed, err = scenario.Change(changed, text); err != nil {
			return usageError{err}
		}
	}
	if f.svg != "" { // hours pass before it is written
		file, err := os.OpenFile(f.svg, os.O_CREATE|os.O_WRONLY, 0o644)
		if err != nil {
			return usageError{err}
		}
		if err := file.Close(); err != nil {
			return err
		}
	}
	r := report.Report{Title: title, Base: sim.New(world).Run(), Changes: f.whatIf}
	for _, t := range world.Tenants {
		r.Tenants = append(r.Tenants, t.Name)
	}
	violations := len(r.Base.Violations)
	if len(f.whatIf) > 0 {
		other := sim.New(changed).Run()
		violations += len(other.Violations)
		r.WhatIf = &other
	}
	if err := writeReport(cmd.OutOrStdout(), &r, f); err != nil {
		return err
	}
	if violations > 0 {
		return fmt.Errorf("the world broke a rule %d times", violations)
	}
	return nil
}

func writeReport(out io.Writer, r *report.Report, f *simulateFlags) (err error) {
	if f.json {
		err = r.JSON(out)
	} else {
		err = r.Table(out)
	}
	if err != nil || f.svg == "" {
		return err
	}
	file, err := os.Create(f.svg)
	if err != nil {
		return err
	}
	return errors.Join(r.SVG(file), file.Close())
}

func readWorld(args []string, f *simulateFlags) (s sim.Scenario, title string, err error) {
	if len(f.traces) > 0 {
		return traceWorld(f)
	}
	file, err := os.Open(args[0])
	if err != nil {
		return s, "", err
	}
	defer file.Close() // read only
	s, err = scenario.Read(file)
	if err != nil {
		return s, "", fmt.Errorf("%s: %w", args[0], err)
	}
	return s, strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])), nil
}

// traceWorld gives recorded work, a slot for each task, to like workers.
func traceWorld(f *simulateFlags) (s sim.Scenario, title string, err error) {
	s = sim.Scenario{Seed: 1, Points: 200}
	if f.slots < 0 || f.slots > 1_000_000 || !(f.speed.Read > 0) || !(f.speed.Write > 0) {
		return s, "", errors.New("slots are at most 1000000, speeds are above 0")
	}
	var span, work, longest time.Duration
	var names []string
	known := map[string]bool{}
	for _, path := range f.traces {
		t, err := trace.ReadFile(path, f.speed)
		if err != nil {
			return s, "", err
		}
		for _, a := range t.Arrivals() {
			if !known[a.Tenant] {
				s.Tenants = append(s.Tenants, sim.Tenant{Name: a.Tenant, Weight: 1})
			}
			known[a.Tenant] = true
			a.Hard = 365 * 24 * time.Hour // what was recorded ran to its end
			s.Arrivals = append(s.Arrivals, a)
		}
		for i := range t.Tasks {
			longest = max(longest, t.Tasks[i].Run)
		}
		span, work = max(span, t.Span()), work+t.Work()
		names = append(names, fmt.Sprintf("%s (%s, %d tasks)", filepath.Base(path), t.Format, len(t.Tasks)))
	}
	slots := f.slots
	if slots == 0 {
		slots = 1 + int(1.1*work.Seconds()/max(span.Seconds(), longest.Seconds(), 1))
	}
	s.Until = span + longest + work/time.Duration(slots) + time.Hour
	s.Workers = traceWorkers(slots, s.Until)
	if s.Until > 48*time.Hour {
		s.Pace = time.Minute
	}
	return s, fmt.Sprintf("%s on %d slots", strings.Join(names, " and "), slots), nil
}

// traceWorkers shares the slots out to at most ten workers, which say seldom that they live where time is long.
func traceWorkers(slots int, until time.Duration) (out []sim.Worker) {
	workers := min(10, slots)
	for i := range workers {
		row := models.Worker{Slots: int32(slots / workers), LeaseSeconds: 30}
		if i < slots%workers {
			row.Slots++
		}
		if until > 48*time.Hour {
			row.LeaseSeconds = 3600
		}
		out = append(out, sim.Worker{Name: fmt.Sprintf("w%d", i), Worker: row})
	}
	return out
}

// printFigures makes the figures one after the other; one that has crossed the value at which it fails is an error.
func printFigures(cmd *cobra.Command, f *simulateFlags) error {
	for _, name := range f.only {
		if !slices.Contains(figures.Names(), name) {
			return usageError{fmt.Errorf("there is no figure %q, only %s", name, strings.Join(figures.Names(), ", "))}
		}
	}
	around := figures.Around{
		Traces: os.Getenv("TRACE_DIR"),
		Clock:  cpuClock(),
		Heap: func() uint64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return m.HeapAlloc
		},
	}
	out, head, failed := cmd.OutOrStdout(), true, 0
	var err error
	figures.Run(around, f.quick, f.only, func(made []figures.Figure) {
		if err == nil {
			err = figures.Print(out, made, head)
		}
		head = false
		for _, figure := range made {
			if figure.Verdict() == "FAILS" {
				failed++
			}
		}
	})
	if err == nil && failed > 0 {
		err = fmt.Errorf("%d figures have crossed the value at which they fail", failed)
	}
	return err
}
