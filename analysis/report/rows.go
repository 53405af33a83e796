package report

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
)

// Row is a source of rows of any columns: nil after the last.
type Row func() ([]any, error)

// head is how many rows of a query are looked at to set the widths of a table.
const head = 1000

// WriteRows writes the rows of a query as they come, in the format text, json,
// csv or markdown. JSON is an array of objects, one per row and line.
func WriteRows(w io.Writer, format string, columns []string, next Row) error {
	out := bufio.NewWriter(w)
	var err error
	switch format {
	case "json":
		err = jsonRows(out, columns, next)
	case "csv":
		err = csvRows(out, columns, next)
	default:
		err = tableRows(out, format, columns, next)
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

func jsonRows(out *bufio.Writer, columns []string, next Row) error {
	keys := make([][]byte, len(columns))
	for i, c := range columns {
		key, err := marshal(c)
		if err != nil {
			return err
		}
		keys[i] = key
	}
	lead := "["
	for {
		row, err := next()
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		fmt.Fprintf(out, "%s\n  {", lead)
		lead = ","
		for i, v := range row {
			text, err := marshal(v)
			if err != nil {
				return fmt.Errorf("column %s: %w", columns[i], err)
			}
			if i > 0 {
				fmt.Fprint(out, ", ")
			}
			fmt.Fprintf(out, "%s: %s", keys[i], text)
		}
		fmt.Fprint(out, "}")
	}
	if lead == "[" {
		fmt.Fprintln(out, "[]")
	} else {
		fmt.Fprintln(out, "\n]")
	}
	return nil
}

// marshal writes JSON without escaping what only HTML needs escaped.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func csvRows(out *bufio.Writer, columns []string, next Row) error {
	w := csv.NewWriter(out)
	record := make([]string, len(columns))
	for i, c := range columns {
		record[i] = csvText(c)
	}
	if err := w.Write(record); err != nil {
		return err
	}
	for {
		row, err := next()
		if err != nil {
			return err
		}
		if row == nil {
			break
		}
		for i, v := range row {
			record[i] = csvValue(v)
		}
		if err := w.Write(record); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// tableRows writes tables of up to 1000 rows: each has its own widths.
func tableRows(out *bufio.Writer, format string, columns []string, next Row) error {
	for part := 0; ; part++ {
		t := Table{}
		for _, c := range columns {
			t.Columns = append(t.Columns, Column{Head: c})
		}
		for len(t.Rows) < head {
			row, err := next()
			if err != nil {
				return err
			}
			if row == nil {
				break
			}
			cells := make([]Cell, len(row))
			for i, v := range row {
				cells[i] = anyCell(v)
				t.Columns[i].Right = t.Columns[i].Right || isNumber(v)
			}
			t.Rows = append(t.Rows, cells)
		}
		if len(t.Rows) == 0 {
			if part == 0 {
				fmt.Fprintln(out, "no rows")
			}
			return nil
		}
		if format == "markdown" {
			markdownTable(out, t)
		} else {
			textTable(out, t)
		}
	}
}

func anyCell(v any) Cell {
	switch v := v.(type) {
	case nil:
		return txt("NULL")
	case string:
		return txt(v)
	default:
		return txt(csvValue(v))
	}
}

func isNumber(v any) bool {
	switch v.(type) {
	case int64, uint64, float64:
		return true
	}
	return false
}
