package parquetfile

import (
	"fmt"
	"reflect"
	"strconv"

	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"tokentrace/schema"
)

// ReadFile returns all rows of a file that Writer wrote. It is meant for tests
// and small tables; analysis reads through DuckDB.
func ReadFile[Row any](path string) (rows []Row, err error) {
	reader, err := file.OpenParquetFile(path, false)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	defer func() {
		if cerr := reader.Close(); err == nil && cerr != nil {
			err = fmt.Errorf("close %s: %w", path, cerr)
		}
	}()
	if v := reader.MetaData().KeyValueMetadata().FindValue(metaFormat); v != nil {
		if n, err := strconv.Atoi(*v); err == nil && n > schema.FormatVersion {
			return nil, fmt.Errorf("%s has format %d; this program reads 1 to %d: update", path, n, schema.FormatVersion)
		}
	}
	fields := fieldsOf[Row]()
	for g := range reader.NumRowGroups() {
		group := reader.RowGroup(g)
		part := make([]Row, group.NumRows())
		for _, f := range fields {
			c := reader.MetaData().Schema.ColumnIndexByName(f.Name)
			if c < 0 {
				return nil, fmt.Errorf("%s has no column %s", path, f.Name)
			}
			column, err := group.Column(c)
			if err != nil {
				return nil, fmt.Errorf("read column %s of %s: %w", f.Name, path, err)
			}
			if err := readColumn(column, f, reflect.ValueOf(part)); err != nil {
				return nil, fmt.Errorf("read column %s of %s: %w", f.Name, path, err)
			}
		}
		rows = append(rows, part...)
	}
	return rows, nil
}

// readColumn sets field f of every row of a slice of row structs.
func readColumn(column file.ColumnChunkReader, f field, rows reflect.Value) error {
	n := rows.Len()
	levels := make([]int16, n)
	var err error
	var value func(i int) reflect.Value
	switch r := column.(type) {
	case *file.Int64ColumnChunkReader:
		value, err = readValues(n, levels, r.ReadBatch)
	case *file.Int32ColumnChunkReader:
		value, err = readValues(n, levels, r.ReadBatch)
	case *file.Float64ColumnChunkReader:
		value, err = readValues(n, levels, r.ReadBatch)
	case *file.BooleanColumnChunkReader:
		value, err = readValues(n, levels, r.ReadBatch)
	case *file.ByteArrayColumnChunkReader:
		value, err = readValues(n, levels, r.ReadBatch)
	default:
		return fmt.Errorf("no reader for %T", column)
	}
	if err != nil {
		return err
	}
	name := f.Name
	index := fieldIndex(rows.Type().Elem(), name)
	next := 0
	for i := range n {
		dst := rows.Index(i).Field(index)
		if f.Nullable {
			if levels[i] == 0 {
				continue
			}
			dst.Field(1).SetBool(true)
			dst = dst.Field(0)
		}
		setValue(dst, value(next))
		next++
	}
	return nil
}

func fieldIndex(t reflect.Type, column string) int {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("col") == column {
			return i
		}
	}
	return -1
}

func setValue(dst, v reflect.Value) {
	if text, ok := v.Interface().(parquet.ByteArray); ok {
		if dst.Kind() == reflect.Uint16 {
			dst.SetUint(uint64(schema.ParseKinds(string(text))))
			return
		}
		dst.SetString(string(text))
		return
	}
	dst.Set(v.Convert(dst.Type()))
}

func readValues[T any](n int, levels []int16, read func(int64, []T, []int16, []int16) (int64, int, error)) (func(int) reflect.Value, error) {
	values := make([]T, n)
	got, filled := 0, 0
	for got < n {
		total, k, err := read(int64(n-got), values[filled:], levels[got:], nil)
		if err != nil {
			return nil, err
		}
		if total == 0 {
			return nil, fmt.Errorf("ends after %d of %d rows", got, n)
		}
		got += int(total)
		filled += k
	}
	return func(i int) reflect.Value { return reflect.ValueOf(values[i]) }, nil
}
