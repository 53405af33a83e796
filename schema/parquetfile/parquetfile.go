// Package parquetfile writes rows of package schema to Parquet and reads them back.
//
// It knows encodings, compression and file metadata; it does not know which
// files make a trace (package tracedir). Columns are gathered straight from the
// fields of the row structs into buffers that are reused, so that writing costs
// no allocation per row.
package parquetfile

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/metadata"
	pqschema "github.com/apache/arrow-go/v18/parquet/schema"

	"tokentrace/schema"
)

// Keys of the file's metadata. The columns entry is the JSON of schema.Columns:
// names, types, units and, for derived columns, their formulas.
const (
	metaFormat  = "tokentrace.format"
	metaTable   = "tokentrace.table"
	metaColumns = "tokentrace.columns"
)

// field is a column together with the place of its value in the row struct.
type field struct {
	schema.Column
	offset uintptr
	kind   reflect.Kind // of the value inside an Opt
	// optOffset is the offset of Opt.OK. Valid iff Nullable.
	optOffset uintptr
}

func fieldsOf[Row any]() []field {
	t := reflect.TypeFor[Row]()
	fields := make([]field, 0, t.NumField())
	for i, column := range schema.Columns[Row]() {
		f := t.Field(i)
		out := field{Column: column, offset: f.Offset, kind: f.Type.Kind()}
		if column.Nullable {
			out.kind = f.Type.Field(0).Type.Kind()
			out.optOffset = f.Offset + f.Type.Field(1).Offset
		}
		fields = append(fields, out)
	}
	return fields
}

// Writer writes the rows of one table to one file, a row group at a time.
type Writer[Row any] struct {
	file   *file.Writer
	fields []field
	buf    buffers
}

// NewWriter begins a file of the named table on w.
func NewWriter[Row any](w io.Writer, table string) (*Writer[Row], error) {
	fields := fieldsOf[Row]()
	root, err := rootNode(fields)
	if err != nil {
		return nil, fmt.Errorf("describe table %s: %w", table, err)
	}
	meta, err := fileMetadata(table, schema.Columns[Row]())
	if err != nil {
		return nil, fmt.Errorf("describe table %s: %w", table, err)
	}
	sink := struct{ io.Writer }{w} // without Close: w is the caller's to close
	pw, err := file.NewParquetWriterWithError(sink, root, file.WithWriterProps(properties(fields)), file.WithWriteMetadata(meta))
	if err != nil {
		return nil, fmt.Errorf("begin table %s: %w", table, err)
	}
	return &Writer[Row]{file: pw, fields: fields}, nil
}

// properties asks for what was measured best: integers as deltas (time stamps of
// neighbours differ little), text as a dictionary, Snappy over both. Zstandard makes
// events 2 % smaller and needs 8 MB more per encoder.
func properties(fields []field) *parquet.WriterProperties {
	opts := []parquet.WriterProperty{
		parquet.WithDictionaryDefault(false),
		parquet.WithCompression(compress.Codecs.Snappy),
		parquet.WithCreatedBy("tokentrace"),
	}
	for _, f := range fields {
		switch f.Type {
		case schema.TypeInt64, schema.TypeInt32:
			opts = append(opts, parquet.WithEncodingFor(f.Name, parquet.Encodings.DeltaBinaryPacked))
		case schema.TypeString:
			opts = append(opts, parquet.WithDictionaryFor(f.Name, true))
		}
	}
	return parquet.NewWriterProperties(opts...)
}

func fileMetadata(table string, columns []schema.Column) (metadata.KeyValueMetadata, error) {
	doc, err := json.Marshal(columns)
	if err != nil {
		return nil, err
	}
	meta := metadata.NewKeyValueMetadata()
	for _, kv := range [][2]string{
		{metaFormat, strconv.Itoa(schema.FormatVersion)}, {metaTable, table}, {metaColumns, string(doc)},
	} {
		if err := meta.Append(kv[0], kv[1]); err != nil {
			return nil, err
		}
	}
	return meta, nil
}

func rootNode(fields []field) (*pqschema.GroupNode, error) {
	nodes := make(pqschema.FieldList, 0, len(fields))
	for _, f := range fields {
		repetition := parquet.Repetitions.Required
		if f.Nullable {
			repetition = parquet.Repetitions.Optional
		}
		logical := pqschema.LogicalType(pqschema.NoLogicalType{})
		if f.Type == schema.TypeString {
			logical = pqschema.StringLogicalType{}
		}
		node, err := pqschema.NewPrimitiveNodeLogical(f.Name, repetition, logical, physicalType(f.Type), -1, -1)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		nodes = append(nodes, node)
	}
	return pqschema.NewGroupNode("schema", parquet.Repetitions.Required, nodes, -1)
}

func physicalType(t schema.Type) parquet.Type {
	switch t {
	case schema.TypeInt64:
		return parquet.Types.Int64
	case schema.TypeInt32:
		return parquet.Types.Int32
	case schema.TypeFloat64:
		return parquet.Types.Double
	case schema.TypeBool:
		return parquet.Types.Boolean
	default:
		return parquet.Types.ByteArray
	}
}

// Write writes rows as one row group. It keeps no reference to them.
func (w *Writer[Row]) Write(rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	group, err := w.file.AppendRowGroupChecked()
	if err != nil {
		return fmt.Errorf("begin row group: %w", err)
	}
	src := newRowSource(rows)
	for _, f := range w.fields {
		column, err := group.NextColumn()
		if err != nil {
			return fmt.Errorf("begin column %s: %w", f.Name, err)
		}
		if err := w.buf.writeColumn(column, f, src); err != nil {
			return fmt.Errorf("write column %s: %w", f.Name, err)
		}
		if err := column.Close(); err != nil {
			return fmt.Errorf("end column %s: %w", f.Name, err)
		}
	}
	if err := group.Close(); err != nil {
		return fmt.Errorf("end row group: %w", err)
	}
	return nil
}

// Close writes the footer. The file is unreadable without it.
func (w *Writer[Row]) Close() error {
	if err := w.file.Close(); err != nil {
		return fmt.Errorf("write footer: %w", err)
	}
	return nil
}
