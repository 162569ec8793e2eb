package handlers

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/models"
)

// The scopes a token may hold.
const (
	TasksRead       = "tasks:read"
	TasksWrite      = "tasks:write"
	SchedulesRead   = "schedules:read"
	SchedulesWrite  = "schedules:write"
	AdminRead       = "admin:read"
	AdminWrite      = "admin:write"
	UsageRead       = "usage:read"
	ScaleRead       = "scale:read"
	WorkersRegister = "workers:register"
	SecretsUse      = "secrets:use"
	Platform        = "platform" // everything, every tenant
)

// Scopes lists every scope.
func Scopes() []string {
	return []string{
		TasksRead, TasksWrite, SchedulesRead, SchedulesWrite, AdminRead, AdminWrite, UsageRead, ScaleRead, WorkersRegister,
		SecretsUse, Platform,
	}
}

// The kinds of callers.
const (
	KindKey  = "key"
	KindUser = "user"
)

// Caller is who asks, and the world the request acts on.
type Caller struct {
	Kind     string // key or user
	Sub      string // the key's client id or the user's usr_ id
	KeyID    string // the key's client id; empty for a user
	Platform bool   // belongs to no tenant

	Tenant     int32 // 0: a platform caller that named none
	TenantID   models.ID
	TenantSlug string
	Suspended  bool // the tenant is

	Env         int32 // 0: no tenant is named
	Environment string
	// Environments are the names the key is good for; empty: all of the tenant's.
	Environments []string

	Scopes      []string
	Lanes       []string // lanes the key may submit to and claim from; empty: all
	Permissions []string // permissions the key may hand to tasks; empty: all that are granted

	RequestID string
	IP        string

	Email string // of a user
	Role  string // of a user: operator of the platform, or what the membership says
}

// Holds says whether the caller holds one of the scopes; platform holds them all.
func (c *Caller) Holds(anyOf ...string) bool {
	if slices.Contains(c.Scopes, Platform) {
		return true
	}
	for _, scope := range anyOf {
		if slices.Contains(c.Scopes, scope) {
			return true
		}
	}
	return false
}

// Actor is the caller as decisions and the audit record it.
func (c *Caller) Actor() models.Actor {
	return models.Actor{Kind: c.Kind, ID: c.Sub, IP: c.IP, RequestID: c.RequestID}
}

type callerKey struct{}

// SetCaller is for web's guard and for tests.
func SetCaller(c *fiber.Ctx, caller *Caller) { c.Locals(callerKey{}, caller) }

// CallerOf is who asks; on public routes nobody: an empty caller that holds nothing.
func CallerOf(c *fiber.Ctx) *Caller {
	if caller, ok := c.Locals(callerKey{}).(*Caller); ok {
		return caller
	}
	return &Caller{RequestID: RequestID(c), IP: ClientIP(c)}
}

// RequestID is the id that every answer carries.
func RequestID(c *fiber.Ctx) string { return c.GetRespHeader("X-Request-Id") }

type ipKey struct{}

// SetClientIP is for web: who asks, whatever proxies stand between.
func SetClientIP(c *fiber.Ctx, ip string) { c.Locals(ipKey{}, ip) }

// ClientIP is the address of who asks.
func ClientIP(c *fiber.Ctx) string {
	if ip, ok := c.Locals(ipKey{}).(string); ok {
		return ip
	}
	return c.IP()
}
