package report

import (
	"bytes"
	"fmt"
	"image/color"
	"regexp"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Colours of the figures: Okabe and Ito's palette, which people with any colour
// vision tell apart, darkened to stand on white.
type palette struct {
	ink, muted, grid, paper color.RGBA
	series                  []color.RGBA
}

func lightPalette() palette {
	return palette{
		ink: rgb(0x1f2328), muted: rgb(0x59636e), grid: rgb(0xe4e8ec), paper: rgb(0xffffff),
		series: []color.RGBA{rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xa3508b), rgb(0xb58900), rgb(0x5aa9d6)},
	}
}

type cssName struct {
	color    color.RGBA
	variable string
}

// cssNames are the variables of report.css that take the place of the colours in
// figures that stand in a page, so that they follow its light and dark modes.
func cssNames() []cssName {
	p := lightPalette()
	names := []cssName{{p.ink, "--ink"}, {p.muted, "--muted"}, {p.grid, "--grid"}, {p.paper, "--card"}}
	for i, c := range p.series {
		names = append(names, cssName{c, fmt.Sprintf("--s%d", i)})
	}
	return names
}

func rgb(v uint32) color.RGBA {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xff}
}

// faint returns a colour that lets others shine through.
func faint(c color.RGBA, alpha float64) color.Color {
	return color.NRGBA{R: c.R, G: c.G, B: c.B, A: uint8(255 * alpha)}
}

// Sizes of figures. PNGs have 192 dots per inch.
const (
	figureWidth = 17 * vg.Centimeter
	pngDPI      = 192
	fontSize    = 9
)

func textStyle(size vg.Length, c color.Color) text.Style {
	return text.Style{
		Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size),
		Handler: plot.DefaultTextHandler,
	}
}

// newPlot returns an empty plot in our style.
func newPlot(xLabel, yLabel string) *plot.Plot {
	colours := lightPalette()
	p := plot.New()
	p.BackgroundColor = nil
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle = textStyle(fontSize, colours.muted)
		a.Tick.Label = textStyle(fontSize-0.5, colours.muted)
		a.LineStyle = draw.LineStyle{Color: colours.muted, Width: vg.Points(0.6)}
		a.Tick.LineStyle = draw.LineStyle{Color: colours.muted, Width: vg.Points(0.6)}
		a.Tick.Length = vg.Points(3)
		a.Padding = vg.Points(2)
		a.Label.Padding = vg.Points(3)
	}
	p.X.Label.TextStyle.XAlign, p.X.Label.TextStyle.YAlign = text.XCenter, text.YBottom
	p.Y.Label.TextStyle.XAlign, p.Y.Label.TextStyle.YAlign = text.XCenter, text.YBottom
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = text.XCenter, text.YTop
	p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = text.XRight, text.YCenter
	p.Y.LineStyle.Width = 0
	p.Y.Tick.LineStyle.Width = 0
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	return p
}

// drawing is a figure before it is rendered.
type drawing struct {
	id, caption string
	height      vg.Length
	title       string
	legend      []legendEntry
	paint       func(c draw.Canvas)
}

type legendEntry struct {
	label string
	color color.Color
	shape string // line, dashed, dot, ring or box
}

const stripHeight = 15

// draw paints title, legend strip and plot. The legend has a strip of its own
// above the plot, where it cannot cover data.
func (d drawing) draw(c draw.Canvas) {
	colours := lightPalette()
	margin := vg.Points(6)
	c = draw.Crop(c, margin, -2*margin, margin, -margin)
	top := c.Max.Y
	title := textStyle(fontSize+1, colours.ink)
	title.YAlign = text.YTop
	c.FillText(title, vg.Point{X: c.Min.X, Y: top}, d.title)
	used := vg.Points(stripHeight)
	for _, row := range legendRows(d.legend, c.Max.X-c.Min.X) {
		drawLegend(c, row, top-used)
		used += vg.Points(stripHeight)
	}
	d.paint(draw.Crop(c, 0, 0, 0, -used-vg.Points(3)))
}

// Widths of a legend entry around its label.
const (
	keyWidth    = 16
	entryMargin = 14
)

func legendStyle() text.Style {
	style := textStyle(fontSize-0.5, lightPalette().muted)
	style.YAlign = text.YCenter
	return style
}

// legendRows breaks a legend into lines of at most the given width.
func legendRows(entries []legendEntry, width vg.Length) [][]legendEntry {
	var rows [][]legendEntry
	used := width
	for _, e := range entries {
		w := vg.Points(keyWidth) + legendStyle().Width(e.label)
		if len(rows) == 0 || used+w > width {
			rows, used = append(rows, nil), 0
		}
		rows[len(rows)-1] = append(rows[len(rows)-1], e)
		used += w + vg.Points(entryMargin)
	}
	return rows
}

