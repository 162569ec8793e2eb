package postgres

import (
	"database/sql/driver"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"nightshift/models"
)

// APIKey is a client of the API. Its secret is kept as SHA-256: it is random, so nothing slower is needed.
type APIKey struct {
	ID             string `gorm:"primaryKey"` // the client id
	Tenant         *int32 // nil: the platform's
	Name           string
	SecretSHA256   []byte     `gorm:"column:secret_sha256"`
	PreviousSHA256 []byte     `gorm:"column:previous_sha256"`
	PreviousUntil  *time.Time // until when the secret before the last rotation is good
	Scopes         Texts
	Environments   Texts // names; empty: all
	Lanes          Texts
	Permissions    Texts
	CreatedBy      string
	ExpiresAt      *time.Time
	RevokedAt      *time.Time
	CreatedAt      time.Time
	UpdatedAt      time.Time
	LastUsedAt     *time.Time

	Closed []string `gorm:"-"` // of Environments those that were deleted since: the key is not good for what is named so now
}

// TableName is the table's.
func (APIKey) TableName() string { return "api_keys" }

// Live says whether the key may be used at a moment. One whose environments were all deleted may not.
func (k *APIKey) Live(now time.Time) bool {
	return k.RevokedAt == nil && (k.ExpiresAt == nil || now.Before(*k.ExpiresAt)) && (len(k.Environments) == 0 || len(k.Open()) > 0)
}

// Open are the environments that the key names and that are still those it named; none where it names none: all.
func (k *APIKey) Open() (names []string) {
	for _, name := range k.Environments {
		if !slices.Contains(k.Closed, name) {
			names = append(names, name)
		}
	}
	return names
}

// User is a person who signs in.
type User struct {
	ID           UUID `gorm:"primaryKey"`
	Email        string
	Name         string
	PasswordHash string
	Platform     bool // belongs to the platform and may look at each tenant
	DisabledAt   *time.Time
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// TableName is the table's.
func (User) TableName() string { return "users" }

// Membership is what a user is to a tenant.
type Membership struct {
	User      UUID `gorm:"primaryKey"`
	Tenant    int32
	Role      string // owner, admin, operator, developer, viewer
	CreatedAt time.Time
}

// TableName is the table's.
func (Membership) TableName() string { return "memberships" }

// Session is a signed-in browser; its token is known to the browser alone.
type Session struct {
	TokenSHA256 []byte `gorm:"column:token_sha256;primaryKey"`
	User        UUID
	CSRFSHA256  []byte `gorm:"column:csrf_sha256"`
	IP          string `gorm:"column:ip"`
	UserAgent   string
	CreatedAt   time.Time
	LastSeenAt  *time.Time
	ExpiresAt   time.Time
}

// TableName is the table's.
func (Session) TableName() string { return "sessions" }

// SigningKey signs access tokens. All replicas share the keys; the private half is sealed at rest.
type SigningKey struct {
	KID        string `gorm:"column:kid;primaryKey"` // RFC 7638 thumbprint
	PrivateKey []byte // sealed in the database, the seed in memory
	PublicKey  []byte
	CreatedAt  time.Time
	RetireAt   *time.Time // from then on its tokens are refused
}

// TableName is the table's.
func (SigningKey) TableName() string { return "signing_keys" }

// UUID is an id in a column of people's tables.
type UUID models.ID

// Value writes the id.
func (u UUID) Value() (driver.Value, error) {
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]), nil
}

// Scan reads the id.
func (u *UUID) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("an id comes as %T", src)
	}
	var id models.ID
	err := id.UnmarshalText([]byte(strings.ReplaceAll(text, "-", "")))
	*u = UUID(id)
	return err
}

// GormDataType is the column's type.
func (UUID) GormDataType() string { return "uuid" }

// Texts is a list in a column.
type Texts []string

var arrays = pgtype.NewMap()

// Value writes the list.
func (t Texts) Value() (driver.Value, error) {
	if t == nil {
		t = Texts{}
	}
	text, err := arrays.Encode(pgtype.TextArrayOID, pgtype.TextFormatCode, []string(t), nil)
	return string(text), err
}

// Scan reads the list.
func (t *Texts) Scan(src any) error {
	return arrays.SQLScanner((*[]string)(t)).Scan(src)
}

// GormDataType is the column's type.
func (Texts) GormDataType() string { return "text[]" }
