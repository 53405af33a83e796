package duck

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"
)

// Value turns what the driver scans into plain Go values that encoding/json
// writes as people expect: nil, bool, int64, uint64, *big.Int, float64 (finite),
// string, []any and map[string]any. Times become RFC 3339 text with all their
// digits, blobs hexadecimal text; NaN and infinities are no numbers in JSON and
// become text. typeName is DuckDB's name of the column's type.
func Value(v any, typeName string) any {
	switch v := v.(type) {
	case nil, bool, string, int64, uint64, *big.Int:
		return v
	case int8:
		return int64(v)
	case int16:
		return int64(v)
	case int32:
		return int64(v)
	case uint8:
		return uint64(v)
	case uint16:
		return uint64(v)
	case uint32:
		return uint64(v)
	case float32:
		return number(float64(v))
	case float64:
		return number(v)
	case []byte:
		return blob(v, typeName)
	case time.Time:
		return instant(v, typeName)
	case duckdb.Decimal:
		return number(v.Float64())
	case duckdb.Interval:
		return fmt.Sprintf("%d months %d days %d us", v.Months, v.Days, v.Micros)
	case []any:
		return list(v)
	case map[string]any:
		return object(v)
	case duckdb.OrderedMap:
		return orderedMap(v)
	case duckdb.Union:
		return Value(v.Value, "")
	default:
		return fmt.Sprint(v)
	}
}

func number(f float64) any {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Sprint(f)
	}
	return f
}

func blob(b []byte, typeName string) string {
	if typeName == "UUID" && len(b) == 16 {
		return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	}
	return hex.EncodeToString(b)
}

func instant(t time.Time, typeName string) string {
	switch typeName {
	case "DATE":
		return t.Format(time.DateOnly)
	case "TIME":
		return t.Format("15:04:05.999999999")
	default:
		return t.Format(time.RFC3339Nano)
	}
}

func list(values []any) []any {
	out := make([]any, len(values))
	for i, v := range values {
		out[i] = Value(v, "")
	}
	return out
}

func object(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for k, v := range values {
		out[k] = Value(v, "")
	}
	return out
}

func orderedMap(m duckdb.OrderedMap) map[string]any {
	out := map[string]any{}
	values := m.Values()
	for i, k := range m.Keys() {
		out[fmt.Sprint(Value(k, ""))] = Value(values[i], "")
	}
	return out
}
