package postgres

import (
	"context"
	"encoding/binary"
	"encoding/json"

	"nightshift/models"
)

// Load reads what a board is rebuilt from, as of one moment: heads rows a line, fewer when they would pass most in all.
func (w *Writer) Load(ctx context.Context, heads, most int) (*models.Snapshot, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.connected(ctx, w.epoch)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	if _, err := l.conn.Exec(ctx, `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = '60s'`); err != nil {
		w.drop()
		return nil, classify(err)
	}
	out, err := w.load(ctx, l, heads, most)
	if _, end := l.conn.Exec(ctx, `COMMIT`); end != nil { // of a failed one it is the ROLLBACK
		w.drop()
	}
	return out, err
}

func (w *Writer) load(ctx context.Context, l *link, heads, most int) (*models.Snapshot, error) {
	out := &models.Snapshot{}
	var bad error
	calls := append(loadConfiguration(out, &bad), loadTasks(out)...)
	calls = append(calls, loadSchedules(&out.Schedules, &bad)...)
	calls = append(append(calls, loadLimits(&out.Quota)...), loadRates(out)...)
	calls = append(append(calls, loadFeeds(&out.Waiting)...), loadModels(&out.Models, &bad)...)
	calls = append(calls, loadMoney(out)...)
	calls = append(calls,
		call{name: "load_batch", read: func(c *columns) {
			out.Batch, out.DecidedAt = c.int8(), c.instant()
			w.clock(out.DecidedAt)
		}},
		call{name: "clock", read: func(c *columns) { out.Now = c.instant() }})
	if err := w.read(ctx, calls...); err != nil {
		return nil, err
	}
	if bad != nil {
		return nil, models.Errorf(models.BadData, "a stored value can't be read: %w", bad)
	}
	out.Now = w.clock(out.Now)
	return out, w.loadHeads(ctx, l, out.Lines, min(heads, max(1, most/max(1, len(out.Lines)))))
}

// loadHeads reads the first rows of each line, in both orders.
func (w *Writer) loadHeads(ctx context.Context, l *link, lines []models.LineCount, limit int) error {
	var asks []models.LineAsk
	for i := range lines {
		asks = append(asks, models.LineAsk{Line: lines[i].Line, Limit: limit})
	}
	for i := range lines {
		if lines[i].Timed > 0 {
			asks = append(asks, models.LineAsk{Line: lines[i].Line, ByStart: true, Limit: limit})
		}
	}
	found := roomFor(lines, asks, limit)
	var calls []call
	for _, order := range lineOrders {
		if c, any := linesOf(l, asks, order, found); any {
			calls = append(calls, c)
		}
	}
	if len(calls) == 0 {
		return nil
	}
	if err := w.read(ctx, calls...); err != nil {
		return err
	}
	next := len(lines)
	for i := range lines {
		lines[i].Heads = found[i]
		if lines[i].Timed > 0 {
			lines[i].Starts = found[next]
			next++
		}
	}
	return nil
}

// roomFor makes room for the rows of all asks at once: 100,000 rows one by one cost a third of a rebuild.
func roomFor(lines []models.LineCount, asks []models.LineAsk, limit int) [][]models.Task {
	sizes := make([]int, 0, len(asks))
	for i := range lines {
		sizes = append(sizes, int(min(lines[i].Ready, int64(limit))))
	}
	for i := range lines {
		if lines[i].Timed > 0 {
			sizes = append(sizes, int(min(lines[i].Timed, int64(limit))))
		}
	}
	all := 0
	for _, size := range sizes {
		all += size
	}
	rows := make([]models.Task, all)
	found := make([][]models.Task, len(asks))
	for i, size := range sizes {
		found[i], rows = rows[:0:size], rows[size:]
	}
	return found
}

