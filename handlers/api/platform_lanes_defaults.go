package api

import (
	"math"
	"slices"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// LaneDefaults are what tasks of a lane get that say nothing themselves.
type LaneDefaults struct {
	Timeout          TimeoutView `json:"timeout"`
	RetryPolicy      *PolicyView `json:"retry_policy"`
	ExpiresInSeconds *int32      `json:"expires_in_seconds"`
}

func showDefaults(d *models.LaneDefaults) *LaneDefaults {
	if d == nil {
		return nil
	}
	return &LaneDefaults{
		TimeoutView{handlers.Null(d.SoftSeconds), handlers.Null(d.HardSeconds), handlers.Null(d.TotalSeconds)}, (*PolicyView)(d.RetryPolicy), handlers.Null(d.ExpiresInSeconds),
	}
}

// defaultsFields are merged like the lane around them: null takes a default away.
type defaultsFields struct {
	Timeout          handlers.Opt[timeoutFields] `json:"timeout"`
	RetryPolicy      handlers.Opt[policyFields]  `json:"retry_policy"`
	ExpiresInSeconds handlers.Opt[float64]       `json:"expires_in_seconds"`
}

type timeoutFields struct {
	Soft  handlers.Opt[float64] `json:"soft_seconds"`
	Hard  handlers.Opt[float64] `json:"hard_seconds" doc:"null: the kind's"`
	Total handlers.Opt[float64] `json:"total_seconds"`
}

type policyFields struct {
	MaxAttempts  handlers.Opt[int32]                         `json:"max_attempts"`
	Backoff      handlers.Opt[string]                        `json:"backoff" enum:"exponential,linear,fixed"`
	InitialDelay handlers.Opt[float64]                       `json:"initial_delay_seconds"`
	MaxDelay     handlers.Opt[float64]                       `json:"max_delay_seconds"`
	Jitter       handlers.Opt[bool]                          `json:"jitter"`
	Classes      handlers.Opt[map[string]models.ClassPolicy] `json:"classes"`
}

const atDefaults = "body.defaults"

// mergeDefaults writes the given defaults over those of a lane.
func mergeDefaults(k *handlers.Check, given handlers.Opt[defaultsFields], stands **models.LaneDefaults) {
	if !given.Given {
		return
	}
	merged, f := models.LaneDefaults{}, given.Value
	if *stands != nil && !given.Null {
		merged = **stands
	}
	f.Timeout.Value.merge(k, f.Timeout.Null, &merged)
	inSeconds(k, atDefaults+".expires_in_seconds", f.ExpiresInSeconds, &merged.ExpiresInSeconds)
	switch {
	case f.RetryPolicy.Null:
		merged.RetryPolicy = nil
	case f.RetryPolicy.Given:
		merged.RetryPolicy = f.RetryPolicy.Value.merge(k, merged.RetryPolicy)
	}
	if *stands = &merged; merged == (models.LaneDefaults{}) {
		*stands = nil
	}
}

// inSeconds writes a span of seconds, in whole ones like those of a task: null for none.
func inSeconds(k *handlers.Check, at string, given handlers.Opt[float64], stands *int32) {
	switch {
	case given.Null:
		*stands = 0
	case given.Given && handlers.Range(k, at, given.Value, aMoment, float64(maxDurationSeconds)):
		*stands = int32(math.Ceil(given.Value))
	}
}

func (f *timeoutFields) merge(k *handlers.Check, none bool, d *models.LaneDefaults) {
	if none {
		d.SoftSeconds, d.HardSeconds, d.TotalSeconds = 0, 0, 0
	}
	inSeconds(k, atDefaults+".timeout.soft_seconds", f.Soft, &d.SoftSeconds)
	inSeconds(k, atDefaults+".timeout.hard_seconds", f.Hard, &d.HardSeconds)
	inSeconds(k, atDefaults+".timeout.total_seconds", f.Total, &d.TotalSeconds)
}

// softInTime refuses a soft timeout of a lane that comes after the hard one, its own or its kind's.
func softInTime(k *handlers.Check, f *laneFields, l *models.Lane) {
	if d := l.Defaults; d != nil && (f.Defaults.Given || f.Kind.Given) {
		hard := engine.HardSeconds(d, l.Kind)
		k.That(d.SoftSeconds <= hard, atDefaults+".timeout.soft_seconds", "must not be above hard_seconds, which is %d", hard)
	}
}

// merge is the policy that stands with what is given, over the usual one where none stands.
func (f *policyFields) merge(k *handlers.Check, stands *models.RetryPolicy) *models.RetryPolicy {
	const at = atDefaults + ".retry_policy"
	p, usual := models.DefaultRetryPolicy(), models.DefaultRetryPolicy()
	if stands != nil {
		p = *stands
	}
	f.MaxAttempts.Into(&p.MaxAttempts, usual.MaxAttempts)
	f.Backoff.Into(&p.Backoff, usual.Backoff)
	f.InitialDelay.Into(&p.InitialDelay, usual.InitialDelay)
	f.MaxDelay.Into(&p.MaxDelay, usual.MaxDelay)
	f.Jitter.Into(&p.Jitter, usual.Jitter)
	f.Classes.Into(&p.Classes, nil)
	handlers.Range(k, at+".max_attempts", p.MaxAttempts, 1, maxAttempts)
	k.OneOf(at+".backoff", p.Backoff, "exponential", "linear", "fixed")
	handlers.Range(k, at+".initial_delay_seconds", p.InitialDelay, 0, maxDurationSeconds)
	handlers.Range(k, at+".max_delay_seconds", p.MaxDelay, 0, maxDurationSeconds)
	if p.MaxDelay < p.InitialDelay && !f.MaxDelay.Given {
		p.MaxDelay = p.InitialDelay
	}
	k.That(p.InitialDelay <= p.MaxDelay, at+".max_delay_seconds", "must not be below initial_delay_seconds")
	for class, c := range p.Classes { // any order: each failure has its place
		if k.That(slices.Contains(models.ErrorClasses, class), at+".classes."+handlers.Shorten(class, 60), "there is no such error class") {
			handlers.Range(k, at+".classes."+class+".max_attempts", c.MaxAttempts, 1, maxAttempts)
		}
	}
	return &p
}
