package report

import (
	"fmt"
	"image/color"

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
	c := stageColors()
	return &drawing{
		id: "waterfall", height: vg.Length(3.4+0.62*float64(n)) * vg.Centimeter, title: fmt.Sprintf("Where the time went: the %s with the longest TTFT", plural(int64(n), "request", "requests")),
		legend: []legendEntry{
			{"upload", c[0], "box"}, {"wait for the response head", c[1], "box"}, {"head to first token", c[2], "box"},
			{"decode", c[3], "box"}, {"token records", lightPalette().ink, "line"},
		},
		caption: "Each bar runs from the request's first byte to the end of its answer; fine lines are token records, a line behind them a connection that stayed open without any. A time written on a bar is its TTFT.",
		paint:   p.Draw,
	}
}

func stageColors() []color.Color {
	s := lightPalette().series
	return []color.Color{faint(lightPalette().muted, 0.55), s[5], s[1], faint(s[2], 0.35)}
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
	stages := []*int64{s.Upload, s.Head, &s.TTFT, s.LastToken}
	from := int64(0)
	for k, end := range stages {
		if end == nil || *end <= from { // not seen, or inside the stage before
			continue
		}
		fillRect(c, stageColors()[k], x(float64(from)), bottom, x(float64(*end)), top)
		from = *end
	}
	if end := endOf(s); end > from { // open, without a token
		c.StrokeLine2(draw.LineStyle{Color: colours.muted, Width: vg.Points(1.2)}, x(float64(from)), y(line), x(float64(end)), y(line))
	}
	tick := draw.LineStyle{Color: faint(colours.ink, 0.55), Width: vg.Points(0.5)}
	for _, t := range s.Ticks {
		c.StrokeLine2(tick, x(float64(t)), y(line-0.2), x(float64(t)), y(line+0.2))
	}
	label := textStyle(fontSize-1.5, colours.ink)
	label.YAlign = text.YCenter
	words := "TTFT " + duration(float64(s.TTFT))
	if s.Status != schema.StatusOK {
		words += ", " + string(s.Status)
	}
	end := x(float64(endOf(s)))
	at := vg.Point{X: end + vg.Points(4), Y: y(line)}
	if at.X+label.Width(words) > c.Max.X { // no room beside the bar
		label.XAlign, at.X = text.XRight, end-vg.Points(4)
		fillRect(c, colours.paper, at.X-label.Width(words)-vg.Points(2), y(line-0.24), at.X+vg.Points(2), y(line+0.24))
	}
	c.FillText(label, at, words)
}
