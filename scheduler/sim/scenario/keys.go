package scenario

import (
	"nightshift/models"
	"nightshift/scheduler/sim"
)

type rateLimit struct {
	Key        string `yaml:"key"`
	Limit      int64  `yaml:"limit"`
	PerSeconds int64  `yaml:"per_seconds"`
	Burst      int64  `yaml:"burst"`
}

type keyOf struct {
	Key   string `yaml:"key"`
	Limit int32  `yaml:"limit"`
}

// limits reads the quotas of a tenant.
func limits(t *tenant, wrong func(string, ...any) error) (models.Quotas, error) {
	q := t.Quotas
	for _, most := range []*int64{q.MaxConcurrent, q.MaxGPUs, q.MaxVRAMMB, q.TokensPerMinute} {
		if most != nil && *most < 0 || most != nil && most == q.TokensPerMinute && *most == 0 {
			return models.Quotas{}, wrong("quotas are not negative, and tokens_per_minute is above 0")
		}
	}
	return models.Quotas{MaxConcurrent: q.MaxConcurrent, MaxGPUs: q.MaxGPUs, MaxVRAMMB: q.MaxVRAMMB, TokensPerMinute: q.TokensPerMinute}, nil
}

// rates reads the rate limits of a tenant.
func rates(t *tenant, wrong func(string, ...any) error) (out []models.RateLimit, err error) {
	for _, r := range t.RateLimits {
		if r.Key == "" || r.Limit < 1 || r.PerSeconds < 1 || r.Burst < 0 {
			return nil, wrong("a rate limit has a key, a limit and per_seconds above 0, and a burst that is not negative")
		}
		out = append(out, models.RateLimit{Key: r.Key, Limit: r.Limit, PerSeconds: r.PerSeconds, Burst: r.Burst})
	}
	return out, nil
}

// keyed reads the keys that tasks need to start.
func keyed(a *arrival, out *sim.Arrival, wrong func(string, ...any) error) error {
	if k := a.Key; k != nil {
		if k.Name == "" || k.Limit < 0 || k.Count < 0 {
			return wrong("a key has a name; limit and count are not negative")
		}
		out.LimitKey, out.KeyLimit, out.Keys = k.Name, max(1, k.Limit), k.Count
	}
	if len(a.Concurrency) > models.MostKeys-1 || len(a.RateKeys) > models.MostKeys {
		return wrong("a task has at most %d keys", models.MostKeys)
	}
	for _, k := range a.Concurrency {
		if k.Key == "" || k.Limit < 0 {
			return wrong("an entry of concurrency has a key, and a limit that is not negative")
		}
		out.Concurrency = append(out.Concurrency, models.TaskKey{Name: k.Key, Limit: max(1, k.Limit)})
	}
	if out.RateKeys, out.Ordered = a.RateKeys, a.Ordered; a.Ordered && a.Key == nil && len(a.Concurrency) == 0 {
		return wrong("ordered tasks have a key")
	}
	return nil
}
