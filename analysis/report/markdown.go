package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"
)

// WriteMarkdown writes a document as Markdown. Figures are named, not embedded.
func WriteMarkdown(w io.Writer, d Document) error {
	out := bufio.NewWriter(w)
	if d.Title != "" {
		fmt.Fprintf(out, "# %s\n\n", markdownText(d.Title))
	}
	if d.Subtitle != "" {
		fmt.Fprintf(out, "%s\n\n", markdownText(d.Subtitle))
	}
	for _, s := range d.Sections {
		if s.Title != "" {
			fmt.Fprintf(out, "## %s\n\n", markdownText(s.Title))
		}
		for _, b := range s.Blocks {
			markdownBlock(out, b)
		}
	}
	return out.Flush()
}

func markdownBlock(out *bufio.Writer, b Block) {
	switch b := b.(type) {
	case Paragraph:
		fmt.Fprintf(out, "%s\n\n", markdownText(b.Text))
	case Warnings:
		for _, item := range b.Items {
			fmt.Fprintf(out, "- **Warning:** %s\n", markdownText(item))
		}
		if len(b.Items) > 0 {
			fmt.Fprintln(out)
		}
	case Tiles:
		for _, t := range b.Items {
			fmt.Fprintf(out, "- %s: **%s** %s\n", markdownText(t.Label), markdownText(t.Value), markdownText(t.Note))
		}
		fmt.Fprintln(out)
	case Figure:
		fmt.Fprintf(out, "![%s](figures/%s.png)\n\n", markdownText(b.Caption), b.ID)
	case Table:
		markdownTable(out, b)
	}
}

func markdownTable(out *bufio.Writer, t Table) {
	if len(t.Rows) == 0 {
		return
	}
	if t.Caption != "" {
		fmt.Fprintf(out, "%s\n\n", markdownText(t.Caption))
	}
	head, rule := "|", "|"
	for _, c := range t.Columns {
		head += " " + markdownText(c.Head) + " |"
		if c.Right {
			rule += "---:|"
		} else {
			rule += "---|"
		}
	}
	fmt.Fprintf(out, "%s\n%s\n", head, rule)
	for _, row := range t.Rows {
		line := "|"
		for _, c := range row {
			s := strings.Repeat("&emsp;", c.Indent) + markdownText(c.Text)
			if c.Note != "" {
				s += " [" + markdownText(c.Note) + "]"
			}
			line += " " + s + " |"
		}
		fmt.Fprintln(out, line)
	}
	fmt.Fprintln(out)
}

// markdownText keeps text from being read as markup.
func markdownText(s string) string {
	return strings.NewReplacer(
		`\`, `\\`, "|", `\|`, "*", `\*`, "_", `\_`, "`", "\\`", "<", "&lt;", "[", `\[`, "]", `\]`,
	).Replace(clean(s))
}
