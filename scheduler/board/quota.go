package board

import (
	"fmt"
	"slices"
	"time"

	"nightshift/models"
	"nightshift/scheduler/fit"
	"nightshift/scheduler/rate"
)

// Use is what a tenant holds of its quotas. All but the tokens follows from leases and rows.
type Use struct {
	Tenant int32
	Quotas models.Quotas
	Live   int64
	Cards  int64
	VRAMMB int64
	Queued int64 // scheduled, pending, ready, retry_wait, and staged once flipped

	full    bool    // at its max_concurrent: it has no stand anywhere
	needs   []*need // of its lines that ask for cards
	metered []*Line // lines that wait for tokens
	tokens  rate.Bucket
	dry     bool // no token is left
}

// need is what the tasks of some lines ask of a tenant's cards.
type need struct {
	cards, vramMB int64
	lines         []*Line
	over          bool // it does not fit beside what is live
}

// UseOf is what a tenant holds, nil when nothing was ever known of it.
func (b *Board) UseOf(tenant int32) *Use { return b.uses[tenant] }

func (b *Board) use(tenant int32) *Use {
	u := b.uses[tenant]
	if u == nil {
		u = &Use{Tenant: tenant, Quotas: models.Quotas{Tenant: tenant}}
		b.uses[tenant] = u
	}
	return u
}

// PutQuotas replaces a tenant's quotas. What waits behind one that opens goes on offer.
func (b *Board) PutQuotas(q models.Quotas, now models.Instant) {
	u := b.use(q.Tenant)
	before, after := termsOf(&u.Quotas), termsOf(&q)
	switch {
	case after.Limit == 0:
	case before.Limit == 0:
		u.tokens = rate.NewBucket(after, now)
	default:
		u.tokens.Change(before, after, now)
	}
	u.Quotas = q
	b.spenders[q.Tenant] = true
	b.judgeTokens(u, now)
	b.judge(u)
}

// AddQueued counts tasks of an environment that are queued now, or are no longer. Those that are ready count by themselves.
func (b *Board) AddQueued(env int32, n int64) { b.use(b.TenantOf(env)).Queued += n }

func within(most *int64, n int64) bool { return most == nil || n <= *most }

// fits says that so many cards more, with so much memory, fit the quotas.
func (u *Use) fits(cards, vramMB int64) bool {
	return cards == 0 || within(u.Quotas.MaxGPUs, u.Cards+cards) && within(u.Quotas.MaxVRAMMB, u.VRAMMB+vramMB)
}

func cardsOf(c *models.Class) (cards, vramMB int64) {
	if c == nil {
		return 0, 0
	}
	cards = int64(fit.Cards(c))
	return cards, cards * c.VRAMMB
}

// counts books a lease that begins or ends.
func (b *Board) counts(row *models.Task, tenant int32, sign int64) {
	u := b.use(tenant)
	class := b.Classes[row.Class]
	cards, vramMB := cardsOf(class)
	u.Live += sign
	u.Cards += sign * cards
	u.VRAMMB += sign * vramMB
	b.judge(u)
	if len(b.types) > 0 && class != nil {
		b.runsOf(b.types[typeID{row.Env, class.Type}], sign)
	}
	if class != nil && class.Model != "" {
		b.runsOn(tenant, class.Model, sign)
	}
}

// judge looks at the quotas of what is live. It costs by what opens or closes.
func (b *Board) judge(u *Use) {
	if full := u.Quotas.MaxConcurrent != nil && u.Live >= *u.Quotas.MaxConcurrent; full != u.full {
		b.setFull(u, full)
	}
	for _, n := range u.needs {
		if over := !u.fits(n.cards, n.vramMB); over != n.over {
			n.over = over
			for _, l := range n.lines {
				b.offer(l)
			}
		}
	}
}

// setFull takes a tenant's stands away from all workers, or brings them back. Its lines stay as they are: a tenant at its
// limit comes and goes with every task, however many lines it has.
func (b *Board) setFull(u *Use, full bool) {
	u.full = full
	for _, m := range b.makes {
		for kind := range m.stands {
			s := m.stands[kind][u.Tenant]
			switch {
			case s == nil:
			case full && s.index >= 0:
				m.heaps[kind].remove(s.index)
			case !full && s.index < 0:
				m.heaps[kind].push(s)
			}
		}
	}
	for _, kind := range models.Kinds() {
		if !full && b.queues[kind][u.Tenant] != nil {
			b.unblock(kind, u.Tenant)
		}
	}
}

