package parquetfile

import (
	"fmt"
	"unsafe"

	"github.com/apache/arrow-go/v18/parquet/file"
)

// rowSource addresses fields of a slice of row structs by offset.
//
// Note: reading a field through package reflect takes several calls for every value;
// this takes a pointer addition. The offsets come from reflect
// on the same type (fieldsOf), and the slice stays alive as long as base does.
type rowSource struct {
	base   unsafe.Pointer
	stride uintptr
	n      int
}

func newRowSource[Row any](rows []Row) rowSource {
	return rowSource{unsafe.Pointer(unsafe.SliceData(rows)), unsafe.Sizeof(rows[0]), len(rows)}
}

func at[T any](s rowSource, i int, offset uintptr) *T {
	return (*T)(unsafe.Add(s.base, uintptr(i)*s.stride+offset))
}

// buffers holds the values and definition levels of one column at a time.
type buffers struct {
	int64s   []int64
	int32s   []int32
	float64s []float64
	bools    []bool
	levels   []int16
	text     textBuffers
}

// gather appends column f of every row to values, nulls left out, with the
// definition levels that tell where they stand.
func gather[T any](values []T, levels []int16, s rowSource, f field) ([]T, []int16) {
	if !f.Nullable {
		for i := range s.n {
			values = append(values, *at[T](s, i, f.offset))
		}
		return values, nil
	}
	for i := range s.n {
		if *at[bool](s, i, f.optOffset) {
			values = append(values, *at[T](s, i, f.offset))
			levels = append(levels, 1)
		} else {
			levels = append(levels, 0)
		}
	}
	return values, levels
}

func (b *buffers) writeColumn(column file.ColumnChunkWriter, f field, s rowSource) error {
	var levels []int16
	var err error
	switch w := column.(type) {
	case *file.Int64ColumnChunkWriter:
		b.int64s, levels = gather(b.int64s[:0], b.levels[:0], s, f)
		_, err = w.WriteBatch(b.int64s, levels, nil)
	case *file.Int32ColumnChunkWriter:
		b.int32s, levels = gather(b.int32s[:0], b.levels[:0], s, f)
		_, err = w.WriteBatch(b.int32s, levels, nil)
	case *file.Float64ColumnChunkWriter:
		b.float64s, levels = gather(b.float64s[:0], b.levels[:0], s, f)
		_, err = w.WriteBatch(b.float64s, levels, nil)
	case *file.BooleanColumnChunkWriter:
		b.bools, levels = gather(b.bools[:0], b.levels[:0], s, f)
		_, err = w.WriteBatch(b.bools, levels, nil)
	case *file.ByteArrayColumnChunkWriter:
		levels, err = b.text.write(w, b.levels[:0], s, f)
	default:
		return fmt.Errorf("no writer for %T", column)
	}
	if levels != nil {
		b.levels = levels
	}
	return err
}
