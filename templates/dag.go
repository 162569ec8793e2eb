package templates

import (
	"fmt"
	"sort"
)

// Sizes of the drawing, in its own units.
const (
	boxWidth   = 164
	boxHeight  = 40
	layerStep  = 214
	rowStep    = 52
	dagMargin  = 16
	dagMost    = 300 // tasks drawn one by one
	sweepTimes = 4
)

// box is a task, or a group of like tasks, at its place.
type box struct {
	X, Y   int
	ID     string // of the task; "" for a group
	Key    string
	Type   string
	State  string
	Counts []StateCount // of a group
	layer  int
	order  float64
}

// curve is an edge at its place.
type curve struct {
	Path  string
	Fired bool
	On    string
}

// drawing is a DAG laid out, layer by layer from left to right.
type drawing struct {
	Width, Height int
	Boxes         []box
	Curves        []curve
	Grouped       bool
}

// drawDAG lays out a workflow. Above dagMost tasks those of one type in one
// layer become a group, for nobody reads a thousand boxes.
func drawDAG(nodes []Node, edges []Edge) drawing {
	boxes, links := single(nodes, edges)
	setLayers(boxes, links)
	grouped := len(nodes) > dagMost
	if grouped {
		boxes, links = group(boxes, links)
	}
	rows := place(boxes, links)
	out := drawing{Boxes: boxes, Grouped: grouped}
	layers := 0
	for i := range boxes {
		layers = max(layers, boxes[i].layer+1)
	}
	for _, link := range links {
		out.Curves = append(out.Curves, link.curve(boxes))
	}
	out.Width = 2*dagMargin + (layers-1)*layerStep + boxWidth
	out.Height = 2*dagMargin + (rows-1)*rowStep + boxHeight
	return out
}

type link struct {
	from, to int
	fired    bool
	on       string
}

func single(nodes []Node, edges []Edge) ([]box, []link) {
	at := make(map[string]int, len(nodes))
	boxes := make([]box, len(nodes))
	for i, node := range nodes {
		at[node.ID] = i
		boxes[i] = box{ID: node.ID, Key: node.Key, Type: node.Type, State: node.State}
	}
	links := make([]link, 0, len(edges))
	for _, edge := range edges {
		from, known := at[edge.From]
		to, both := at[edge.To]
		if known && both && from != to {
			links = append(links, link{from: from, to: to, fired: edge.Fired, on: edge.On})
		}
	}
	return boxes, links
}

// setLayers puts each box one layer behind the last of those it waits for.
// What hangs in a ring (refused at submit) stays in the first layer.
func setLayers(boxes []box, links []link) {
	waits := make([]int, len(boxes))
	next := make([][]int, len(boxes))
	for _, l := range links {
		waits[l.to]++
		next[l.from] = append(next[l.from], l.to)
	}
	var free []int
	for i := range boxes {
		if waits[i] == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		i := free[0]
		free = free[1:]
		for _, to := range next[i] {
			boxes[to].layer = max(boxes[to].layer, boxes[i].layer+1)
			if waits[to]--; waits[to] == 0 {
				free = append(free, to)
			}
		}
	}
}

type groupKey struct {
	layer int
	kind  string
}

func group(boxes []box, links []link) ([]box, []link) {
	at := map[groupKey]int{}
	var groups []box
	states := []map[string]int{}
	member := make([]int, len(boxes))
	for i, b := range boxes {
		key := groupKey{b.layer, b.Type}
		g, ok := at[key]
		if !ok {
			g = len(groups)
			at[key] = g
			groups = append(groups, box{Type: b.Type, layer: b.layer})
			states = append(states, map[string]int{})
		}
		states[g][b.State]++
		member[i] = g
	}
	for g := range groups {
		for _, state := range stackOrder {
			if n := states[g][state]; n > 0 {
				groups[g].Counts = append(groups[g].Counts, StateCount{State: state, Count: n})
			}
		}
	}
	return groups, merge(links, member)
}