// enrol makes a new line known to what can shut it.
func (b *Board) enrol(l *Line) {
	l.at = b.standingOf(l.ID)
	u := l.at.use
	if cards, vramMB := cardsOf(l.at.class); cards > 0 {
		i := slices.IndexFunc(u.needs, func(n *need) bool { return n.cards == cards && n.vramMB == vramMB })
		if i < 0 {
			i = len(u.needs)
			u.needs = append(u.needs, &need{cards: cards, vramMB: vramMB, over: !u.fits(cards, vramMB)})
		}
		u.needs[i].lines = append(u.needs[i].lines, l)
	}
	if l.at.metered() {
		u.metered = append(u.metered, l)
	}
	if t := l.at.typ; t != nil {
		t.lines = append(t.lines, l)
	}
	b.enrolModel(l)
}

// strike takes a line that closes out of that again.
func (b *Board) strike(l *Line) {
	out := func(lines []*Line) []*Line {
		return slices.DeleteFunc(lines, func(o *Line) bool { return o == l })
	}
	u := l.at.use
	if cards, vramMB := cardsOf(l.at.class); cards > 0 {
		for _, n := range u.needs {
			if n.cards == cards && n.vramMB == vramMB {
				n.lines = out(n.lines)
			}
		}
		u.needs = slices.DeleteFunc(u.needs, func(n *need) bool { return len(n.lines) == 0 })
	}
	if l.at.metered() {
		u.metered = out(u.metered)
	}
	if t := l.at.typ; t != nil {
		t.lines = out(t.lines)
	}
	b.strikeModel(l)
}

// Tokens a minute.

// termsOf is the rate of a tenant's tokens; a Limit of 0: it has none.
func termsOf(q *models.Quotas) rate.Terms {
	if q.TokensPerMinute == nil {
		return rate.Terms{}
	}
	return rate.Terms{Limit: *q.TokensPerMinute, Per: time.Minute}
}

// Spend takes tokens of a tenant, or gives back what was taken too many. Its bucket may go into debt.
func (b *Board) Spend(tenant int32, n int64, now models.Instant) {
	u := b.uses[tenant]
	if u == nil || n == 0 {
		return
	}
	terms := termsOf(&u.Quotas)
	if terms.Limit == 0 {
		return
	}
	u.tokens.Take(terms, now, n)
	b.spenders[tenant] = true
	b.judgeTokens(u, now)
}

// judgeTokens shuts or opens the lines that wait for a tenant's tokens, and notes when they open by time alone.
func (b *Board) judgeTokens(u *Use, now models.Instant) {
	dry, opens := u.tokens.Dry(termsOf(&u.Quotas), now)
	b.rates.Set(rateID(u.Tenant), opens)
	if dry == u.dry {
		return
	}
	u.dry = dry
	for _, l := range u.metered {
		b.offer(l)
	}
}

// rateID stands for a tenant in the agenda of rates.
func rateID(tenant int32) (id models.ID) {
	id[0], id[1], id[2], id[3] = byte(tenant>>24), byte(tenant>>16), byte(tenant>>8), byte(tenant)
	return id
}

func tenantOfRate(id models.ID) int32 {
	return int32(id[0])<<24 | int32(id[1])<<16 | int32(id[2])<<8 | int32(id[3])
}

// restoreTokens sets the buckets as they were saved, and charges what has started since.
func (b *Board) restoreTokens(s *models.Snapshot) {
	since := map[int32]models.Instant{}
	for _, q := range s.Quota.Quotas {
		since[q.Tenant] = q.UpdatedAt
	}
	for _, level := range s.Quota.Levels {
		if u := b.uses[level.Tenant]; u != nil && level.At >= since[level.Tenant] {
			u.tokens, since[level.Tenant] = rate.Bucket{Credit: level.Credit, At: level.At}, level.At
		}
	}
	for i := range s.Running {
		row := &s.Running[i]
		if tenant := b.TenantOf(row.Env); row.StartedAt > since[tenant] {
			b.Spend(tenant, row.Tokens, row.StartedAt)
		}
	}
	for _, q := range s.Quota.Quotas {
		b.judgeTokens(b.use(q.Tenant), s.Now)
	}
	clear(b.spenders)
}

