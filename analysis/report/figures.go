package report

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"tokentrace/analysis"
)

// Limits of what a figure shows before it turns into noise.
const (
	figureModels  = 5
	scatterPoints = 1500
)

// Figures draws what the results hold enough data for.
func (r *Results) Figures() (map[string]Figure, error) {
	drawings := []*drawing{
		r.distribution(r.TTFT, "ttft", "Time to first token", "TTFT"),
		r.distribution(r.TPOT, "tpot", "Time per output token", "TPOT"),
		r.promptFigure(), r.timeFigure(), r.waterfall(),
	}
	figures := map[string]Figure{}
	for _, d := range drawings {
		if d == nil {
			continue
		}
		f, err := d.render()
		if err != nil {
			return nil, err
		}
		figures[d.id] = f
	}
	return figures, nil
}

// modelColor gives a model the same colour in every figure.
func (r *Results) modelColor(model *string) color.RGBA {
	if model == nil {
		return seriesColor(len(r.Summary.Info.Models))
	}
	return seriesColor(max(0, slices.Index(r.Summary.Info.Models, *model)))
}

func seriesColor(i int) color.RGBA { s := lightPalette().series; return s[i%len(s)] }

// addGrid draws faint lines at the labelled ticks, under the data.
func addGrid(p *plot.Plot, vertical bool) {
	g := plotter.NewGrid()
	style := draw.LineStyle{Color: lightPalette().grid, Width: vg.Points(0.6)}
	g.Horizontal, g.Vertical = style, style
	if !vertical {
		g.Vertical.Color = nil
	}
	p.Add(g)
}

func (r *Results) distribution(d *analysis.Distribution, id, title, short string) *drawing {
	if len(d.Models) == 0 {
		return nil
	}
	models := d.Models[:min(figureModels, len(d.Models))]
	lo, hi := math.Inf(1), 0.0
	for _, m := range models {
		lo = min(lo, max(1, float64(m.Values[0])))
		hi = max(hi, float64(m.Values[len(m.Values)-1]))
	}
	p := newPlot("", "share of requests (%)")
	latencyAxis(p, short, lo, hi)
	p.Y.Min, p.Y.Max = 0, 100
	p.Y.Tick.Marker = stepTicks{1, 5}
	addGrid(p, true)
	out := &drawing{id: id, height: 8 * vg.Centimeter, title: title, paint: p.Draw}
	for _, m := range models {
		line := ecdf(m, p.X.Min, p.X.Max)
		line.LineStyle = draw.LineStyle{Color: r.modelColor(m.Model), Width: vg.Points(1.8)}
		p.Add(line)
		out.legend = append(out.legend, legendEntry{fmt.Sprintf("%s (n = %s)", shorten(modelText(m.Model), 60/len(models)), count(m.N)), r.modelColor(m.Model), "line"})
	}
	if len(d.Models) == 1 { // over several, the quantiles of all lie on no curve
		out.addMarkers(p, r.Overall, id)
	}
	out.caption = fmt.Sprintf("Share of the requests with status ok whose %s was at most that long.", short)
	if n := len(d.Models) - len(models); n > 0 {
		out.caption += fmt.Sprintf(" The %d models with most requests; %d more are left out.", len(models), n)
	}
	return out
}

// latencyAxis scales the x axis of ns: logarithmic where the values span, else linear.
func latencyAxis(p *plot.Plot, short string, lo, hi float64) {
	if hi/lo >= 4 {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, logTicks{}
		p.X.Min, p.X.Max = lo/1.1, hi*1.1
		p.X.Label.Text = short + " (log scale)"
		return
	}
	name, size := unitOf(hi)
	room := max((hi-lo)*0.06, hi*0.01)
	p.X.Min, p.X.Max = max(0, lo-room), hi+room
	p.X.Tick.Marker = stepTicks{size, 7}
	p.X.Label.Text = fmt.Sprintf("%s (%s)", short, name)
}

