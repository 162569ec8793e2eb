package api

import (
	"slices"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

// Kind is what work waits on, as the API shows it.
type Kind struct {
	Kind           string        `json:"kind" enum:"realtime,io,compute,batch"`
	Precedence     int32         `json:"precedence" doc:"lower goes first"`
	Weight         float64       `json:"weight"`
	MinShare       float64       `json:"min_share"`
	Elastic        bool          `json:"elastic" doc:"its work leaves room for the kinds it yields to"`
	YieldsTo       []string      `json:"yields_to" doc:"kinds; empty: those that are not elastic"`
	MaxHoldSeconds *int32        `json:"max_hold_seconds" doc:"how long a task is held at most; null: without a bound"`
	UpdatedAt      handlers.Time `json:"updated_at"`
	Version        int64         `json:"version"`
}

func showKind(k models.Kind) Kind {
	return Kind{
		k.Name.String(), k.Precedence, k.Weight, k.MinShare, k.Elastic, handlers.List(k.YieldsTo), handlers.Null(k.MaxHold),
		handlers.Time(k.UpdatedAt), k.Version,
	}
}

type kindPatch struct {
	Precedence     handlers.Opt[int32]    `json:"precedence"`
	Weight         handlers.Opt[float64]  `json:"weight"`
	MinShare       handlers.Opt[float64]  `json:"min_share"`
	Elastic        handlers.Opt[bool]     `json:"elastic"`
	YieldsTo       handlers.Opt[[]string] `json:"yields_to" doc:"kinds"`
	MaxHoldSeconds handlers.Opt[int32]    `json:"max_hold_seconds" doc:"1 to 2678400; null: without a bound"`
}

// listKinds lists them from the one that goes first as they come.
func listKinds(d *handlers.Deps, c *fiber.Ctx) error {
	q, err := handlers.ReadOldestFirst(d, c)
	if err != nil {
		return err
	}
	kinds, err := d.World.Kinds(c.UserContext())
	if err != nil {
		return err
	}
	total := int64(len(kinds))
	if q.Desc {
		slices.Reverse(kinds)
	}
	var after models.KindName
	if more, err := q.After(&after); err != nil {
		return err
	} else if more {
		kinds = kinds[1+slices.IndexFunc(kinds, func(k models.Kind) bool { return k.Name == after }):]
	}
	return answerRows(c, q, kinds, total, showKind, func(k models.Kind) int64 { return int64(k.Name) })
}

func readKind(d *handlers.Deps, c *fiber.Ctx) (models.Kind, error) {
	text, err := handlers.PathParam(c, "kind")
	if err != nil {
		return models.Kind{}, err
	}
	name, ok := models.ParseKind(text)
	if !ok {
		return models.Kind{}, models.Errorf(models.NotFound, "there is no kind %q", handlers.Shorten(text, 60))
	}
	kinds, err := d.World.Kinds(c.UserContext())
	if err != nil {
		return models.Kind{}, err
	}
	return kinds[name], nil
}

func getKind(d *handlers.Deps, c *fiber.Ctx) error {
	kind, err := readKind(d, c)
	if err != nil {
		return err
	}
	handlers.SetETag(c, kind.Version)
	return handlers.Answer(c, fiber.StatusOK, showKind(kind))
}

func patchKind(d *handlers.Deps, c *fiber.Ctx) error {
	var ask kindPatch
	if err := handlers.Bind(c, &ask); err != nil {
		return err
	}
	read := func() (models.Kind, int64, error) {
		k, err := readKind(d, c)
		return k, k.Version, err
	}
	answer, err := edit(d, c, read, func(k *models.Kind) (*engine.Configure, error) {
		preset := models.DefaultKinds()[k.Name]
		ask.Precedence.Into(&k.Precedence, preset.Precedence)
		ask.Weight.Into(&k.Weight, preset.Weight)
		ask.MinShare.Into(&k.MinShare, preset.MinShare)
		var check handlers.Check
		ask.Elastic.Into(&k.Elastic, preset.Elastic)
		mergeYields(&check, ask.YieldsTo, ask.MaxHoldSeconds, &k.YieldsTo, &k.MaxHold)
		handlers.Range(&check, "body.precedence", k.Precedence, 0, 1000)
		handlers.Range(&check, "body.weight", k.Weight, 0.001, 10_000)
		handlers.Range(&check, "body.min_share", k.MinShare, 0, 0.9)
		return &engine.Configure{Kind: k, Action: "kind.edit"}, check.Err()
	})
	if err != nil {
		return err
	}
	handlers.SetETag(c, answer.Kind.Version)
	return handlers.Answer(c, fiber.StatusOK, showKind(*answer.Kind))
}
