package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"nightshift/scheduler/sim"
)

// The picture has three panels a world: shares, ready tasks, utilisation.
const (
	width    = 960
	left     = 64
	right    = 24
	panel    = 150
	gap      = 46
	mostKeys = 8 // tenants with a colour of their own
	keyRow   = 14
	total    = "#444" // what is of no tenant
)

var colours = []string{"#3b6fb6", "#d9822b", "#3d9a5f", "#a24b8a", "#c0434a", "#6b6bd1", "#8a7a2e", "#2e8a8a", "#8a8a8a"}

// picture gathers the elements of the SVG.
type picture struct {
	out strings.Builder
	y   float64 // where the next panel begins
}

// SVG draws the timeline of the world, and below it that of the changed one.
func (r *Report) SVG(w io.Writer) error {
	worlds := []struct {
		title string
		of    *sim.Result
	}{{r.Title, &r.Base}}
	if r.WhatIf != nil {
		worlds = append(worlds, struct {
			title string
			of    *sim.Result
		}{"what if " + strings.Join(r.Changes, ", "), r.WhatIf})
	}
	shown := r.largest()
	keys, rows := layKeys(r.Tenants, shown)
	height := len(worlds)*(3*(panel+gap)+46+keyRow*rows) + 20
	p := &picture{y: 10}
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="12" fill="#333">`, width, height, width, height)
	p.add(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	longest := time.Duration(1)
	for _, world := range worlds {
		if n := len(world.of.Timeline); n > 0 {
			longest = max(longest, world.of.Timeline[n-1].At)
		}
	}
	deepest := int64(1)
	for _, world := range worlds {
		for _, point := range world.of.Timeline {
			deepest = max(deepest, point.Ready)
		}
	}
	for _, world := range worlds {
		p.y += 24
		p.text(left, p.y, "start", `font-size="15" font-weight="bold"`, world.title)
		p.keys(keys)
		p.y += float64(keyRow * rows)
		p.panel("share of the slots in use", "100 %", longest)
		p.shares(world.of.Timeline, shown, longest)
		p.panel("tasks that stand ready: each tenant's, and all", fmt.Sprint(deepest), longest)
		for n, i := range shown {
			p.line(world.of.Timeline, longest, colour(n), func(x sim.Point) float64 {
				if i >= len(x.Depths) {
					return 0
				}
				return float64(x.Depths[i]) / float64(deepest)
			})
		}
		p.line(world.of.Timeline, longest, total, func(x sim.Point) float64 { return float64(x.Ready) / float64(deepest) })
		p.panel("slots in use", "100 %", longest)
		p.line(world.of.Timeline, longest, total, func(x sim.Point) float64 { return min(1, x.Busy) })
	}
	p.add(`</svg>`)
	_, err := io.WriteString(w, p.out.String())
	return err
}

func (p *picture) add(format string, args ...any) {
	fmt.Fprintf(&p.out, format, args...)
	p.out.WriteByte('\n')
}

func (p *picture) text(x, y float64, anchor, more, text string) {
	var escaped strings.Builder
	if err := xml.EscapeText(&escaped, []byte(text)); err != nil {
		return // a builder never fails
	}
	p.add(`<text x="%.1f" y="%.1f" text-anchor="%s" %s>%s</text>`, x, y, anchor, more, escaped.String())
}

// key is the name of a colour, and where it stands.
type key struct {
	name   string
	x, row float64
}

// largest are the tenants that have a colour of their own, in their order: those with the largest shares of the world.
func (r *Report) largest() []int {
	sums, all := make([]float64, len(r.Tenants)), make([]int, len(r.Tenants))
	for i := range all {
		all[i] = i
	}
	for _, point := range r.Base.Timeline {
		for i, share := range point.Shares {
			sums[i] += share
		}
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(sums[b], sums[a]) })
	all = all[:min(len(all), mostKeys)]
	slices.Sort(all)
	return all
}

// layKeys puts the names of the colours in rows.
func layKeys(tenants []string, shown []int) (keys []key, rows int) {
	var names []string
	for _, i := range shown {
		names = append(names, tenants[i])
	}
	if others := len(tenants) - len(shown); others > 0 {
		names = append(names, fmt.Sprintf("%d others", others))
	}
	x := float64(left)
	for i, name := range names {
		wide := 30 + 7*float64(utf8.RuneCountInString(name))
		if i == 0 || x+wide > width-right {
			x, rows = left, rows+1
		}
		keys = append(keys, key{name, x, float64(rows)})
		x += wide
	}
	return keys, rows
}

// keys names the colours.
func (p *picture) keys(keys []key) {
	for i, k := range keys {
		y := p.y + keyRow*k.row
		p.add(`<rect x="%.1f" y="%.1f" width="10" height="10" fill="%s"/>`, k.x, y-9, colour(i))
		p.text(k.x+14, y, "start", "", k.name)
	}
}

func colour(i int) string { return colours[min(i, mostKeys)] }

// panel draws an empty panel; what is drawn next is in it.
func (p *picture) panel(title, top string, longest time.Duration) {
	p.y += 30
	p.text(left, p.y-6, "start", "", title)
	p.add(`<rect x="%d" y="%.1f" width="%d" height="%d" fill="none" stroke="#bbb"/>`, left, p.y, width-left-right, panel)
	p.text(left-6, p.y+10, "end", `fill="#777"`, top)
	p.text(left-6, p.y+panel, "end", `fill="#777"`, "0")
	for i := range 5 {
		at := longest * time.Duration(i) / 4
		anchor := []string{"start", "middle", "middle", "middle", "end"}[i]
		p.text(x(at, longest), p.y+panel+14, anchor, `fill="#777"`, span(at))
	}
	p.y += panel + gap - 30
}

func x(at, longest time.Duration) float64 {
	return left + float64(width-left-right)*at.Seconds()/longest.Seconds()
}

// in is a height in the panel drawn last; 1 is its top.
func (p *picture) in(v float64) float64 { return p.y - (gap - 30) - panel*v }

// line draws one value over time.
func (p *picture) line(points []sim.Point, longest time.Duration, stroke string, value func(sim.Point) float64) {
	var path strings.Builder
	for i, point := range points {
		if i > 0 {
			path.WriteByte(' ')
		}
		fmt.Fprintf(&path, "%.1f,%.1f", x(point.At, longest), p.in(value(point)))
	}
	p.add(`<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>`, stroke, path.String())
}

// shares stacks the tenants' shares, each point as a step as wide as its time; those without a colour of their own are one.
func (p *picture) shares(points []sim.Point, shown []int, longest time.Duration) {
	before := time.Duration(0)
	for _, point := range points {
		from, to := x(before, longest), x(point.At, longest)
		before = point.At
		base, rest := 0.0, 0.0
		for _, share := range point.Shares {
			rest += share
		}
		for n, i := range shown {
			if i < len(point.Shares) {
				p.step(from, to, base, point.Shares[i], colour(n))
				base, rest = base+point.Shares[i], rest-point.Shares[i]
			}
		}
		if rest > 1e-9 {
			p.step(from, to, base, rest, colour(mostKeys))
		}
	}
}

func (p *picture) step(from, to, base, share float64, fill string) {
	if share > 0 {
		p.add(`<rect x="%.1f" y="%.1f" width="%.2f" height="%.1f" fill="%s" shape-rendering="crispEdges"/>`, from, p.in(base+share), to-from+0.2, panel*share, fill)
	}
}
