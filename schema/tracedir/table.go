package tracedir

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"tokentrace/schema"
	"tokentrace/schema/parquetfile"
)

// sortable is a row that knows when it happened.
type sortable[Row any] interface {
	*Row
	SortKey() int64
}

// table turns batches of rows into sealed parts. It runs on the writer's
// goroutine; batches come to it through Writer.
type table[Row any, P sortable[Row]] struct {
	name, dir, run string
	maxPartRows    int64

	seq    int
	tmp    string
	out    *os.File
	buf    *bufio.Writer
	writer *parquetfile.Writer[Row] // of the open part; nil is none
	part   schema.Part
	sealed []schema.Part
}

// write sorts a batch by time and appends it as one row group. A part stays
// sorted: where a batch reaches back before the end of the part, or the part is
// full, a new one is begun.
func (t *table[Row, P]) write(rows []Row) error {
	if len(rows) == 0 {
		return nil
	}
	rows = sortByTime[Row, P](rows)
	start, end := P(&rows[0]).SortKey(), P(&rows[len(rows)-1]).SortKey()
	if t.writer != nil && (start < t.part.End || t.part.Rows >= t.maxPartRows) {
		if err := t.seal(); err != nil {
			return err
		}
	}
	if t.writer == nil {
		if err := t.begin(start); err != nil {
			return err
		}
	}
	if err := t.writer.Write(rows); err != nil {
		return fmt.Errorf("write %s: %w", t.tmp, err)
	}
	t.part.End = end
	t.part.Rows += int64(len(rows))
	return nil
}

// sortByTime returns the rows in order of time; mostly they are.
func sortByTime[Row any, P sortable[Row]](rows []Row) []Row {
	sorted := true
	for i := 1; i < len(rows) && sorted; i++ {
		sorted = P(&rows[i-1]).SortKey() <= P(&rows[i]).SortKey()
	}
	if sorted {
		return rows
	}
	keys, order := make([]int64, len(rows)), make([]int, len(rows))
	for i := range rows {
		keys[i], order[i] = P(&rows[i]).SortKey(), i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(keys[a], keys[b]) })
	out := make([]Row, len(rows))
	for i, from := range order {
		out[i] = rows[from]
	}
	return out
}

func (t *table[Row, P]) begin(start int64) error {
	dir := filepath.Join(t.dir, t.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("begin part: %w", err)
	}
	file := fmt.Sprintf("part-%s-%05d.parquet", t.run, t.seq)
	t.seq++
	t.part = schema.Part{Table: t.name, Path: path.Join(t.name, file), Start: start}
	t.tmp = filepath.Join(dir, "."+file+".tmp")
	out, err := os.Create(t.tmp)
	if err != nil {
		return fmt.Errorf("begin part: %w", err)
	}
	t.out = out
	t.buf = bufio.NewWriterSize(out, 1<<18)
	t.writer, err = parquetfile.NewWriter[Row](t.buf, t.name)
	if err != nil {
		return errors.Join(fmt.Errorf("begin part %s: %w", t.tmp, err), t.abandon())
	}
	return nil
}

// seal ends the open part: footer, sync, rename.
func (t *table[Row, P]) seal() error {
	if t.writer == nil {
		return nil
	}
	err := errors.Join(t.writer.Close(), t.buf.Flush(), t.out.Sync())
	if err != nil {
		return errors.Join(fmt.Errorf("seal %s: %w", t.tmp, err), t.abandon())
	}
	info, err := t.out.Stat()
	if err == nil {
		t.part.Bytes = info.Size()
	}
	err = errors.Join(err, t.out.Close(), os.Rename(t.tmp, filepath.Join(t.dir, filepath.FromSlash(t.part.Path))))
	t.writer, t.out = nil, nil
	if err != nil {
		return errors.Join(fmt.Errorf("seal %s: %w", t.tmp, err), os.Remove(t.tmp))
	}
	t.sealed = append(t.sealed, t.part)
	return syncDir(filepath.Join(t.dir, t.name))
}

// abandon removes the open part and the sealed ones, and the table's directory if that empties it.
func (t *table[Row, P]) abandon() error {
	var errs []error
	if t.out != nil {
		errs = append(errs, t.out.Close(), os.Remove(t.tmp))
		t.writer, t.out = nil, nil
	}
	for _, p := range t.sealed {
		errs = append(errs, os.Remove(filepath.Join(t.dir, filepath.FromSlash(p.Path))))
	}
	t.sealed = nil
	_ = os.Remove(filepath.Join(t.dir, t.name)) // fails where another run's parts lie there, as it should
	return errors.Join(errs...)
}