// ecdf is the staircase of a distribution from edge to edge of the axis.
func ecdf(m analysis.ModelDistribution, lo, hi float64) *plotter.Line {
	points := plotter.XYs{{X: lo, Y: 0}}
	last := 0.0
	for i, v := range m.Values {
		x := max(float64(v), lo)
		points = append(points, plotter.XY{X: x, Y: last})
		last = 100 * m.Shares[i]
		points = append(points, plotter.XY{X: x, Y: last})
	}
	points = append(points, plotter.XY{X: hi, Y: 100})
	return &plotter.Line{XYs: points}
}

// addMarkers sets the supported quantiles of all requests on the curve, each
// with its interval.
func (d *drawing) addMarkers(p *plot.Plot, all *analysis.Percentiles, metric string) {
	if len(all.Groups) == 0 || all.Groups[0].Metric(metric) == nil {
		return
	}
	drawn := false
	for _, q := range all.Groups[0].Metric(metric).Quantiles {
		if !slices.Contains([]float64{0.5, 0.9, 0.99}, q.P) { // more would cover each other
			continue
		}
		if !q.Supported || q.Value == nil || q.Lo == nil || q.Hi == nil || *q.Value < p.X.Min || *q.Value > p.X.Max {
			continue
		}
		p.Add(intervalMark{*q.Value, max(*q.Lo, p.X.Min), min(*q.Hi, p.X.Max), 100 * q.P, levelName(q.P)})
		drawn = true
	}
	if !drawn {
		return
	}
	d.legend = append(d.legend, legendEntry{"quantiles with 95 % interval", lightPalette().ink, "dot"})
}

// intervalMark is a dot with a horizontal bar and a label.
type intervalMark struct {
	x, lo, hi, y float64
	label        string
}

// Plot implements plot.Plotter.
func (m intervalMark) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	colours := lightPalette()
	style := draw.LineStyle{Color: colours.ink, Width: vg.Points(1.1)}
	c.StrokeLine2(style, x(m.lo), y(m.y), x(m.hi), y(m.y))
	for _, end := range []float64{m.lo, m.hi} {
		c.StrokeLine2(style, x(end), y(m.y)-vg.Points(2.5), x(end), y(m.y)+vg.Points(2.5))
	}
	c.DrawGlyph(draw.GlyphStyle{Color: colours.ink, Radius: vg.Points(2.4), Shape: draw.CircleGlyph{}}, vg.Point{X: x(m.x), Y: y(m.y)})
	label := textStyle(fontSize-1, colours.ink)
	label.XAlign, label.YAlign = text.XRight, text.YBottom
	at := vg.Point{X: x(m.lo) - vg.Points(4), Y: y(m.y) - vg.Points(3)}
	if at.X-label.Width(m.label) < c.Min.X {
		label.XAlign, at.X = text.XLeft, x(m.hi)+vg.Points(4)
	}
	c.FillText(label, at, m.label)
}

func (r *Results) promptFigure() *drawing {
	if len(r.Fit.Models) == 0 {
		return nil
	}
	models := r.Fit.Models[:min(3, len(r.Fit.Models))]
	var longest, slowest float64
	for _, m := range models {
		for _, q := range m.Points {
			longest, slowest = max(longest, float64(q.Tokens)), max(slowest, float64(q.TTFT))
		}
	}
	unit, size := unitOf(slowest)
	p := newPlot(xWords(commonX(r.Fit)), fmt.Sprintf("TTFT (%s)", unit))
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, max(longest*1.04, 1), 0, max(slowest*1.06, 1)
	p.X.Tick.Marker, p.Y.Tick.Marker = stepTicks{1, 8}, stepTicks{size, 6}
	addGrid(p, true)
	d := &drawing{id: "prompt", height: 9 * vg.Centimeter, title: "Time to first token against prompt length", paint: p.Draw}
	queued := false
	for _, m := range models {
		p.Add(scatter{m.Points, scatterPoints / len(models), r.modelColor(m.Model)})
		for _, q := range m.Points {
			queued = queued || !q.Unqueued
		}
		d.addFit(p, m, r.modelColor(m.Model))
	}
	if queued {
		d.legend = append(d.legend, legendEntry{"came while another waited", lightPalette().muted, "ring"})
	}
	d.caption = "One point per request with status ok; filled where it came while no other request waited for its first token."
	if slices.ContainsFunc(models, func(m analysis.ModelFit) bool { return !m.Known }) {
		d.caption += " There is no line where the slope is not identifiable."
	}
	return d
}

