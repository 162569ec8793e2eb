package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

// newServeCommand is the control plane; serve runs it on the ground until the context ends.
func newServeCommand(serve func(context.Context, *ground) error) *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Serve the API, the pages and the scheduler",
		Long: `Serve the API, the pages and the scheduler, configured by the environment (NAME=value; a secret also as NAME_FILE):

` + describeVariables() + `
SIGTERM drains: claims stop, the batch in hand is finished, another replica is called to take over.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onGround(cmd, "", serve)
		},
	}
}

var errDatabaseEnded = errors.New("the embedded database ended by itself; its postgres.log in the data folder says why")

// onGround prepares the ground of the environment and runs a body on it, which ends with the command's context or with
// the database under it. The folder is where the data stand, below the default root, unless NIGHTSHIFT_DATA says so.
func onGround(cmd *cobra.Command, folder string, body func(context.Context, *ground) error) error {
	config, err := environmentConfig(folder)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(cmd.Context())
	defer cancel(nil)
	g, err := prepare(ctx, config, newLogger(config, cmd.ErrOrStderr()))
	if err != nil {
		return err
	}
	defer g.close()
	go func() {
		select {
		case <-ctx.Done():
		case <-g.databaseEnded():
			cancel(errDatabaseEnded)
		}
	}()
	err = body(ctx, g)
	if cause := context.Cause(ctx); errors.Is(cause, errDatabaseEnded) {
		return cause
	}
	return err
}
