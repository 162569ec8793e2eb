package storetest

import (
	"context"
	"encoding/json"

	"nightshift/models"
	"nightshift/scheduler/engine"
)

// side is one of the two stores with its engine.
type side struct {
	name   string
	store  engine.Store
	engine *engine.Engine
	epoch  int64
	batch  int64
}

// failure is what goes wrong with a turn.
type failure int

const (
	noFault       failure = iota
	failedApply           // the transaction is rolled back
	unclearLost           // the connection breaks before the commit arrives
	unclearStands         // it breaks after
)

// step is all that one side said in a turn.
type step struct {
	Need    *models.Need
	Now     models.Instant
	Plan    *models.Plan
	Freed   []models.Task
	Replies []reply
	Ask     *models.RefillAsk
	Refill  *models.Refill
	Code    models.Code // why the plan was not applied
	detail  string
}

// reply is an answer as it goes out.
type reply struct {
	To     models.ID
	Answer *engine.Answer
	Err    *models.Error
}

// turn does what the loop does with a batch.
func (s *side) turn(ctx context.Context, commands []*engine.Command, goes failure) (out step, err error) {
	commands = travelled(commands)
	out.Need = s.engine.Need(commands)
	facts, err := s.store.Facts(ctx, out.Need)
	if err != nil {
		return out, err
	}
	out.Now = facts.Now
	plan, replies := s.engine.Decide(s.batch+1, s.epoch, facts, commands)
	out.Plan, out.Replies = plan, said(replies)
	effects := &models.Effects{}
	if !plan.Empty() {
		if effects, err = s.apply(ctx, plan, goes); err != nil {
			out.Code, out.detail = models.CodeOf(err), err.Error()
			return out, nil
		}
		s.batch++
	}
	out.Freed = effects.Freed
	out.Replies = append(out.Replies, said(s.engine.Commit(effects))...)
	return out, s.refill(ctx, &out)
}

func (s *side) apply(ctx context.Context, plan *models.Plan, goes failure) (*models.Effects, error) {
	switch goes {
	case failedApply:
		return nil, models.Errorf(models.Rollback, "rolled back, as was asked")
	case unclearLost:
		return nil, models.Errorf(models.Unclear, "lost on the way, as was asked")
	case unclearStands:
		if _, err := s.store.Apply(ctx, plan); err != nil {
			return nil, err
		}
		return nil, models.Errorf(models.Unclear, "the answer was lost, as was asked")
	}
	return s.store.Apply(ctx, plan)
}

func (s *side) refill(ctx context.Context, out *step) (err error) {
	if out.Ask = s.engine.Asks(); out.Ask == nil {
		return nil
	}
	if out.Refill, err = s.store.Refill(ctx, out.Ask); err == nil {
		s.engine.Refilled(out.Ask, out.Refill)
	}
	return err
}

// recover finds out what became of the last batch.
func (s *side) recover(ctx context.Context) (happened bool, err error) {
	happened, s.epoch, err = s.store.Recover(ctx, s.epoch, s.batch+1)
	return happened, err
}

// rebuild reads the board anew.
func (s *side) rebuild(ctx context.Context, config engine.Config) error {
	snapshot, err := s.store.Load(ctx, config.Heads, config.MostEntries)
	if err != nil {
		return err
	}
	s.batch = snapshot.Batch
	s.engine.Rebuild(snapshot)
	return nil
}

// takeOver lets a new engine decide.
func (s *side) takeOver(ctx context.Context, config engine.Config) error {
	seen, err := s.store.Brain(ctx)
	if err != nil {
		return err
	}
	if s.epoch, err = s.store.TakeOver(ctx, seen, config.Address); err != nil {
		return err
	}
	config.Seed[31] = byte(s.epoch) // no two brains draw the same tokens
	s.engine = engine.New(config)
	return s.rebuild(ctx, config)
}

// travelled are the commands as another replica would send them.
func travelled(commands []*engine.Command) []*engine.Command {
	out := make([]*engine.Command, len(commands))
	for i, c := range commands {
		text, err := json.Marshal(c)
		if err != nil {
			panic(err) // commands always encode
		}
		out[i] = &engine.Command{}
		if err := json.Unmarshal(text, out[i]); err != nil {
			panic(err)
		}
	}
	return out
}

func said(replies []engine.Reply) []reply {
	out := make([]reply, 0, len(replies))
	for _, r := range replies {
		line := reply{To: r.To.ID, Answer: r.Answer}
		if r.Err != nil {
			line.Err = models.Errorf(models.CodeOf(r.Err), "%s", r.Err.Error())
		}
		out = append(out, line)
	}
	return out
}
