package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// textWidth is the column at which running text is wrapped.
const textWidth = 100

// WriteText writes a document for a terminal. Figures are left out.
func WriteText(w io.Writer, d Document) error {
	out := bufio.NewWriter(w)
	if d.Title != "" {
		fmt.Fprintln(out, clean(d.Title))
	}
	if d.Subtitle != "" {
		fmt.Fprintln(out, clean(d.Subtitle))
	}
	for i, s := range d.Sections {
		if s.Title != "" {
			if i > 0 || d.Title != "" {
				fmt.Fprintln(out)
			}
			fmt.Fprintln(out, clean(s.Title))
		}
		for _, b := range s.Blocks {
			textBlock(out, b)
		}
	}
	return out.Flush()
}

func textBlock(out *bufio.Writer, b Block) {
	switch b := b.(type) {
	case Paragraph:
		wrap(out, "  ", "  ", b.Text)
	case Warnings:
		for _, item := range b.Items {
			wrap(out, "  ! ", "    ", item)
		}
	case Tiles:
		for _, t := range b.Items {
			fmt.Fprintf(out, "  %-14s %s  %s\n", clean(t.Label), clean(t.Value), clean(t.Note))
		}
	case Table:
		if !b.Page {
			textTable(out, b)
		}
	}
}

// clean takes control characters out of what came off a wire: a terminal obeys them.
func clean(s string) string { return shorten(s, 1<<20) }

func wrap(out *bufio.Writer, first, rest, s string) {
	line, lead := "", first
	for _, word := range strings.Fields(clean(s)) {
		word = shorten(word, textWidth-20)
		if line != "" && utf8.RuneCountInString(lead+line+word)+1 > textWidth {
			fmt.Fprintln(out, lead+line)
			line, lead = "", rest
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		fmt.Fprintln(out, lead+line)
	}
}

// textCell joins a cell's text and note.
func textCell(c Cell) string {
	s := strings.Repeat("  ", c.Indent) + shorten(c.Text, 60)
	if c.Note != "" {
		s += " [" + clean(c.Note) + "]"
	}
	return s
}

func textTable(out *bufio.Writer, t Table) {
	if len(t.Rows) == 0 {
		return
	}
	widths := make([]int, len(t.Columns))
	for i, c := range t.Columns {
		widths[i] = utf8.RuneCountInString(clean(c.Head))
	}
	for _, row := range t.Rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(textCell(c)))
		}
	}
	if t.Caption != "" {
		fmt.Fprintf(out, "  %s\n", clean(t.Caption))
	}
	cells := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		cells[i] = clean(c.Head)
	}
	textRow(out, t, widths, cells)
	for _, row := range t.Rows {
		for i, c := range row {
			cells[i] = textCell(c)
		}
		textRow(out, t, widths, cells)
	}
}

func textRow(out *bufio.Writer, t Table, widths []int, cells []string) {
	line := " "
	for i, c := range cells {
		pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c))
		if t.Columns[i].Right {
			line += " " + pad + c
		} else {
			line += " " + c + pad
		}
		line += " "
	}
	fmt.Fprintln(out, strings.TrimRight(line, " "))
}
