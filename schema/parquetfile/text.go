package parquetfile

import (
	"errors"
	"reflect"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"

	"tokentrace/schema"
)

// maxDistinct is the number of different texts in a row group up to which a column
// is written by index.
const maxDistinct = 1 << 12

// textBuffers writes columns of text, and of Kinds, which are kept as text.
//
// Note: most text columns repeat few values. Looking them up here and handing
// indices to the encoder halves the time of writing events. The encoder takes indices
// of columns without nulls only.
type textBuffers struct {
	indices  []int32
	distinct []string
	index    map[string]int32
	kinds    map[schema.Kinds]string
	bytes    []parquet.ByteArray
}

// write writes one column and returns its definition levels, nil for a column
// without nulls.
func (b *textBuffers) write(w *file.ByteArrayColumnChunkWriter, levels []int16, s rowSource, f field) ([]int16, error) {
	b.indices, b.distinct = b.indices[:0], b.distinct[:0]
	if b.index == nil {
		b.index, b.kinds = map[string]int32{}, map[schema.Kinds]string{}
	}
	clear(b.index)
	levels = b.lookUp(levels, s, f)
	if !f.Nullable {
		levels = nil
	}
	if f.Nullable || len(b.distinct) > maxDistinct {
		b.bytes = b.bytes[:0]
		for _, i := range b.indices {
			text := b.distinct[i]
			b.bytes = append(b.bytes, unsafe.Slice(unsafe.StringData(text), len(text)))
		}
		_, err := w.WriteBatch(b.bytes, levels, nil)
		return levels, err
	}
	return levels, b.writeIndices(w, levels)
}

// lookUp fills indices with the positions of the column's texts in distinct.
func (b *textBuffers) lookUp(levels []int16, s rowSource, f field) []int16 {
	last, lastIndex := "", int32(-1)
	for i := range s.n {
		if f.Nullable {
			if !*at[bool](s, i, f.optOffset) {
				levels = append(levels, 0)
				continue
			}
			levels = append(levels, 1)
		}
		var text string
		if f.kind == reflect.Uint16 {
			text = b.kindText(*at[schema.Kinds](s, i, f.offset))
		} else {
			text = *at[string](s, i, f.offset)
		}
		if lastIndex < 0 || text != last {
			last, lastIndex = text, b.position(text)
		}
		b.indices = append(b.indices, lastIndex)
	}
	return levels
}

func (b *textBuffers) position(text string) int32 {
	i, ok := b.index[text]
	if !ok {
		i = int32(len(b.distinct))
		b.index[text] = i
		b.distinct = append(b.distinct, text)
	}
	return i
}

func (b *textBuffers) kindText(k schema.Kinds) string {
	text, ok := b.kinds[k]
	if !ok {
		text = k.String()
		b.kinds[k] = text
	}
	return text
}

// writeIndices writes the column as a dictionary and the positions in it.
func (b *textBuffers) writeIndices(w *file.ByteArrayColumnChunkWriter, levels []int16) error {
	encoder, ok := w.CurrentEncoder().(interface{ PutDictionary(arrow.Array) error })
	if !ok {
		return errors.New("the column has no dictionary")
	}
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	defer texts.Release()
	texts.AppendValues(b.distinct, nil)
	dictionary := texts.NewStringArray()
	defer dictionary.Release()
	if err := encoder.PutDictionary(dictionary); err != nil {
		return err
	}
	data := array.NewData(arrow.PrimitiveTypes.Int32, len(b.indices),
		[]*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(b.indices))}, nil, 0, 0)
	defer data.Release()
	indices := array.NewInt32Data(data)
	defer indices.Release()
	return w.WriteDictIndices(indices, levels, nil)
}
