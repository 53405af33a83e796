// Package report shows the results of package analysis.
//
// It knows how numbers are written for people and how a page is laid out. Each
// result is turned into sections once (sections.go); the renderers (text,
// Markdown, CSV, HTML) know only sections and compute nothing. JSON is the
// result itself.
package report

// Document is what the renderers show.
type Document struct {
	Title    string
	Subtitle string
	Sections []Section
}

// Section is a heading with what stands under it. A section with an empty Title
// continues the one before.
type Section struct {
	ID     string // anchor, unique in its document
	Title  string
	Blocks []Block
}

// Block is a Paragraph, Warnings, Tiles, Table or Figure.
type Block interface{ block() }

// Paragraph is running text.
type Paragraph struct{ Text string }

// Warnings lists what keeps the numbers above or below from being trusted blindly.
type Warnings struct{ Items []string }

// Tiles are the few numbers that matter most.
type Tiles struct{ Items []Tile }

// Tile is one of them.
type Tile struct{ Label, Value, Note string }

// Table is a table. Every row has a cell for every column.
type Table struct {
	Caption string
	Columns []Column
	Keys    []string // heads in CSV, with the units of bare values; nil: those of Columns
	Rows    [][]Cell
	Fold    bool // long and rarely read: HTML folds it away
	Page    bool // for pages and CSV only; a terminal has no room for it
}

// Column is a column of a table.
type Column struct {
	Head  string
	Right bool // numbers stand to the right
}

// Cell is a cell of a table.
type Cell struct {
	Text   string // as people read it
	Note   string // smaller, beside or under it
	Indent int    // how far it stands under the cell above
	// Value is the bare value for CSV; nil stands for NULL. Where Raw is false,
	// Text is all there is.
	Value any
	Raw   bool
}

// Figure is a drawing, kept as SVG and PNG.
type Figure struct {
	ID      string
	Caption string
	SVG     []byte
	PNG     []byte
}

func (Paragraph) block() {}
func (Warnings) block()  {}
func (Tiles) block()     {}
func (Table) block()     {}
func (Figure) block()    {}

func txt(s string) Cell { return Cell{Text: s} }