// addFit draws the headline line of a model over the prompts it rests on.
func (d *drawing) addFit(p *plot.Plot, m analysis.ModelFit, dots color.RGBA) {
	d.legend = append(d.legend, legendEntry{shorten(modelText(m.Model), 34), dots, "dot"})
	if !m.Known || m.Intercept.Value == nil {
		return
	}
	at := func(x float64) float64 { return 1e6 * (*m.Intercept.Value + *m.Slope.Value*x/1000) }
	points := plotter.XYs{}
	for k := range 101 { // clipped to the axes, which a steep line would leave
		x := p.X.Max * float64(k) / 100
		if y := at(x); y >= p.Y.Min && y <= p.Y.Max {
			points = append(points, plotter.XY{X: x, Y: y})
		}
	}
	if len(points) < 2 {
		return
	}
	style := draw.LineStyle{Color: lightPalette().ink, Width: vg.Points(1.4)}
	name, shape := "q85 line", "line"
	if !m.Identifiable {
		style.Dashes, name, shape = dashes(), "least squares", "dashed"
	}
	p.Add(&plotter.Line{XYs: plotter.XYs{points[0], points[len(points)-1]}, LineStyle: style})
	d.legend = append(d.legend, legendEntry{fmt.Sprintf("%s: %s ms per 1000 tokens", name, digits(*m.Slope.Value)), style.Color, shape})
}

// scatter draws requests as points: filled where unqueued, rings elsewhere.
type scatter struct {
	points []analysis.Point
	most   int // points drawn; the rest is thinned out evenly
	color  color.RGBA
}

// Plot implements plot.Plotter.
func (s scatter) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	step := max(1, (len(s.points)+s.most-1)/s.most)
	radius := vg.Points(2.2)
	if len(s.points) > 400 {
		radius = vg.Points(1.5)
	}
	for i := 0; i < len(s.points); i += step {
		q := s.points[i]
		at := vg.Point{X: x(float64(q.Tokens)), Y: y(float64(q.TTFT))}
		if q.Unqueued {
			c.DrawGlyph(draw.GlyphStyle{Color: faint(s.color, 0.6), Radius: radius, Shape: draw.CircleGlyph{}}, at)
		} else {
			c.DrawGlyph(draw.GlyphStyle{Color: faint(s.color, 0.6), Radius: radius, Shape: draw.RingGlyph{}}, at)
		}
	}
}

