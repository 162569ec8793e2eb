// Command nightshift is the whole of Nightshift in one binary: the control plane, its workers and its tools.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

const (
	exitOK      = 0
	exitFailure = 1
	exitUsage   = 2
)

// usageError is a mistake of the caller: a wrong flag, argument or variable.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run is the command line: its exit code says whether the work (1) or the call (2) was at fault.
func run(ctx context.Context, args []string, out, errs io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errs)
	began := false
	markBegin(root, &began)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(errs, "nightshift:", err)
	var usage usageError
	if !began || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailure
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "nightshift",
		Short:         "Decides what AI work should run next, and proves afterwards what ran, where, why and at what cost",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return errors.Join(cmd.Help(), usageError{errors.New("name a command")})
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServeCommand(serve), newDemoCommand(demo), newWorkerCommand(work), newTokenCommand(), newSimulateCommand(), newConfigCommand(), newVersionCommand())
	return root
}

// markBegin notes that a command's own work has begun: what failed before was the call.
func markBegin(cmd *cobra.Command, began *bool) {
	if work := cmd.RunE; work != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			*began = true
			return work(cmd, args)
		}
	}
	for _, child := range cmd.Commands() {
		markBegin(child, began)
	}
}
