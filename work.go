package main

import (
	"context"

	"nightshift/workers"
	"nightshift/workers/agent"
)

// work is the body of the command worker.
func work(ctx context.Context, o workers.Options, a agentOptions) error {
	return agent.Run(ctx, agent.Options{
		Worker: o, Data: a.folder, Documents: a.documents, Commands: a.allowCommands, EgressAllow: a.egressAllow, Embedding: a.embedding,
	})
}
