package main

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"
)

// demoOptions are what the demo is told beside the environment of a server.
type demoOptions struct {
	docs      string // a folder; empty: the project's documents and those of the Go distribution
	docsLimit int    // most documents a tenant works on; 0: what fills the night
	once      bool   // end when the night is done
}

// newDemoCommand is a whole night; demo runs it on the ground until the context ends, or the night with --once.
func newDemoCommand(demo func(context.Context, *ground, demoOptions) error) *cobra.Command {
	var o demoOptions
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Work through a night of real documents: database, two tenants, four workers, pages",
		Long: `Work through a night of real documents with an embedded database, two tenants of weights 5 and 2, four workers and
the pages on http://127.0.0.1:8080. Data stand in NIGHTSHIFT_DATA, else in a folder demo of the default data folder. An
unfinished night is continued, a finished one starts anew. It takes the variables of serve.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.docsLimit < 0 {
				return usageError{errors.New("--docs-limit: less than no document")}
			}
			if o.docs != "" {
				if info, err := os.Stat(o.docs); err != nil || !info.IsDir() {
					return usageError{errors.New("--docs: " + o.docs + " is no folder")}
				}
			}
			return onGround(cmd, "demo", func(ctx context.Context, g *ground) error { return demo(ctx, g, o) })
		},
	}
	cmd.Flags().StringVar(&o.docs, "docs", "", "folder of documents; empty: the project's and the Go distribution's own")
	cmd.Flags().IntVar(&o.docsLimit, "docs-limit", 0, "most documents a tenant works on; 0: as many as fill the night on this machine")
	cmd.Flags().BoolVar(&o.once, "once", false, "end when the night is done, exit code 0 when it went well")
	return cmd
}
