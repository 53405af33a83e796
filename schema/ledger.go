package schema

import (
	"fmt"
	"slices"
)

// Severity says what a ledger counter means for the trust in a trace.
type Severity string

// Severities, mildest first.
const (
	SeverityInfo  Severity = "info"  // traffic that was counted
	SeverityLoss  Severity = "loss"  // something that the capture does not hold
	SeverityError Severity = "error" // something that should have been readable and was not
)

// Counter is one line of the ledger: how often something was seen or ignored.
type Counter struct {
	Name     string   `json:"name"`
	Severity Severity `json:"severity"`
	Count    int64    `json:"count"`
	Doc      string   `json:"doc"`
	// PartOf names the counter that this one is a share of. The shares of a
	// counter add up to it: nothing is dropped in silence.
	PartOf string `json:"part_of,omitempty"`
}

// Ledger lists everything that a capture saw and what became of it.
type Ledger []Counter

// Check returns an error naming the first counter whose shares do not add up to it.
func (l Ledger) Check() error {
	sums, totals := map[string]int64{}, map[string]int64{}
	for _, c := range l {
		totals[c.Name] += c.Count
		if c.PartOf != "" {
			sums[c.PartOf] += c.Count
		}
	}
	for _, c := range l {
		sum, split := sums[c.Name]
		if split && sum != totals[c.Name] {
			return fmt.Errorf("ledger: %s is %d, but its shares add up to %d", c.Name, totals[c.Name], sum)
		}
	}
	for name := range sums {
		if _, ok := totals[name]; !ok {
			return fmt.Errorf("ledger: shares of %q, which is not counted", name)
		}
	}
	return nil
}

// Get returns the count of a counter, 0 where it does not stand.
func (l Ledger) Get(name string) int64 {
	var n int64
	for _, c := range l {
		if c.Name == name {
			n += c.Count
		}
	}
	return n
}

// Depth returns how many counters a counter is a share of, one inside the other.
func (l Ledger) Depth(c Counter) (depth int) {
	for c.PartOf != "" && depth < len(l) {
		whole := slices.IndexFunc(l, func(w Counter) bool { return w.Name == c.PartOf })
		if whole < 0 {
			break
		}
		c = l[whole]
		depth++
	}
	return depth
}

// Merge returns the sum of two ledgers, in the order of the first.
func (l Ledger) Merge(other Ledger) Ledger {
	out := append(Ledger(nil), l...)
	at := map[string]int{}
	for i, c := range out {
		at[c.Name] = i
	}
	for _, c := range other {
		if i, ok := at[c.Name]; ok {
			out[i].Count += c.Count
			continue
		}
		at[c.Name] = len(out)
		out = append(out, c)
	}
	return out
}
