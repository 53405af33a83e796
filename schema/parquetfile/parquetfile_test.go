package parquetfile

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tokentrace/schema"
)

// randomRows fills every field of n rows, missing values included.
func randomRows[Row any](rng *rand.Rand, n int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		v := reflect.ValueOf(&rows[i]).Elem()
		for f := range v.NumField() {
			fill(rng, v.Field(f))
		}
	}
	return rows
}

func fill(rng *rand.Rand, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct: // Opt
		if ok := rng.IntN(3) > 0; ok {
			v.Field(1).SetBool(true)
			fill(rng, v.Field(0))
		}
	case reflect.Int64, reflect.Int32:
		v.SetInt(rng.Int64() >> rng.IntN(64))
	case reflect.Float64:
		v.SetFloat(rng.NormFloat64())
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Uint16:
		v.SetUint(rng.Uint64() & 0xffff)
	case reflect.String:
		v.SetString([]string{"", "a", "é漢🙂", strings.Repeat("long ", 100), fmt.Sprint(rng.Int64())}[rng.IntN(5)])
	}
}

func write[Row any](t testing.TB, path string, groups ...[]Row) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := NewWriter[Row](f, "test")
	if err != nil {
		t.Fatal(err)
	}
	for _, rows := range groups {
		if err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestRoundTrip writes and reads rows of every table, few and many, with more
// different texts than an index holds.
func TestRoundTrip(t *testing.T) {
	t.Run("requests", roundTrip[schema.Request])
	t.Run("events", roundTrip[schema.Event])
	t.Run("connections", roundTrip[schema.Connection])
}

func roundTrip[Row any](t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, 2, 1000, 3 * maxDistinct} {
		path := filepath.Join(t.TempDir(), "x.parquet")
		first, second := randomRows[Row](rng, n), randomRows[Row](rng, n/2)
		write(t, path, first, second, nil)
		got, err := ReadFile[Row](path)
		if err != nil {
			t.Fatal(err)
		}
		want := append(first, second...)
		if len(got) != len(want) || n > 0 && !reflect.DeepEqual(want, got) {
			t.Fatalf("%d rows read back differ: %s", n, cmp.Diff(want[:min(2, len(want))], got[:min(2, len(got))]))
		}
	}
}

func TestReadErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.parquet")
	if _, err := ReadFile[schema.Event](path); err == nil {
		t.Error("a missing file is read")
	}
	write(t, path, []schema.Event{{}})
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile[schema.Connection](path); err == nil || !strings.Contains(err.Error(), "no column") {
		t.Errorf("another table is read: %v", err)
	}
	if err := os.WriteFile(path, raw[:len(raw)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile[schema.Event](path); err == nil {
		t.Error("half a file is read")
	}
	newer := bytes.Replace(raw, []byte(metaFormat+"\x18\x011"), []byte(metaFormat+"\x18\x019"), 1)
	if bytes.Equal(newer, raw) {
		t.Fatal("the format version is not where the test looks for it")
	}
	if err := os.WriteFile(path, newer, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile[schema.Event](path); err == nil || !strings.Contains(err.Error(), "update") {
		t.Errorf("a newer format: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteError(t *testing.T) {
	w, err := NewWriter[schema.Event](failing{}, "events")
	if err == nil {
		err = errors.Join(w.Write([]schema.Event{{}}), w.Close())
	}
	if err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("error %v", err)
	}
}

func BenchmarkWriteEvents(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	rows := make([]schema.Event, 1<<15)
	at := int64(1_750_000_000_000_000_000)
	for i := range rows {
		at += int64(rng.IntN(2000)) * 1000
		rows[i] = schema.Event{
			Run: "k3v9m2p7", Request: int64(rng.IntN(64)), Index: int32(rng.IntN(300)), At: at, Kinds: schema.KindContent, TokenBearing: true,
			Gap: schema.Some(int64(20e6 + 1000*rng.IntN(4000))), TextBytes: int32(1 + rng.IntN(7)),
		}
	}
	w, err := NewWriter[schema.Event](discard{}, "events")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(rows)) * int64(reflect.TypeFor[schema.Event]().Size()))
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(rows); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(len(rows))*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
