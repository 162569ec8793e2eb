package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"nightshift/scheduler/sim/figures"
)

// simulateFlags are the flags of simulate.
type simulateFlags struct {
	figures, quick bool
	only           []string
}

func newSimulateCommand() *cobra.Command {
	var f simulateFlags
	cmd := &cobra.Command{
		Use:   "simulate [SCENARIO.yaml]",
		Short: "Live through a scenario or a recorded trace with the production engine on a virtual clock",
		RunE: func(cmd *cobra.Command, args []string) error {
			return simulate(cmd, args, &f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.figures, "figures", false, "print the figures of scheduling quality with their goals")
	flags.BoolVar(&f.quick, "quick", false, "with --figures: those that take seconds")
	flags.StringSliceVar(&f.only, "only", nil, "with --figures: these alone, of "+fmt.Sprint(figures.Names()))
	return cmd
}

func simulate(cmd *cobra.Command, _ []string, f *simulateFlags) error {
	return printFigures(cmd, f)
}

// printFigures makes the figures one after the other; one that has crossed the value at which it fails is an error.
func printFigures(cmd *cobra.Command, f *simulateFlags) error {
	began := time.Now()
	around := figures.Around{
		Traces: os.Getenv("TRACE_DIR"),
		Clock:  func() time.Duration { return time.Since(began) },
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
		err = fmt.Errorf("%d figures have failed", failed)
	}
	return err
}