// merge makes one edge of all between the same two groups; it counts as fired
// when each of them has.
func merge(links []link, member []int) []link {
	at := map[[2]int]int{}
	var out []link
	for _, l := range links {
		ends := [2]int{member[l.from], member[l.to]}
		if ends[0] == ends[1] {
			continue
		}
		i, ok := at[ends]
		if !ok {
			at[ends] = len(out)
			out = append(out, link{from: ends[0], to: ends[1], fired: l.fired, on: l.on})
			continue
		}
		out[i].fired = out[i].fired && l.fired
	}
	return out
}

// place orders each layer so that few edges cross and gives every box its
// place; the answer is the height of the tallest layer in rows.
func place(boxes []box, links []link) int {
	layers := byLayer(boxes)
	for sweep := 0; sweep < sweepTimes; sweep++ {
		forward := sweep%2 == 0
		pull := pulls(boxes, links, forward)
		for _, layer := range layers {
			for _, i := range layer {
				if pull[i].n > 0 {
					boxes[i].order = pull[i].sum / float64(pull[i].n)
				}
			}
			sort.SliceStable(layer, func(a, b int) bool { return boxes[layer[a]].order < boxes[layer[b]].order })
			for at, i := range layer {
				boxes[i].order = float64(at)
			}
		}
	}
	rows := 1
	for _, layer := range layers {
		rows = max(rows, len(layer))
	}
	for _, layer := range layers {
		top := dagMargin + (rows-len(layer))*rowStep/2
		for at, i := range layer {
			boxes[i].X = dagMargin + boxes[i].layer*layerStep
			boxes[i].Y = top + at*rowStep
		}
	}
	return rows
}

func byLayer(boxes []box) [][]int {
	var layers [][]int
	for i := range boxes {
		for len(layers) <= boxes[i].layer {
			layers = append(layers, nil)
		}
		boxes[i].order = float64(len(layers[boxes[i].layer]))
		layers[boxes[i].layer] = append(layers[boxes[i].layer], i)
	}
	return layers
}

type pull struct {
	sum float64
	n   int
}

// pulls says where the neighbours of each box stand: those before it in a
// forward sweep, those behind it else.
func pulls(boxes []box, links []link, forward bool) []pull {
	out := make([]pull, len(boxes))
	for _, l := range links {
		who, other := l.to, l.from
		if !forward {
			who, other = l.from, l.to
		}
		out[who].sum += boxes[other].order
		out[who].n++
	}
	return out
}

func (l link) curve(boxes []box) curve {
	a, b := boxes[l.from], boxes[l.to]
	x1, y1 := a.X+boxWidth, a.Y+boxHeight/2
	x2, y2 := b.X, b.Y+boxHeight/2
	bend := (x2 - x1) / 2
	if gap := layerStep - boxWidth; bend > gap {
		bend = gap
	}
	path := fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2)
	return curve{Path: path, Fired: l.fired, On: l.on}
}

// fits says whether the drawing may shrink to the page and stay readable.
func (d drawing) fits() bool { return d.Width > 860 && d.Width <= 1420 }

func (b box) place() string { return fmt.Sprintf("translate(%d %d)", b.X, b.Y) }

// heading is the first line in the box.
func (b box) heading() string {
	if b.ID == "" {
		return cut(b.Type, 20)
	}
	if b.Key != "" {
		return cut(b.Key, 20)
	}
	return cut(b.Type, 20)
}

// words is the second line.
func (b box) words() string {
	if b.ID == "" {
		done := over(b.Counts)
		return count(done) + " of " + count(total(b.Counts))
	}
	if b.Key != "" && b.Key != b.Type {
		return cut(b.Type, 24)
	}
	return words(b.State)
}

// label is what a pointer or a screen reader is told.
func (b box) label() string {
	if b.ID == "" {
		return b.Type + ": " + sentence(b.Counts)
	}
	return b.heading() + " (" + b.Type + "): " + words(b.State)
}
