package api

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"

	"nightshift/handlers"
	"nightshift/handlers/body"
	"nightshift/models"
	"nightshift/scheduler/engine"
)

const (
	usualBatchSize = 100
	mostItemsHeld  = 16 << 20 // bytes of items that stand before what they are sliced by
	mostSlicesHeld = 4 << 20  // bytes of payloads that wait to be written
)

// batchReader reads the body of a batch as it arrives and makes a task of each slice of its items.
type batchReader struct {
	tasks  *taskReader
	stager *stager
	id     models.ID
	dry    bool
	name   string
	size   int
	like   engine.NewTask // what each slice is
	base   []byte         // its payload, without the end

	items   [][]byte // read and not in a slice yet
	held    int      // their bytes
	sliced  int      // items in slices
	count   int      // slices
	pending []engine.NewTask
	bytes   int // of their payloads
	given   struct{ name, task, size, items bool }
}

func (w *Work) readItems(d *handlers.Deps, c *fiber.Ctx, dry bool) (*batchReader, error) {
	from, read, err := stream(c)
	if err != nil {
		return nil, err
	}
	b := &batchReader{tasks: reader(d, c), id: d.Mint(), dry: dry}
	b.stager = w.newStager(d, c, b.id)
	err = body.Stream(from, "body", "items", b.tasks.problem, b.member, b.item)
	read()
	if err != nil {
		return nil, err
	}
	b.close()
	if err := b.tasks.err(); err != nil {
		return nil, err
	}
	for err == nil && len(b.items) > 0 {
		err = b.slice(min(b.size, len(b.items)))
	}
	if err == nil {
		err = b.tasks.err()
	}
	return b, err
}

func (b *batchReader) close() {
	p := b.tasks.problem
	if !b.given.name {
		p.Addf("body.name", "is required")
	}
	if !b.given.task {
		p.Addf("body.task", "is required")
	}
	if !b.given.items {
		p.Addf("body.items", "is required, with at least one item")
	}
	if !b.given.size {
		b.size = usualBatchSize
	}
}

func (b *batchReader) member(name string, v body.Value) error {
	switch {
	case name == "name":
		b.given.name = true
		b.name = v.String(1, maxKeyBytes)
	case name == "task":
		b.given.task = true
		b.template(v)
	case name != "batch_size":
		v.Wrong("there is no such field")
	case !v.Null():
		b.given.size = true
		b.size = int(v.Int(1, models.MostItems))
	}
	return nil
}

// notOfSlices names members of a task that make no sense for every slice of a batch.
var notOfSlices = []string{"idempotency_key", "dedupe", "depends_on", "run_if", "budget"}

// template reads what each slice is.
func (b *batchReader) template(v body.Value) {
	if v.IsObject() {
		v.Members(func(name string, m body.Value) {
			for _, no := range notOfSlices {
				if name == no && !m.Null() {
					m.Wrong("is not for the task of a batch, of which there is one a slice")
				}
			}
		})
	}
	b.tasks.loose = true // its payload lacks its items
	d := b.tasks.draft(v)
	b.tasks.loose = false
	b.like, b.base = d.task, []byte("{")
	at := body.Dot(v.At, "payload")
	payload := bytes.TrimSpace(b.like.Payload)
	if len(payload) == 0 || bytes.Equal(payload, []byte("null")) {
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) != nil {
		b.tasks.problem.Addf(at, "must be an object: the items are put into it")
		return
	}
	for _, name := range []string{"items", "first_index"} {
		if _, there := members[name]; there {
			b.tasks.problem.Addf(body.Dot(at, name), "is set for each slice")
		}
	}
	if len(members) > 0 {
		b.base = append(bytes.TrimSuffix(payload, []byte("}")), ',')
	}
}

func (b *batchReader) item(_ int, v body.Value) error {
	b.given.items = true
	if b.tasks.problem.Full() {
		return b.tasks.problem.Err(models.ValidationFailed)
	}
	b.items, b.held = append(b.items, v.Whole()), b.held+len(v.Text)
	switch {
	case b.tasks.problem.Any(): // nothing of this body will be written
		b.items, b.held = b.items[:0], 0
	case b.given.task && b.given.size && len(b.items) == b.size:
		return b.slice(b.size)
	case b.held > mostItemsHeld:
		return models.Invalid("body.items", "in so large a body name, task and batch_size must stand before the items")
	}
	return nil
}

// slice makes a task of the next n items.
func (b *batchReader) slice(n int) error {
	if b.count == handlers.WorkflowMost {
		return models.Invalid("body.items", "a batch has at most %d slices: use a larger batch_size", handlers.WorkflowMost)
	}
	t := b.like
	t.ID, t.Key = b.tasks.mint(), keyOfSlice(b.count)
	t.Items = &models.Items{First: int32(b.sliced), Total: int32(n)}
	t.Payload = b.payload(b.items[:n])
	b.tasks.check(&t, "body.task.payload")
	if len(t.Payload) > handlers.PayloadLimit {
		return models.Invalid(body.At("body.items", b.sliced), "the slice of %s that begins here has %d bytes with the task's payload, at most %d are allowed: use a smaller batch_size",
			plural(int64(n), "item"), len(t.Payload), handlers.PayloadLimit)
	}
	t.Labels = make([]models.Label, len(b.like.Labels))
	for i, l := range b.like.Labels {
		l.Task = t.ID
		t.Labels[i] = l
	}
	if full := len(b.pending) == stageAbove || b.bytes > mostSlicesHeld; full {
		if err := b.flush(); err != nil {
			return err
		}
	}
	for _, item := range b.items[:n] {
		b.held -= len(item)
	}
	b.items = append(b.items[:0], b.items[n:]...)
	b.sliced, b.count = b.sliced+n, b.count+1
	b.pending, b.bytes = append(b.pending, t), b.bytes+len(t.Payload)
	return nil
}

// payload is the task's payload with these items in it.
func (b *batchReader) payload(items [][]byte) []byte {
	size := len(b.base) + 40
	for _, item := range items {
		size += len(item) + 1
	}
	text := append(make([]byte, 0, size), b.base...)
	text = append(text, `"items":[`...)
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, item...)
	}
	return fmt.Appendf(text, `],"first_index":%d}`, b.sliced)
}

// flush writes what was read to the side; for a dry run nothing is written.
func (b *batchReader) flush() error {
	first := b.count - len(b.pending)
	var err error
	if !b.dry {
		err = ofTemplate(b.stager.part(b.pending, first))
	}
	b.pending, b.bytes = b.pending[:0], 0
	return err
}

// itemsOf is what the payload of a slice says of its items; nil when it has none.
func itemsOf(payload json.RawMessage) *models.Items {
	var in struct {
		Items []json.RawMessage `json:"items"`
		First int32             `json:"first_index"`
	}
	if json.Unmarshal(payload, &in) != nil || len(in.Items) == 0 || len(in.Items) > models.MostItems || in.First < 0 {
		return nil
	}
	return &models.Items{First: in.First, Total: int32(len(in.Items))}
}
