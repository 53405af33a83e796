package report

import (
	_ "embed" // report.html.tmpl, report.css
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed report.html.tmpl
var pageTemplate string

//go:embed report.css
var pageCSS string

// WriteHTML writes a document as one page that needs no other file.
func WriteHTML(w io.Writer, d Document) error {
	var page *template.Template
	functions := template.FuncMap{
		"css":     func() template.CSS { return template.CSS(pageCSS) },
		"svg":     func(f Figure) template.HTML { return template.HTML(inlineSVG(f)) }, // ours, text escaped by the SVG writer
		"content": func(b Block) (template.HTML, error) { return blockHTML(page, b) },
	}
	page, err := template.New("page").Funcs(functions).Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("page template: %w", err)
	}
	var out strings.Builder
	if err := page.Execute(&out, d); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	if _, err := io.WriteString(w, strings.Map(printable, out.String())); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// printable drops the control characters that HTML does not allow.
func printable(r rune) rune {
	if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
		return -1
	}
	return r
}

func blockHTML(page *template.Template, b Block) (template.HTML, error) {
	name := ""
	switch b.(type) {
	case Paragraph:
		name = "paragraph"
	case Warnings:
		name = "warnings"
	case Tiles:
		name = "tiles"
	case Table:
		name = "table"
	case Figure:
		name = "figure"
	}
	var out strings.Builder
	err := page.ExecuteTemplate(&out, name, b)
	return template.HTML(out.String()), err
}
