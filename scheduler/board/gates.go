package board

import (
	"fmt"
	"slices"

	"nightshift/models"
)

// standing is where tasks of one lane, environment and class stand: what gates are asked about.
type standing struct {
	id     models.LineID
	tenant int32
	use    *Use
	class  *models.Class
	typ    *TypeUse  // nil: nothing is said of the type
	model  *ModelUse // nil: it names none

	owner *models.Tenant // these stand only while gates are asked: they are looked up once for all of them
	env   *models.Environment
	lane  *Lane
}

func (p *standing) look(b *Board) {
	p.owner, p.env, p.lane = b.Tenants[p.tenant], b.Envs[p.id.Env], b.Lanes[p.id.Lane]
}

func (b *Board) standingOf(id models.LineID) standing {
	p := standing{id: id, tenant: b.TenantOf(id.Env), class: b.Classes[id.Class]}
	p.use = b.use(p.tenant)
	if p.class != nil {
		p.typ = b.TypeOf(id.Env, p.class.Type)
		if name := p.class.Model; name != "" {
			if p.model = b.UseOfModel(p.tenant, name); p.model == nil { // nobody else is to know of this one
				p.model = &ModelUse{Tenant: p.tenant, Name: name, Entry: b.models.resolve(p.tenant, name)}
			}
		}
	}
	return p
}

func (p *standing) metered() bool { return p.class != nil && p.class.Metered() }

// gate is one reason why nothing of a place may start. The decision and its explanation ask the same question.
type gate struct {
	reason string
	shut   func(b *Board, p *standing) bool
	says   func(b *Board, p *standing, now models.Instant) string
	// opens is when it lets the next through by itself, where that is known.
	opens func(b *Board, p *standing, now models.Instant) models.Instant
	// frees says that it opens as what runs ends: a limit of what may run at once.
	frees bool
	// tenantWide gates take the tenant's stands away rather than its lines off offer.
	tenantWide bool
	// byPool gates are judged for each worker by itself; here they are shut when they are for all that could run the place.
	byPool bool
}

