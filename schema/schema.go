// Package schema says what a trace is made of: its tables and their columns
// with types, units and meaning, its manifest and its ledger.
//
// It knows nothing of how bytes become rows (package capture), how rows become
// files (schema/parquetfile, schema/tracedir) or what is asked of them (package
// analysis), and imports only the standard library, so that whoever reads a
// trace need not inherit the dependencies of who writes it.
//
// Times are integers of nanoseconds since the Unix epoch (suffix _unix_ns),
// durations integers of nanoseconds (_ns), sizes bytes (_bytes). There are no
// time stamp types, lists or floats of seconds on disk: every engine reads the
// columns alike.
package schema

import (
	"fmt"
	"reflect"
)

// FormatVersion is the version of the layout on disk that this package
// describes. It is unrelated to the release.
const FormatVersion = 1

// Type is the type of a column on disk.
type Type string

// Types of columns, each read alike by DuckDB, Spark, Trino and pyarrow.
const (
	TypeInt64   Type = "int64"
	TypeInt32   Type = "int32"
	TypeFloat64 Type = "float64"
	TypeBool    Type = "bool"
	TypeString  Type = "string"
)

// Column describes one column of a table on disk.
type Column struct {
	Name     string `json:"name"`
	Type     Type   `json:"type"`
	Nullable bool   `json:"nullable"`
	Unit     string `json:"unit,omitempty"`
	Doc      string `json:"doc"`
}

// Table describes one table of a trace.
type Table struct {
	Name    string
	Doc     string
	Columns []Column
}

// Tables lists the tables of a trace in the order of its documentation.
func Tables() []Table {
	return []Table{
		{"requests", "One row per request and its response.", Columns[Request]()},
		{"events", "One row per framed record of a response stream, and per SSE comment.", Columns[Event]()},
		{"connections", "One row per TCP connection.", Columns[Connection]()},
	}
}

// Columns describes the columns of a row type, in the order of its fields.
// It panics on a field without the tags col and doc, or of a type that no
// column has: a row type is fixed when the program is built.
func Columns[Row any]() []Column {
	t := reflect.TypeFor[Row]()
	columns := make([]Column, 0, t.NumField())
	for f := range t.Fields() {
		name, doc := f.Tag.Get("col"), f.Tag.Get("doc")
		if name == "" || doc == "" {
			panic(fmt.Sprintf("schema: field %s.%s lacks a col or doc tag", t, f.Name))
		}
		typ, nullable := columnType(f.Type)
		columns = append(columns, Column{name, typ, nullable, f.Tag.Get("unit"), doc})
	}
	return columns
}

func columnType(t reflect.Type) (typ Type, nullable bool) {
	if t.Kind() == reflect.Struct { // Opt
		typ, _ := columnType(t.Field(0).Type)
		return typ, true
	}
	switch t.Kind() {
	case reflect.Int64:
		return TypeInt64, false
	case reflect.Int32:
		return TypeInt32, false
	case reflect.Float64:
		return TypeFloat64, false
	case reflect.Bool:
		return TypeBool, false
	case reflect.String, reflect.Uint16: // Uint16 is Kinds, kept as its words
		return TypeString, false
	default:
		panic(fmt.Sprintf("schema: no column type for %s", t))
	}
}