// loadTasks reads what the tasks' rows say.
func loadTasks(out *models.Snapshot) []call {
	line := func(c *columns) models.LineID { return models.LineID{Lane: c.int4(), Env: c.int4(), Class: c.int4()} }
	timed := 0
	return []call{
		{name: "load_running", read: func(c *columns) { out.Running = append(out.Running, c.task()) }},
		{name: "load_freed", read: func(c *columns) { out.Freed = append(out.Freed, c.task()) }},
		{name: "load_lines", read: func(c *columns) {
			out.Lines = append(out.Lines, models.LineCount{Line: line(c), Ready: c.int8()})
		}},
		{name: "load_starts", read: func(c *columns) { // after load_lines, in its order, of the same moment
			of := line(c)
			for timed < len(out.Lines) && out.Lines[timed].Line != of {
				timed++
			}
			out.Lines[timed].Timed = c.int8()
		}},
		{name: "load_parked", read: func(c *columns) {
			out.Parked = append(out.Parked, models.ParkedCount{Line: line(c), Gate: c.text(), Count: c.int8(), First: c.int8(), Keys: c.keys(), Order: c.int8()})
		}},
		{name: "load_keys", read: func(c *columns) {
			out.Keys = append(out.Keys, models.KeyCount{Line: line(c), Key: c.text(), Admitted: c.int8(), Limit: c.int4()})
		}},
		{name: "load_standing", read: func(c *columns) {
			out.Standing = append(out.Standing, models.StandingTask{Line: line(c), ID: c.id(), Keys: c.keys(), OrderKey: c.int8()})
		}},
		{name: "load_idle", read: func(c *columns) {
			out.Idle = append(out.Idle, models.IdleHolder{Env: c.int4(), ID: c.id(), Since: c.instant(), Keys: c.keys()})
		}},
		{name: "load_signals", read: func(c *columns) {
			out.Signals = append(out.Signals, models.Signal{ID: c.id(), Env: c.int4(), Task: c.id(), Name: c.text(), Data: c.json()})
		}},
		{name: "load_unfired", read: func(c *columns) { out.Unfired = append(out.Unfired, c.end()) }},
		{name: "load_flipped", read: func(c *columns) { out.Flipped = append(out.Flipped, c.staging()) }},
	}
}

// loadConfiguration reads what decisions read beside the tasks.
func loadConfiguration(out *models.Snapshot, bad *error) []call {
	note := func(err error) {
		if err != nil {
			*bad = err
		}
	}
	return []call{
		{name: "load_tenants", read: func(c *columns) { out.Tenants = append(out.Tenants, c.tenant()) }},
		{name: "load_environments", read: func(c *columns) {
			env, err := c.environment()
			note(err)
			out.Environments = append(out.Environments, env)
		}},
		{name: "load_kinds", read: func(c *columns) { out.Kinds = append(out.Kinds, c.kind()) }},
		{name: "load_lanes", read: func(c *columns) { out.Lanes = append(out.Lanes, c.lane()) }},
		loadHolds(out),
		{name: "load_most_lane", read: func(c *columns) { out.MostLane = c.int4() }},
		{name: "load_classes", read: func(c *columns) {
			class := models.Class{}
			number := c.int4()
			note(json.Unmarshal(c.raw(), &class))
			class.Number = number
			out.Classes = append(out.Classes, class)
		}},
		{name: "load_workers", read: func(c *columns) {
			worker, err := c.worker()
			note(err)
			out.Workers = append(out.Workers, worker)
		}},
		{name: "load_virtual", read: func(c *columns) {
			out.Virtual = append(out.Virtual, models.Virtual{
				Pool: c.text(), Kind: models.KindName(c.int2()), Tenant: c.int4(), Time: c.float8(), Span: c.float8(), At: c.instant(),
			})
		}},
		{name: "load_estimates", read: func(c *columns) {
			out.Estimates = append(out.Estimates, models.Estimate{Tenant: c.int4(), Class: c.int4(), Counts: c.json()})
		}},
		{name: "load_corrections", read: func(c *columns) {
			out.Corrections = append(out.Corrections, models.Correction{Pool: c.text(), Kind: models.KindName(c.int2()), Factors: c.json()})
		}},
		{name: "load_held_flows", read: func(c *columns) {
			out.HeldFlows = append(out.HeldFlows, models.HeldFlow{Env: c.int4(), Workflow: c.id(), Gate: models.FlowGate(c.int2()), EndsAt: c.instant()})
		}},
		{name: "load_cursors", read: func(c *columns) {
			cursor, err := c.cursor()
			note(err)
			out.Cursors = append(out.Cursors, cursor)
		}},
	}
}

func (c *columns) tenant() models.Tenant {
	return models.Tenant{
		Number: c.int4(), ID: c.id(), Slug: c.text(), Name: c.text(), Weight: c.float8(), Timezone: c.text(),
		Suspended: c.bool(), CreatedAt: c.instant(), UpdatedAt: c.instant(), Version: c.int8(),
	}
}

