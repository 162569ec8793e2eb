package postgres

import (
	"context"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"nightshift/models"
)

// UserByEmail finds a person, nil when there is none.
func (p *People) UserByEmail(ctx context.Context, email string) (*User, error) {
	var users []User
	err := p.gorm(ctx, func(tx *gorm.DB) error { return tx.Where("lower(email) = lower(?)", email).Limit(1).Find(&users).Error })
	if err != nil || len(users) == 0 {
		return nil, err
	}
	return &users[0], nil
}

// BootstrapOperator makes the first operator, or leaves the one there is, but for a changed password.
func (p *People) BootstrapOperator(ctx context.Context, id models.ID, email, hash string) error {
	now := time.Now().UTC()
	user := User{ID: UUID(id), Email: email, PasswordHash: hash, Platform: true, CreatedAt: now, UpdatedAt: now}
	return p.gorm(ctx, func(tx *gorm.DB) error {
		return tx.Clauses(clause.OnConflict{
			Columns:   []clause.Column{{Name: "lower(email)", Raw: true}},
			DoUpdates: clause.AssignmentColumns([]string{"password_hash", "platform", "updated_at"}),
		}).Create(&user).Error
	})
}

// Memberships lists what a user is to whom.
func (p *People) Memberships(ctx context.Context, user models.ID) (out []Membership, err error) {
	err = p.gorm(ctx, func(tx *gorm.DB) error {
		return tx.Where(&Membership{User: UUID(user)}).Order("tenant").Find(&out).Error
	})
	return out, err
}

// OpenSession stores a session.
func (p *People) OpenSession(ctx context.Context, s *Session) error {
	return p.gorm(ctx, func(tx *gorm.DB) error { return tx.Create(s).Error })
}

// SessionUser is a session with its user.
type SessionUser struct {
	Session Session
	User    User
}

// SessionOf finds the live session of a token and its user, nil when there is none.
func (p *People) SessionOf(ctx context.Context, token []byte) (*SessionUser, error) {
	var (
		sessions []Session
		users    []User
	)
	err := p.gorm(ctx, func(tx *gorm.DB) error {
		err := tx.Where("token_sha256 = ? AND expires_at > clock_timestamp()", token).Limit(1).Find(&sessions).Error
		if err != nil || len(sessions) == 0 {
			return err
		}
		return tx.Where("id = ? AND disabled_at IS NULL", sessions[0].User).Limit(1).Find(&users).Error
	})
	if err != nil || len(users) == 0 {
		return nil, err
	}
	return &SessionUser{Session: sessions[0], User: users[0]}, nil
}

// CloseSession ends a session; ending one that is not there is no error.
func (p *People) CloseSession(ctx context.Context, token []byte) error {
	return p.gorm(ctx, func(tx *gorm.DB) error { return tx.Where("token_sha256 = ?", token).Delete(&Session{}).Error })
}

// SweepSessions removes the sessions that have expired and says how many there were.
func (p *People) SweepSessions(ctx context.Context) (n int64, err error) {
	err = p.gorm(ctx, func(tx *gorm.DB) error {
		gone := tx.Where("expires_at < clock_timestamp()").Delete(&Session{})
		n = gone.RowsAffected
		return gone.Error
	})
	return n, err
}