// timeFigure stacks token rate, concurrency and TTFT over one time axis.
func (r *Results) timeFigure() *drawing {
	s := r.Series
	if len(s.Bins) == 0 {
		return nil
	}
	started := instant(s.Start)
	end := float64(len(s.Bins)) * float64(s.Width) / 1e9
	panel := func(yLabel string) *plot.Plot {
		p := newPlot("", yLabel)
		p.X.Min, p.X.Max = 0, end
		p.X.Tick.Marker = stepTicks{1, 8}
		p.Y.Min, p.Y.Tick.Marker = 0, stepTicks{1, 4}
		addGrid(p, true)
		return p
	}
	tokens, flight, ttft := panel("output tokens/s"), panel("in flight"), panel("TTFT")
	addSteps(tokens, s, 0, func(b analysis.Interval) float64 { return b.TokenRate })
	addSteps(flight, s, 2, func(b analysis.Interval) float64 { return b.Concurrency })
	legend := []legendEntry{{"output tokens/s", seriesColor(0), "line"}, {"requests in flight", seriesColor(2), "line"}}
	if addLatencies(ttft, s) {
		legend = append(legend, legendEntry{"TTFT p50 of the bin", seriesColor(1), "dot"}, legendEntry{"TTFT max", seriesColor(1), "ring"})
	}
	ttft.X.Label.Text = fmt.Sprintf("seconds since %s UTC", started)
	for _, p := range []*plot.Plot{tokens, flight} {
		p.X.Tick.Marker = unlabelled{p.X.Tick.Marker}
	}
	return &drawing{
		id: "time", height: 12 * vg.Centimeter, title: fmt.Sprintf("Load and latency over time, bins of %s", duration(float64(s.Width))),
		legend:  legend,
		caption: fmt.Sprintf("Output tokens per second, requests in flight (mean of the bin) and TTFT of the requests that started in the bin. Undecodable requests count as in flight but have no tokens. Time in seconds since %s UTC.", started),
		paint: func(c draw.Canvas) {
			tiles := draw.Tiles{Rows: 3, Cols: 1, PadY: vg.Points(6)}
			plots := [][]*plot.Plot{{tokens}, {flight}, {ttft}}
			for i, row := range plot.Align(plots, tiles, c) {
				plots[i][0].Draw(row[0])
			}
		},
	}
}

// unlabelled keeps the ticks of an axis and drops their labels.
type unlabelled struct{ plot.Ticker }

// Ticks implements plot.Ticker.
func (u unlabelled) Ticks(lo, hi float64) []plot.Tick {
	ticks := u.Ticker.Ticks(lo, hi)
	for i := range ticks {
		ticks[i].Label = " "
	}
	return ticks
}

func addSteps(p *plot.Plot, s *analysis.Series, color int, value func(analysis.Interval) float64) {
	points := plotter.XYs{}
	highest := 0.0
	for i, b := range s.Bins {
		v := value(b)
		highest = max(highest, v)
		left := float64(i) * float64(s.Width) / 1e9
		points = append(points, plotter.XY{X: left, Y: v}, plotter.XY{X: left + float64(s.Width)/1e9, Y: v})
	}
	p.Y.Max = max(highest*1.08, 1e-9)
	area := append(slices.Clone(points), plotter.XY{X: points[len(points)-1].X}, plotter.XY{X: points[0].X})
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{area}, Color: faint(seriesColor(color), 0.18)})
	p.Add(&plotter.Line{XYs: points, LineStyle: draw.LineStyle{Color: seriesColor(color), Width: vg.Points(1.3)}})
}

// addLatencies draws the p50 and the maximum of each bin that has any, and tells
// whether one had.
func addLatencies(p *plot.Plot, s *analysis.Series) bool {
	var p50, longest plotter.XYs
	highest := 0.0
	for i, b := range s.Bins {
		if b.TTFTP50 == nil || b.TTFTMax == nil {
			continue
		}
		x := (float64(i) + 0.5) * float64(s.Width) / 1e9
		p50, longest = append(p50, plotter.XY{X: x, Y: *b.TTFTP50}), append(longest, plotter.XY{X: x, Y: float64(*b.TTFTMax)})
		highest = max(highest, float64(*b.TTFTMax))
	}
	unit, size := unitOf(highest)
	p.Y.Label.Text = fmt.Sprintf("TTFT (%s)", unit)
	p.Y.Max, p.Y.Tick.Marker = max(highest*1.1, 1), stepTicks{size, 4}
	for i, points := range []plotter.XYs{longest, p50} {
		style := draw.GlyphStyle{Color: seriesColor(1), Radius: vg.Points(2), Shape: draw.RingGlyph{}}
		if i == 1 {
			style.Shape = draw.CircleGlyph{}
		}
		p.Add(&plotter.Scatter{XYs: points, GlyphStyle: style})
	}
	return len(p50) > 0
}
