package report

import (
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tokentrace/analysis"
	"tokentrace/schema"
)

// waterfall draws the slowest requests as bars from their start.
func (r *Results) waterfall() *drawing {
	if len(r.Slowest) == 0 {
		return nil
	}
	var longest int64
	for _, s := range r.Slowest {
		longest = max(longest, endOf(s))
	}
	unit, size := unitOf(float64(longest))
	p := newPlot(fmt.Sprintf("since the request's first byte (%s)", unit), "")
	p.X.Min, p.X.Max = 0, float64(longest)*1.01
	p.X.Tick.Marker = stepTicks{size, 8}
	n := len(r.Slowest)
	p.Y.Min, p.Y.Max = -0.6, float64(n)-0.4
	var names plot.ConstantTicks
	for i, s := range r.Slowest {
		names = append(names, plot.Tick{Value: float64(n - 1 - i), Label: shorten(s.ID, 22)})
	}
	p.Y.Tick.Marker = names
	addGrid(p, true)
	p.Add(bars{r.Slowest})
	// The numbers stand in a column of their own, where they cover no token.
	column := vg.Length(0)
	for _, s := range r.Slowest {
		column = max(column, numberStyle().Width(numberText(s)))
	}
	return &drawing{
		id: "waterfall", height: vg.Length(3.4+0.62*float64(n)) * vg.Centimeter, title: fmt.Sprintf("Where the time went: the %s with the longest TTFT", plural(int64(n), "request", "requests")),
		legend:  stageLegend(r.Slowest),
		caption: "Bar: to the last token. Thin line: until the response ended. Number: TTFT.",
		paint:   func(c draw.Canvas) { p.Draw(draw.Crop(c, 0, -column-vg.Points(6), 0, 0)) },
	}
}

// stageLegend names what the bars show.
func stageLegend(slow []analysis.SlowRequest) []legendEntry {
	c := stageColors()
	legend := []legendEntry{
		{"upload", c[0], "box"}, {"wait for the response head", c[1], "box"}, {"head to first token", c[2], "box"}, {"decode", c[3], "box"},
	}
	var drawn []legendEntry
	for k, e := range legend {
		if slices.ContainsFunc(slow, func(s analysis.SlowRequest) bool { return stagesOf(s)[k].drawn() }) {
			drawn = append(drawn, e)
		}
	}
	return append(drawn, legendEntry{"token records", lightPalette().ink, "line"})
}

func stageColors() []color.Color {
	s := lightPalette().series
	return []color.Color{faint(lightPalette().muted, 0.55), s[5], s[1], faint(s[2], 0.35)}
}

// stage is a part of a request, in ns from its start.
type stage struct{ from, to int64 }

func (s stage) drawn() bool { return s.to > s.from }

// stagesOf splits a request; a stage that was not seen, or that lies inside the
// one before, is empty.
func stagesOf(s analysis.SlowRequest) [4]stage {
	var stages [4]stage
	from := int64(0)
	for k, end := range []*int64{s.Upload, s.Head, &s.TTFT, s.LastToken} {
		stages[k] = stage{from, from}
		if end != nil && *end > from {
			stages[k].to = *end
			from = *end
		}
	}
	return stages
}

func numberText(s analysis.SlowRequest) string {
	words := duration(float64(s.TTFT))
	if s.Status != schema.StatusOK {
		words += ", " + string(s.Status)
	}
	return words
}

func numberStyle() text.Style {
	style := textStyle(fontSize-1.5, lightPalette().ink)
	style.YAlign = text.YCenter
	return style
}

func endOf(s analysis.SlowRequest) int64 {
	end := s.TTFT
	for _, v := range []*int64{s.LastToken, s.End} {
		if v != nil {
			end = max(end, *v)
		}
	}
	return end
}

// bars draws one request per line, the first on top.
type bars struct{ requests []analysis.SlowRequest }

// Plot implements plot.Plotter.
func (b bars) Plot(c draw.Canvas, p *plot.Plot) {
	for i, s := range b.requests {
		b.bar(c, p, float64(len(b.requests)-1-i), s)
	}
}

func (b bars) bar(c draw.Canvas, p *plot.Plot, line float64, s analysis.SlowRequest) {
	x, y := p.Transforms(&c)
	colours := lightPalette()
	bottom, top := y(line-0.34), y(line+0.34)
	from := int64(0)
	for k, part := range stagesOf(s) {
		if part.drawn() {
			fillRect(c, stageColors()[k], x(float64(part.from)), bottom, x(float64(part.to)), top)
		}
		from = part.to
	}
	if end := endOf(s); end > from { // open, without a token
		c.StrokeLine2(draw.LineStyle{Color: colours.muted, Width: vg.Points(1.2)}, x(float64(from)), y(line), x(float64(end)), y(line))
	}
	tick := draw.LineStyle{Color: faint(colours.ink, 0.55), Width: vg.Points(0.5)}
	for _, t := range s.Ticks {
		c.StrokeLine2(tick, x(float64(t)), y(line-0.2), x(float64(t)), y(line+0.2))
	}
	c.FillText(numberStyle(), vg.Point{X: c.Max.X + vg.Points(6), Y: y(line)}, numberText(s))
}