// gates are all of them, the widest first.
var gates = [...]gate{
	{reason: "quarantine", shut: func(b *Board, p *standing) bool {
		return p.owner == nil || p.env == nil || p.lane == nil
	}, says: func(*Board, *standing, models.Instant) string { return "its environment or lane is not known" }},
	{reason: "tenant_suspended", shut: func(b *Board, p *standing) bool {
		return p.owner.Suspended
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		return fmt.Sprintf("the tenant %s is suspended", p.owner.Slug)
	}},
	{reason: "environment_paused", shut: func(b *Board, p *standing) bool {
		return p.env.Paused
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		env := p.env
		return fmt.Sprintf("the environment %s is paused: %s", env.Name, orNone(env.Reason))
	}},
	{reason: "lane_paused", shut: func(b *Board, p *standing) bool {
		return p.lane.Paused
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		lane := p.lane
		return fmt.Sprintf("the lane %s is paused: %s", lane.Name, orNone(lane.Reason))
	}},
	{reason: "lane_closed", shut: func(b *Board, p *standing) bool {
		return p.lane.hours.closed
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		lane := p.lane
		if lane.hours.until == never {
			return fmt.Sprintf("the lane %s is closed, and none of its windows opens again", lane.Name)
		}
		return fmt.Sprintf("the lane %s is closed; it opens at %s", lane.Name, lane.hours.until.Time().Format("2006-01-02T15:04:05Z"))
	}},
	{reason: "lane_held", byPool: true, shut: func(b *Board, p *standing) bool {
		return b.heldEverywhere(p) != nil
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		return b.heldEverywhere(p).Says(b)
	}},
	{reason: "lane_limit", frees: true, shut: func(b *Board, p *standing) bool {
		lane := p.lane
		return lane.MaxConcurrent > 0 && lane.Running >= lane.MaxConcurrent
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		lane := p.lane
		return fmt.Sprintf("the lane %s runs %d of at most %d", lane.Name, lane.Running, lane.MaxConcurrent)
	}},
	{reason: "type_paused", shut: func(_ *Board, p *standing) bool {
		return p.typ != nil && p.typ.Paused
	}, says: func(_ *Board, p *standing, _ models.Instant) string {
		return fmt.Sprintf("tasks of type %s are paused: %s", p.typ.Type, orNone(p.typ.Reason))
	}},
	{reason: "type_limit", frees: true, shut: func(_ *Board, p *standing) bool {
		return p.typ != nil && p.typ.atLimit()
	}, says: func(_ *Board, p *standing, _ models.Instant) string {
		return fmt.Sprintf("%d tasks of type %s run, of at most %d", p.typ.Running, p.typ.Type, *p.typ.MaxConcurrent)
	}},
	{reason: "permission", shut: func(b *Board, p *standing) bool {
		if p.class == nil || len(p.class.Permissions) == 0 {
			return false
		}
		_, ok := b.grants[p.id.Env].Covers(p.class.Permissions)
		return !ok
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		missing, _ := b.grants[p.id.Env].Covers(p.class.Permissions)
		return fmt.Sprintf("the permission %s is not granted to the environment %s", missing, p.env.Name)
	}},
	{reason: "tenant_concurrency", frees: true, tenantWide: true, shut: func(_ *Board, p *standing) bool {
		return p.use.full
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		return fmt.Sprintf("the tenant %s runs %d tasks, of at most %d", p.owner.Slug, p.use.Live, *p.use.Quotas.MaxConcurrent)
	}},
	{reason: "tenant_concurrency", frees: true, shut: func(_ *Board, p *standing) bool {
		cards, vramMB := cardsOf(p.class)
		return !p.use.fits(cards, vramMB)
	}, says: func(b *Board, p *standing, _ models.Instant) string {
		cards, vramMB := cardsOf(p.class)
		slug := p.owner.Slug
		if !within(p.use.Quotas.MaxGPUs, p.use.Cards+cards) {
			return fmt.Sprintf("the tenant %s holds %d GPUs of at most %d, and this needs %d", slug, p.use.Cards, *p.use.Quotas.MaxGPUs, cards)
		}
		return fmt.Sprintf("the tenant %s holds %d MB of VRAM of at most %d, and this needs %d", slug, p.use.VRAMMB, *p.use.Quotas.MaxVRAMMB, vramMB)
	}},
	{reason: "rate_limit", shut: func(_ *Board, p *standing) bool {
		return p.use.dry && p.metered()
	}, says: func(b *Board, p *standing, now models.Instant) string {
		left, opens, _ := b.TokensLeft(p.tenant, now)
		return fmt.Sprintf("the tenant %s has used its %d tokens a minute (%d are owed): the next starts at %s", p.owner.Slug,
			*p.use.Quotas.TokensPerMinute, max(0, -left), opens.Time().Format("2006-01-02T15:04:05.000Z"))
	}, opens: func(b *Board, p *standing, now models.Instant) models.Instant {
		_, opens, _ := b.TokensLeft(p.tenant, now)
		return opens
	}},
	{reason: "model_unavailable", shut: func(_ *Board, p *standing) bool {
		return p.model != nil && p.model.shut(p.class)
	}, says: func(_ *Board, p *standing, _ models.Instant) string { return p.model.says(p.class) }},
	{reason: "rate_limit", shut: func(_ *Board, p *standing) bool {
		return p.model != nil && p.model.Entry != nil && p.model.Entry.dry
	}, says: func(_ *Board, p *standing, now models.Instant) string {
		e := p.model.Entry
		terms := modelTerms(&e.Model)
		return fmt.Sprintf("the model %s has used its %d tokens a minute (%d are owed): the next starts at %s", e.Name, terms.Limit,
			max(0, -e.tokens.Left(terms, now)), e.tokens.OpensAt(terms, now).Time().Format("2006-01-02T15:04:05.000Z"))
	}, opens: func(_ *Board, p *standing, now models.Instant) models.Instant {
		e := p.model.Entry
		return e.tokens.OpensAt(modelTerms(&e.Model), now)
	}},
}

