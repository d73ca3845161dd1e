//go:build cgo

package duckdb

import (
	"math/big"
	"unsafe"

	"github.com/millrace-dev/millrace/localbq/duckdb/internal/bignumeric"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/native"
	"github.com/millrace-dev/millrace/localbq/duckdb/internal/scalar"
)

// kind is how a Go type is held in vectors.
type kind[T any] struct {
	native native.Type
	get    func(v *native.Vector, i int) T
	set    func(v *native.Vector, i int, x T)
}

// fixed is a kind whose values DuckDB holds as Go does.
func fixed[T any](t native.Type) kind[T] {
	return kind[T]{
		t,
		func(v *native.Vector, i int) T { return native.Values[T](v, i+1)[i] },
		func(v *native.Vector, i int, x T) { native.Values[T](v, i+1)[i] = x },
	}
}

var (
	kBool      = fixed[bool](native.Bool)
	kInt       = fixed[int64](native.Int64)
	kFloat     = fixed[float64](native.Float64)
	kDate      = fixed[int32](native.Date)
	kTime      = fixed[int64](native.Time)
	kTimestamp = fixed[int64](native.Timestamp)
	kSpan      = fixed[scalar.Span](native.Interval)

	// kText gives strings that lie in DuckDB's memory: nobody keeps them.
	kText = kind[string]{
		native.Varchar,
		func(v *native.Vector, i int) string {
			b := v.Bytes(i)
			return unsafe.String(unsafe.SliceData(b), len(b))
		},
		func(v *native.Vector, i int, x string) { v.SetBytes(i, unsafe.Slice(unsafe.StringData(x), len(x))) },
	}
	kBlob = kind[[]byte]{
		native.Blob,
		func(v *native.Vector, i int) []byte { return v.Bytes(i) },
		func(v *native.Vector, i int, x []byte) { v.SetBytes(i, x) },
	}
	kNumeric = kind[*big.Int]{
		native.Decimal,
		func(v *native.Vector, i int) *big.Int { return wide(native.Values[native.Int128](v, i+1)[i]) },
		func(v *native.Vector, i int, x *big.Int) { native.Values[native.Int128](v, i+1)[i] = narrow(x) },
	}
	kHuge = kind[*big.Int]{
		native.HugeInt,
		kNumeric.get,
		kNumeric.set,
	}
	kBigNumeric = kind[*big.Int]{
		native.Blob,
		func(v *native.Vector, i int) *big.Int {
			n, err := bignumeric.Decode(v.Bytes(i))
			if err != nil {
				panic(err) // only Encode makes them
			}
			return n
		},
		func(v *native.Vector, i int, x *big.Int) { v.SetBytes(i, bignumeric.Encode(x)) },
	}
)

// wide is an integer of 128 bits.
func wide(n native.Int128) *big.Int {
	x := new(big.Int).SetInt64(n.High)
	x.Lsh(x, 64)
	return x.Add(x, new(big.Int).SetUint64(n.Low))
}

func narrow(x *big.Int) native.Int128 {
	low := new(big.Int).And(x, maxLow)
	return native.Int128{Low: low.Uint64(), High: new(big.Int).Rsh(x, 64).Int64()}
}

var maxLow = new(big.Int).SetUint64(1<<64 - 1)

// outcome sets a result, NULL where there is none. A twin bqs_ makes NULL of an error.
func outcome[R any](k kind[R], out *native.Vector, i int, r R, ok bool, err error, safe bool) error {
	switch {
	case err != nil && !safe:
		return err
	case err != nil || !ok:
		out.SetNull(i)
	default:
		k.set(out, i, r)
	}
	return nil
}

// twins are a function bq_name that fails and one bqs_name that answers NULL instead.
func twins(name string, params []native.Type, result native.Type, run func(safe bool) func([]native.Vector, int, *native.Vector) error) []native.Function {
	return []native.Function{
		{Name: "bq_" + name, Params: params, Result: result, Run: run(false)},
		{Name: "bqs_" + name, Params: params, Result: result, Run: run(true)},
	}
}

// each runs a function for every row without a NULL among its arguments.
func each(n int, out *native.Vector, f func(i int) error) error {
	for i := range n {
		if out.Null(i) {
			continue
		}
		if err := f(i); err != nil {
			return err
		}
	}
	return nil
}

// map1, map2, … make functions of Go functions of one, two, … arguments.

func map1[A, R any](name string, a kind[A], r kind[R], f func(A) (R, error)) []native.Function {
	return twins(name, []native.Type{a.native}, r.native, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, err := f(a.get(&args[0], i))
				return outcome(r, out, i, v, true, err, safe)
			})
		}
	})
}

func map2[A, B, R any](name string, a kind[A], b kind[B], r kind[R], f func(A, B) (R, error)) []native.Function {
	return twins(name, []native.Type{a.native, b.native}, r.native, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, err := f(a.get(&args[0], i), b.get(&args[1], i))
				return outcome(r, out, i, v, true, err, safe)
			})
		}
	})
}

func map3[A, B, C, R any](name string, a kind[A], b kind[B], c kind[C], r kind[R], f func(A, B, C) (R, error)) []native.Function {
	return twins(name, []native.Type{a.native, b.native, c.native}, r.native, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, err := f(a.get(&args[0], i), b.get(&args[1], i), c.get(&args[2], i))
				return outcome(r, out, i, v, true, err, safe)
			})
		}
	})
}

func map4[A, B, C, D, R any](name string, a kind[A], b kind[B], c kind[C], d kind[D], r kind[R], f func(A, B, C, D) (R, bool, error)) []native.Function {
	return twins(name, []native.Type{a.native, b.native, c.native, d.native}, r.native, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, ok, err := f(a.get(&args[0], i), b.get(&args[1], i), c.get(&args[2], i), d.get(&args[3], i))
				return outcome(r, out, i, v, ok, err, safe)
			})
		}
	})
}

// maybe1 is map1 for a function that answers false for NULL.
func maybe1[A, R any](name string, a kind[A], r kind[R], f func(A) (R, bool, error)) []native.Function {
	return twins(name, []native.Type{a.native}, r.native, func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			return each(n, out, func(i int) error {
				v, ok, err := f(a.get(&args[0], i))
				return outcome(r, out, i, v, ok, err, safe)
			})
		}
	})
}

// whole makes a function of four arguments that has an answer always.
func whole[A, B, C, D, R any](f func(A, B, C, D) (R, error)) func(A, B, C, D) (R, bool, error) {
	return func(a A, b B, c C, d D) (R, bool, error) {
		v, err := f(a, b, c, d)
		return v, true, err
	}
}

// lists makes a function whose results are lists, which are written together when all are known. A nil list is NULL.
func lists[R any](name string, params []native.Type, r kind[R], f func(args []native.Vector, i int) ([]R, error)) []native.Function {
	return twins(name, params, native.ListOf(r.native), func(safe bool) func([]native.Vector, int, *native.Vector) error {
		return func(args []native.Vector, n int, out *native.Vector) error {
			var all []R
			spans := native.Values[native.Span](out, n)
			for i := range n {
				spans[i] = native.Span{Offset: uint64(len(all))}
				if out.Null(i) {
					continue
				}
				list, err := f(args, i)
				if err != nil && !safe {
					return err
				}
				if list == nil || err != nil {
					out.SetNull(i)
					continue
				}
				all = append(all, list...)
				spans[i].Length = uint64(len(list))
			}
			elements := out.MakeElements(len(all))
			for i, x := range all {
				r.set(&elements, i, x)
			}
			return nil
		}
	})
}
