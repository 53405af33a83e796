package schema

import "encoding/json"

// Opt is a value that may be missing. Null is not zero: a boundary that was
// not seen, a count that nobody sent, is None and becomes NULL on disk.
type Opt[T any] struct {
	V  T
	OK bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, OK: true} }

// None returns a missing value.
func None[T any]() Opt[T] { return Opt[T]{} }

// SetOnce keeps the first value it is given.
func (o *Opt[T]) SetOnce(v T) {
	if !o.OK {
		*o = Some(v)
	}
}

// Or returns the value, or def where it is missing.
func (o Opt[T]) Or(def T) T {
	if o.OK {
		return o.V
	}
	return def
}

// MarshalJSON writes the value, or null.
func (o Opt[T]) MarshalJSON() ([]byte, error) {
	if !o.OK {
		return []byte("null"), nil
	}
	return json.Marshal(o.V)
}

// Since returns to - from in nanoseconds, missing when either is.
func Since(to, from Opt[int64]) Opt[int64] {
	if !to.OK || !from.OK {
		return Opt[int64]{}
	}
	return Some(to.V - from.V)
}
