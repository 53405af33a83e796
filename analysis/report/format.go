package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"tokentrace/analysis"
)

// missing is how a value that is not there is written.
const missing = "-"

// unitOf returns the unit in which a duration in ns reads best.
func unitOf(ns float64) (name string, size float64) {
	switch a := math.Abs(ns); {
	case a >= 1e9:
		return "s", 1e9
	case a >= 1e6:
		return "ms", 1e6
	case a >= 1e3:
		return "µs", 1e3
	default:
		return "ns", 1
	}
}

// digits writes a number with three significant digits and no exponent.
func digits(v float64) string {
	if v == 0 {
		return "0"
	}
	decimals := 2 - int(math.Floor(math.Log10(math.Abs(v))))
	return strconv.FormatFloat(v, 'f', max(0, min(decimals, 6)), 64)
}

// duration writes a duration of ns.
func duration(ns float64) string {
	name, size := unitOf(ns)
	return digits(ns/size) + " " + name
}

func optDuration(ns *int64) string {
	if ns == nil {
		return missing
	}
	return duration(float64(*ns))
}

// span writes the interval of a duration in the unit of the duration itself.
func span(e analysis.Estimate) string {
	if e.Value == nil {
		return ""
	}
	_, size := unitOf(*e.Value)
	end := func(v *float64, none string) string {
		if v == nil {
			return none
		}
		return digits(*v / size)
	}
	if e.Lo == nil && e.Hi == nil {
		return ""
	}
	return end(e.Lo, "?") + "–" + end(e.Hi, "∞")
}

// plainSpan writes an interval of a number that has no other unit.
func plainSpan(e analysis.Estimate) string {
	end := func(v *float64) string {
		if v == nil {
			return "?"
		}
		return digits(*v)
	}
	if e.Lo == nil && e.Hi == nil {
		return ""
	}
	return end(e.Lo) + "–" + end(e.Hi)
}

// count writes a whole number with thin separators.
func count(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return sign + s
}

func optCount(n *int64) string {
	if n == nil {
		return missing
	}
	return count(*n)
}

func optText(s *string) string {
	if s == nil {
		return missing
	}
	return *s
}

// instant writes an instant in UTC to the millisecond.
func instant(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000")
}

func optInstant(ns *int64) string {
	if ns == nil {
		return missing
	}
	return instant(*ns)
}

// bytesText writes a size.
func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if i == 0 {
		return count(n) + " B"
	}
	return digits(v) + " " + units[i]
}

func percent(share float64) string { return digits(100*share) + " %" }

// levelName writes a quantile's level as people say it: p50, p99.9.
func levelName(p float64) string {
	return "p" + strconv.FormatFloat(math.Round(p*1e6)/1e4, 'f', -1, 64)
}

// shorten keeps a text within n runes by taking out its middle.
func shorten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	runes := []rune(s)
	if len(runes) <= n {
		return s
	}
	head := (n - 1) / 2
	return string(runes[:head]) + "…" + string(runes[len(runes)-(n-1-head):])
}

func plural(n int64, one, many string) string {
	if n == 1 {
		return fmt.Sprintf("%s %s", count(n), one)
	}
	return fmt.Sprintf("%s %s", count(n), many)
}