// KeepTokens takes over the buckets of the board before where the rate is the same: they are newer than what was saved.
func (b *Board) KeepTokens(old *Board, now models.Instant) {
	for tenant, before := range old.uses { // any order: each on its own
		u, terms := b.uses[tenant], termsOf(&before.Quotas)
		if u == nil || terms.Limit == 0 || terms != termsOf(&u.Quotas) {
			continue
		}
		u.tokens = before.tokens
		b.spenders[tenant] = true
		b.judgeTokens(u, now)
	}
}

// NextRate is when the next rate opens by time alone.
func (b *Board) NextRate() models.Instant { return min(b.rates.Next(), b.models.agenda.Next()) }

// OpenRates opens the rates that are due, and says whether there were any.
func (b *Board) OpenRates(now models.Instant) (any bool) {
	any = b.openModels(now)
	for b.rates.Next() <= now {
		for _, id := range b.rates.Due(now, 1000) {
			b.judgeTokens(b.use(tenantOfRate(id)), now)
			any = true
		}
	}
	return any
}

// TokensLeft is what is left of a tenant's tokens, owed below zero, and when the next may be used; false without a limit.
func (b *Board) TokensLeft(tenant int32, now models.Instant) (left int64, opens models.Instant, limited bool) {
	u := b.uses[tenant]
	if u == nil {
		return 0, 0, false
	}
	terms := termsOf(&u.Quotas)
	if terms.Limit == 0 {
		return 0, 0, false
	}
	return u.tokens.Left(terms, now), u.tokens.OpensAt(terms, now), true
}

// Levels lists the token buckets that changed since they were last asked for, by tenant.
func (b *Board) Levels() (out []models.TokenLevel) {
	for tenant := range b.spenders { // any order: sorted below
		if u := b.uses[tenant]; u != nil && termsOf(&u.Quotas).Limit > 0 {
			out = append(out, models.TokenLevel{Tenant: tenant, Credit: u.tokens.Credit, At: u.tokens.At})
		}
	}
	clear(b.spenders)
	slices.SortFunc(out, func(a, b models.TokenLevel) int { return int(a.Tenant) - int(b.Tenant) })
	return out
}

// restoreQuotas takes in the limits of a snapshot, and what each environment has queued beyond what is ready.
func (b *Board) restoreQuotas(s *models.QuotaSnapshot) {
	for _, q := range s.Quotas {
		b.PutQuotas(q, q.UpdatedAt)
	}
	for _, g := range s.Grants {
		b.PutGrants(g)
	}
	for _, t := range s.Types {
		b.PutType(t)
	}
	for _, q := range s.Queued {
		b.AddQueued(q.Env, q.Count)
	}
}

// checkQuotas compares what tenants hold, and which gates that shuts, with what the rows say.
func (b *Board) checkQuotas(fresh *Board) error {
	for tenant := range merged(b.uses, fresh.uses) { // any order: the first difference found will do
		got, want := b.use(tenant), fresh.use(tenant)
		if got.Live != want.Live || got.Cards != want.Cards || got.VRAMMB != want.VRAMMB || got.Queued != want.Queued || got.full != want.full {
			return fmt.Errorf("tenant %d: live %d, cards %d, VRAM %d, queued %d, full %v on the board; the rows say %d, %d, %d, %d, %v", tenant,
				got.Live, got.Cards, got.VRAMMB, got.Queued, got.full, want.Live, want.Cards, want.VRAMMB, want.Queued, want.full)
		}
	}
	for id := range merged(b.types, fresh.types) { // any order: the first difference found will do
		got, want := b.types[id], fresh.types[id]
		if got == nil || want == nil || got.Running != want.Running || got.Version != want.Version {
			return fmt.Errorf("type %v: %+v on the board, %+v by the rows", id, got, want)
		}
	}
	for _, id := range sortedLines(b.lines) {
		l, other := b.lines[id], fresh.lines[id]
		if dry := l.at.use.dry; other == nil || dry && l.at.metered() || l.at.model != nil && l.at.model.Entry != nil && l.at.model.Entry.dry {
			continue // tokens are a matter of time, not of rows
		}
		if atHand := len(l.ranks.entries)+len(l.starts.entries) > 0; l.offered != (atHand && b.shutBy(&l.at, true) == "") {
			return fmt.Errorf("line %v: on offer %v, its gate says %q", id, l.offered, b.Gate(l))
		}
		if got, want := b.lastingGate(&l.at), fresh.lastingGate(&other.at); got != want && want != "rate_limit" {
			return fmt.Errorf("line %v: shut by %q on the board, by %q in its rebuild", id, got, want)
		}
	}
	return nil
}