func (c *columns) environment() (e models.Environment, err error) {
	e = models.Environment{
		Env: c.int4(), ID: c.id(), Tenant: c.int4(), Name: c.text(), Kind: c.text(), Paused: c.bool(),
		Reason: c.text(), CreatedAt: c.instant(), UpdatedAt: c.instant(), Version: c.int8(),
	}
	err = json.Unmarshal(c.raw(), &e.Freezes)
	e.ClosedAt = c.instant()
	return e, err
}

func (c *columns) kind() models.Kind {
	return models.Kind{
		Name: models.KindName(c.int2()), Precedence: c.int4(), Weight: c.float8(), MinShare: c.float8(),
		Elastic: c.bool(), YieldsTo: c.texts(), MaxHold: c.int4(), UpdatedAt: c.instant(), Version: c.int8(),
	}
}

func (c *columns) lane() models.Lane {
	return models.Lane{
		Number: c.int4(), Env: c.int4(), Name: c.text(), Kind: models.KindName(c.int2()), Weight: c.float8(),
		MaxConcurrent: c.int4(), HighWater: c.int4(), TaskTypes: c.texts(), Paused: c.bool(), Draining: c.bool(), Reason: c.text(),
		First: c.bool(), Description: c.text(), Owner: c.text(), RunbookURL: c.text(), CreatedAt: c.instant(),
		UpdatedAt: c.instant(), Version: c.int8(), OpenWindows: c.windows(), Elastic: c.bool(), YieldsTo: c.texts(), MaxHold: c.int4(), Defaults: c.defaults(),
	}
}

// windows reads when a lane is open. What can't be read is a window that never opens.
func (c *columns) windows() (list []models.Window) {
	if json.Unmarshal(c.raw(), &list) != nil {
		return []models.Window{{}}
	}
	return list
}

// defaults reads what a lane's tasks get. What can't be read is nothing.
func (c *columns) defaults() (d *models.LaneDefaults) {
	if text := c.raw(); text != nil && json.Unmarshal(text, &d) != nil {
		return nil
	}
	return d
}

func (c *columns) worker() (w models.Worker, err error) {
	decode := func(into any) {
		if text := c.raw(); len(text) > 2 && err == nil { // neither {} nor []
			err = json.Unmarshal(text, into)
		}
	}
	w.ID, w.Tenant, w.Env, w.KeyID, w.Name, w.Instance = c.id(), c.int4(), c.int4(), c.text(), c.text(), c.text()
	w.Version, w.Pool, w.TaskTypes, w.Lanes = c.text(), c.text(), c.texts(), c.texts()
	elements(c.raw(), func(e []byte) { w.Kinds = append(w.Kinds, models.KindName(binary.BigEndian.Uint16(e))) })
	w.CPUMilli, w.MemoryMB, w.DiskMB = c.int8(), c.int8(), c.int8()
	decode(&w.GPUs)
	w.Slots = c.int4()
	decode(&w.KindSlots)
	w.Models, w.Permissions = c.texts(), c.texts()
	decode(&w.Labels)
	w.LeaseSeconds, w.Session, w.State, w.Draining = c.int4(), c.id(), models.WorkerState(c.int2()), c.bool()
	w.LastSeen, w.CreatedAt, w.UpdatedAt = c.instant(), c.instant(), c.instant()
	elements(c.raw(), func(e []byte) { w.Replaced = append(w.Replaced, models.Instant(binary.BigEndian.Uint64(e))) })
	w.Utilization = c.json()
	w.AnyModel, w.AnyPermit = c.bool(), c.bool()
	return w, err
}

func (c *columns) cursor() (models.Cursor, error) {
	out := models.Cursor{
		ID: c.id(), Env: c.int4(), Kind: models.CursorKind(c.int2()), Target: c.id(), After: c.id(), Until: c.id(),
		Matched: c.int8(), Done: c.int8(), Failed: c.int8(), Finished: c.bool(), Reason: c.text(),
	}
	err := json.Unmarshal(c.raw(), &out.Actor)
	out.At, out.Action, out.Priority, out.Lane, out.Patch = c.instant(), models.Action(c.int2()), c.int2(), c.text(), c.json()
	out.Rate, out.NextAt, out.Paused, out.Dropped = c.float8(), c.instant(), c.bool(), c.bool()
	out.Wide = c.int4()
	return out, err
}
