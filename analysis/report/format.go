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
	return signed(strconv.FormatFloat(v, 'f', max(0, min(decimals, 6)), 64))
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
	unit, size := unitOf(*e.Value)
	return interval(e, size, " "+unit)
}

// interval writes an interval with its unit. The word between its ends keeps it
// from being read as a minus sign.
func interval(e analysis.Estimate, size float64, unit string) string {
	switch {
	case e.Lo == nil && e.Hi == nil:
		return ""
	case e.Lo == nil:
		return "up to " + digits(*e.Hi/size) + unit
	case e.Hi == nil:
		return digits(*e.Lo/size) + unit + " or more"
	default:
		return digits(*e.Lo/size) + " to " + digits(*e.Hi/size) + unit
	}
}

// count writes a whole number without separators: it can be pasted anywhere.
func count(n int64) string { return signed(strconv.FormatInt(n, 10)) }

// signed writes a number's minus sign as one, which no range's dash looks like.
func signed(s string) string {
	if digits, negative := strings.CutPrefix(s, "-"); negative {
		return "−" + digits
	}
	return s
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

// fineInstant writes an instant in UTC to the microsecond.
func fineInstant(ns int64) string {
	return time.Unix(0, ns).UTC().Format("2006-01-02 15:04:05.000000")
}

func optFineInstant(ns *int64) string {
	if ns == nil {
		return missing
	}
	return fineInstant(*ns)
}

// optMs writes a duration of ns in ms to the microsecond, without its unit.
func optMs(ns *int64) string {
	if ns == nil {
		return missing
	}
	return signed(strconv.FormatFloat(float64(*ns)/1e6, 'f', 3, 64))
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
