package handlers

import (
	"context"
	"strconv"
	"sync"
	"time"

	"nightshift/models"
	"nightshift/models/postgres"
)

// directoryLife is how long a tenant or environment found by name is taken as read. Names and numbers never change; the
// rest is only shown, decisions read their own.
const directoryLife = 5 * time.Second

// Directory finds tenants and environments by name for each request, and remembers them for seconds.
type Directory struct {
	world *postgres.World

	mu      sync.Mutex
	tenants map[string]entry[models.Tenant]
	envs    map[envName]entry[models.Environment]
	quotas  map[int32]entry[models.Quotas]
}

type envName struct {
	tenant int32
	name   string
}

type entry[T any] struct {
	value T
	read  time.Time
}

// NewDirectory reads through world.
func NewDirectory(world *postgres.World) *Directory {
	return &Directory{world: world, tenants: map[string]entry[models.Tenant]{}, envs: map[envName]entry[models.Environment]{}, quotas: map[int32]entry[models.Quotas]{}}
}

// Tenant finds a tenant by its TypeID or slug.
func (d *Directory) Tenant(ctx context.Context, name string) (models.Tenant, error) {
	return remembered(d, d.tenants, name, func() (models.Tenant, error) { return d.world.Tenant(ctx, name) })
}

// TenantByNumber finds a tenant by its number.
func (d *Directory) TenantByNumber(ctx context.Context, number int32) (models.Tenant, error) {
	return remembered(d, d.tenants, "#"+strconv.Itoa(int(number)), func() (models.Tenant, error) { return d.world.TenantByNumber(ctx, number) })
}

// Environment finds an environment of a tenant by its TypeID or name.
func (d *Directory) Environment(ctx context.Context, tenant int32, name string) (models.Environment, error) {
	return remembered(d, d.envs, envName{tenant, name}, func() (models.Environment, error) { return d.world.Environment(ctx, tenant, name) })
}

// Quotas are a tenant's.
func (d *Directory) Quotas(ctx context.Context, tenant int32) (models.Quotas, error) {
	return remembered(d, d.quotas, tenant, func() (models.Quotas, error) { return d.world.Quotas(ctx, tenant) })
}

// Forget makes this replica read everything again, after an edit made here.
func (d *Directory) Forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.tenants)
	clear(d.envs)
	clear(d.quotas)
}

const mostRemembered = 50_000

func remembered[K comparable, T any](d *Directory, in map[K]entry[T], key K, read func() (T, error)) (T, error) {
	d.mu.Lock()
	found, ok := in[key]
	d.mu.Unlock()
	if ok && time.Since(found.read) < directoryLife {
		return found.value, nil
	}
	value, err := read()
	if err != nil {
		return value, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(in) >= mostRemembered {
		clear(in)
	}
	in[key] = entry[T]{value, time.Now()}
	return value, nil
}
