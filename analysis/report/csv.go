package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteCSV writes the tables of a document, one after the other, each with a
// header line; a blank line parts them. Values are bare: ns, bytes, counts.
func WriteCSV(w io.Writer, d Document) error {
	first := true
	for _, s := range d.Sections {
		for _, b := range s.Blocks {
			t, ok := b.(Table)
			if !ok {
				continue
			}
			if !first {
				if _, err := fmt.Fprintln(w); err != nil {
					return err
				}
			}
			first = false
			if err := csvTable(w, t); err != nil {
				return err
			}
		}
	}
	return nil
}

func csvTable(w io.Writer, t Table) error {
	out := csv.NewWriter(w)
	record := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		record[i] = csvText(c.Head)
		if t.Keys != nil {
			record[i] = t.Keys[i]
		}
	}
	if err := out.Write(record); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for i, c := range row {
			record[i] = csvText(c.Text)
			if c.Raw {
				record[i] = csvValue(c.Value)
			}
		}
		if err := out.Write(record); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// csvText marks text that a spreadsheet would run as a formula.
func csvText(s string) string {
	if s != missing && s != "" && strings.ContainsAny(s[:1], "=+-@\t\r") {
		return "'" + s
	}
	return s
}

// csvValue writes a bare value: NULL as nothing, lists and objects as JSON.
func csvValue(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return csvText(v)
	case *float64:
		if v == nil {
			return ""
		}
		return csvValue(*v)
	case *int64:
		if v == nil {
			return ""
		}
		return csvValue(*v)
	case *string:
		if v == nil {
			return ""
		}
		return csvText(*v)
	default:
		text, err := json.Marshal(v)
		if err != nil {
			return fmt.Sprint(v)
		}
		return string(text)
	}
}
