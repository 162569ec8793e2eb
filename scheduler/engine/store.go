package engine

import (
	"context"

	"nightshift/models"
)

// Store is the truth under the engine. models/postgres is the real one, models/memory the reference; storetest holds
// both to the same answers. Its errors carry the codes FenceLost, RowCount, Unclear, BadData, Rollback or Unavailable.
type Store interface {
	// Facts reads what need names and the clock, in one round trip on the writer's connection.
	Facts(ctx context.Context, need *models.Need) (*models.Facts, error)
	// Apply commits the plan whole or not at all and tells what that set free.
	Apply(ctx context.Context, plan *models.Plan) (*models.Effects, error)
	// Refill reads rows for the board between two batches.
	Refill(ctx context.Context, ask *models.RefillAsk) (*models.Refill, error)
	// Load reads what a board is rebuilt from: heads rows a line, fewer when they would pass most rows in all.
	Load(ctx context.Context, heads, most int) (*models.Snapshot, error)
	// Stage writes a part of a body too large for one command, in a transaction of its own, on no writer's connection.
	Stage(ctx context.Context, body *models.StagedBody) error

	// Brain reads the row that says who decides.
	Brain(ctx context.Context) (Brain, error)
	// TakeOver raises the epoch if the row still is as seen, ends the session of the brain before if it holds the row,
	// and makes this store's connection the writer. It answers the new epoch; FenceLost when another was quicker.
	TakeOver(ctx context.Context, seen Brain, address string) (int64, error)
	// Renew says that the brain of this epoch lives; FenceLost when it is no longer the brain.
	Renew(ctx context.Context, epoch int64) error
	// HandOver gives the row up at once, so that another replica need not wait.
	HandOver(ctx context.Context, epoch int64) error
	// Recover finds out, on a new connection, whether the batch was committed after an unclear answer. It raises the
	// epoch (which waits for the lost transaction or ends it) and answers the new one; FenceLost when another brain
	// has taken over meanwhile, with happened still true or false as found.
	Recover(ctx context.Context, epoch, batch int64) (happened bool, next int64, err error)
}

// Brain is the row that says who decides.
type Brain = models.Brain

// Door is how everything outside reaches the brain: scheduler/loop here, web/forward there.
type Door interface {
	// Do answers a command once what it changed is committed. The error carries a models.Code.
	Do(ctx context.Context, cmd *Command) (*Answer, error)
}