func drawLegend(c draw.Canvas, entries []legendEntry, y vg.Length) {
	style := legendStyle()
	x, mid := c.Min.X, y-vg.Points(stripHeight/2)
	for _, e := range entries {
		drawKey(c, e, vg.Point{X: x, Y: mid})
		x += vg.Points(keyWidth)
		c.FillText(style, vg.Point{X: x, Y: mid}, e.label)
		x += style.Width(e.label) + vg.Points(entryMargin)
	}
}

func drawKey(c draw.Canvas, e legendEntry, at vg.Point) {
	switch e.shape {
	case "dot":
		c.DrawGlyph(draw.GlyphStyle{Color: e.color, Radius: vg.Points(2.6), Shape: draw.CircleGlyph{}}, vg.Point{X: at.X + vg.Points(6), Y: at.Y})
	case "ring":
		c.DrawGlyph(draw.GlyphStyle{Color: e.color, Radius: vg.Points(2.6), Shape: draw.RingGlyph{}}, vg.Point{X: at.X + vg.Points(6), Y: at.Y})
	case "box":
		fillRect(c, e.color, at.X, at.Y-vg.Points(3.5), at.X+vg.Points(12), at.Y+vg.Points(3.5))
	case "dashed":
		c.StrokeLine2(draw.LineStyle{Color: e.color, Width: vg.Points(1.4), Dashes: dashes()}, at.X, at.Y, at.X+vg.Points(12), at.Y)
	default:
		c.StrokeLine2(draw.LineStyle{Color: e.color, Width: vg.Points(2)}, at.X, at.Y, at.X+vg.Points(12), at.Y)
	}
}

// dashes are those of a line that stands on less than the others.
func dashes() []vg.Length { return []vg.Length{vg.Points(4), vg.Points(3)} }

func fillRect(c draw.Canvas, fill color.Color, x0, y0, x1, y1 vg.Length) {
	c.FillPolygon(fill, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}

// render turns a drawing into SVG and PNG.
func (d drawing) render() (Figure, error) {
	f := Figure{ID: d.id, Caption: d.caption}
	svg := vgsvg.New(figureWidth, d.height)
	d.draw(draw.New(svg))
	var b bytes.Buffer
	if _, err := svg.WriteTo(&b); err != nil {
		return f, fmt.Errorf("figure %s: %w", d.id, err)
	}
	f.SVG = tidySVG(b.Bytes())
	img := vgimg.NewWith(vgimg.UseWH(figureWidth, d.height), vgimg.UseDPI(pngDPI), vgimg.UseBackgroundColor(lightPalette().paper))
	d.draw(draw.New(img))
	b.Reset()
	if _, err := (vgimg.PngCanvas{Canvas: img}).WriteTo(&b); err != nil {
		return f, fmt.Errorf("figure %s: %w", d.id, err)
	}
	f.PNG = bytes.Clone(b.Bytes())
	return f, nil
}

// tidySVG gives the file fonts that every machine has a likeness of.
func tidySVG(svg []byte) []byte {
	families := regexp.MustCompile(`font-family:[^;"]*`)
	return families.ReplaceAll(svg, []byte("font-family:'Liberation Sans',Arial,Helvetica,sans-serif"))
}

// inlineSVG makes an SVG part of a page: its size and colours follow the page.
func inlineSVG(f Figure) string {
	svg := string(f.SVG)
	if i := strings.Index(svg, "<svg"); i > 0 {
		svg = svg[i:]
	}
	size := regexp.MustCompile(`<svg width="[^"]*" height="[^"]*"`)
	svg = size.ReplaceAllString(svg, `<svg role="img"`)
	svg = regexp.MustCompile(`\s+xmlns(:xlink)?="[^"]*"`).ReplaceAllString(svg, "")
	svg = regexp.MustCompile(`<!--.*?-->`).ReplaceAllString(svg, "")
	return regexp.MustCompile(`#[0-9A-Fa-f]{6}`).ReplaceAllStringFunc(svg, cssColor)
}

// cssColor returns the variable that takes the place of a colour of the palette.
// A translucent colour comes back from the SVG writer a few steps off.
func cssColor(code string) string {
	v, err := strconv.ParseUint(code[1:], 16, 32)
	if err != nil {
		return code
	}
	c := rgb(uint32(v))
	for _, n := range cssNames() {
		if near(c.R, n.color.R) && near(c.G, n.color.G) && near(c.B, n.color.B) {
			return "var(" + n.variable + ")"
		}
	}
	return code
}

func near(a, b uint8) bool { return max(a, b)-min(a, b) <= 4 }
