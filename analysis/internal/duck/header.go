package duck

import (
	"fmt"
	"strings"
)

// Column is an output column as the header of a .sql file declares it.
type Column struct {
	Name string
	Type string // DuckDB's name of the type
	Unit string // ns, unix_ns, bytes, tokens, count, ratio, text, bool, ...
	Doc  string
}

// Header is the comment that begins a .sql file.
type Header struct {
	Purpose string
	Columns []Column
	Order   string
}

// ParseHeader reads the header of a .sql file: lines "-- Purpose:", "-- Inputs:",
// "-- Output:" followed by one line per column (name, type, unit, sentence), and
// "-- Order:".
func ParseHeader(text string) (Header, error) {
	var h Header
	inOutput := false
	for line := range strings.Lines(text) {
		line, isComment := strings.CutPrefix(strings.TrimRight(line, "\n"), "--")
		if !isComment {
			break
		}
		body := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(body, "Purpose:"):
			h.Purpose = strings.TrimSpace(strings.TrimPrefix(body, "Purpose:"))
		case strings.HasPrefix(body, "Output:"):
			inOutput = true
		case strings.HasPrefix(body, "Order:"):
			inOutput, h.Order = false, strings.TrimSpace(strings.TrimPrefix(body, "Order:"))
		case inOutput && body != "":
			f := strings.Fields(body)
			if len(f) < 4 {
				return h, fmt.Errorf("output column %q: want name, type, unit and a sentence", body)
			}
			h.Columns = append(h.Columns, Column{f[0], f[1], f[2], strings.Join(f[3:], " ")})
		}
	}
	if h.Purpose == "" || h.Order == "" || len(h.Columns) == 0 {
		return h, fmt.Errorf("header lacks a purpose, output columns or an ordering")
	}
	return h, nil
}