func orNone(reason string) string {
	if reason == "" {
		return "no reason was given"
	}
	return reason
}

// shutBy is the first gate that shuts a place, of all or of those that take lines off offer.
func (b *Board) shutBy(p *standing, lines bool) string {
	p.look(b)
	for i := range gates {
		if g := &gates[i]; !(lines && (g.tenantWide || g.byPool)) && g.shut(b, p) {
			return g.reason
		}
	}
	return ""
}

// HeldLine says that a hold keeps all tasks of a line from starting.
func (b *Board) HeldLine(l *Line) bool {
	if b.bound == 0 {
		return false
	}
	l.at.look(b)
	return b.heldEverywhere(&l.at) != nil
}

// lastingGate is shutBy without what only looks at the pools know: a rebuild begins without it.
func (b *Board) lastingGate(p *standing) string {
	p.look(b)
	for i := range gates {
		if g := &gates[i]; !g.byPool && g.shut(b, p) {
			return g.reason
		}
	}
	return ""
}

// OpenBesideHolds says that nothing but a hold keeps the line's tasks from starting.
func (b *Board) OpenBesideHolds(l *Line) bool { return b.shutBy(&l.at, true) == "" && !l.at.use.full }

// Gate is the reason why nothing of a line may start now, empty when it may.
func (b *Board) Gate(l *Line) string { return b.shutBy(&l.at, false) }

// GateBesideLimits is the reason why nothing of a line may start, other than that as much runs as may: that passes.
func (b *Board) GateBesideLimits(l *Line) string {
	l.at.look(b)
	for i := range gates {
		if g := &gates[i]; !g.frees && g.shut(b, &l.at) {
			return g.reason
		}
	}
	return ""
}

// Crowds says that a limit which both lines are under leaves room for one more task, or for none: whichever starts next keeps
// the other one out.
func (b *Board) Crowds(l, other *Line) bool {
	p, o := &l.at, &other.at
	if lane := b.Lanes[p.id.Lane]; p.id.Lane == o.id.Lane && lane != nil && lane.MaxConcurrent > 0 && lane.Running+2 > lane.MaxConcurrent {
		return true
	}
	if t := p.typ; t != nil && t == o.typ && t.MaxConcurrent != nil && t.Running+2 > *t.MaxConcurrent {
		return true
	}
	if p.use != o.use {
		return false
	}
	cards, vramMB := cardsOf(p.class)
	more, moreMB := cardsOf(o.class)
	return !within(p.use.Quotas.MaxConcurrent, p.use.Live+2) || cards > 0 && more > 0 && !p.use.fits(cards+more, vramMB+moreMB)
}

// Shutting is a gate that keeps a task from starting, with a sentence that says what it is about. Opens is when it lets the
// next through by itself, 0 where that is not known.
type Shutting struct {
	Reason, Detail string
	Opens          models.Instant
}

// GatesOf are all gates that are shut for a task of this lane, environment and class, as the decision sees them.
func (b *Board) GatesOf(id models.LineID, now models.Instant) (out []Shutting) {
	p := b.standingOf(id)
	p.look(b)
	for i := range gates {
		g := &gates[i]
		if !g.shut(b, &p) {
			continue
		}
		shutting := Shutting{Reason: g.reason, Detail: g.says(b, &p, now)}
		if g.opens != nil {
			shutting.Opens = g.opens(b, &p, now)
		}
		out = append(out, shutting)
		if g.reason == "quarantine" {
			break // nothing more can be asked
		}
	}
	return out
}

// Reasons are the names of all gates that shut whole lines, each once.
func Reasons() (out []string) {
	for i := range gates {
		if !slices.Contains(out, gates[i].reason) {
			out = append(out, gates[i].reason)
		}
	}
	return out
}
