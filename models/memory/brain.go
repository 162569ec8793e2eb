package memory

import (
	"context"
	"strconv"

	"nightshift/models"
)

// Brain reads the row that says who decides.
func (s *Store) Brain(context.Context) (models.Brain, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.brain, nil
}

// TakeOver raises the epoch if the row still is as seen.
func (s *Store) TakeOver(_ context.Context, seen models.Brain, address string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seen.Epoch != s.brain.Epoch || seen.Beat != s.brain.Beat {
		return 0, models.Errorf(models.FenceLost, "another replica was quicker: epoch %d", s.brain.Epoch)
	}
	s.brain.Address = address
	s.beat(s.now())
	return s.raise(), nil
}

// Renew says that the brain of this epoch lives.
func (s *Store) Renew(_ context.Context, epoch int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed(epoch, s.now())
}

// HandOver gives the row up at once.
func (s *Store) HandOver(_ context.Context, epoch int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.renewed(epoch, 0)
}

// Recover finds out whether the batch was committed and raises the own epoch.
func (s *Store) Recover(_ context.Context, epoch, batch int64) (happened bool, next int64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	by, exists := s.batches[batch]
	happened = exists && by == epoch
	if epoch != s.brain.Epoch {
		return happened, 0, models.Errorf(models.FenceLost, "the brain has epoch %d", s.brain.Epoch)
	}
	s.beat(s.now())
	return happened, s.raise(), nil
}

func (s *Store) renewed(epoch int64, at models.Instant) error {
	if epoch != s.brain.Epoch {
		return models.Errorf(models.FenceLost, "the brain has epoch %d, not %d", s.brain.Epoch, epoch)
	}
	s.beat(at)
	return nil
}

func (s *Store) raise() int64 {
	s.brain.Epoch++
	return s.brain.Epoch
}

// beat changes the row, as a standby sees it.
func (s *Store) beat(at models.Instant) {
	s.beats++
	s.brain.RenewedAt, s.brain.Beat = at, strconv.FormatInt(s.beats, 10)
}
