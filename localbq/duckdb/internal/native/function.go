//go:build cgo

package native

import (
	"fmt"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Function is a scalar function written in Go.
type Function struct {
	Name   string
	Params []Type
	// Variadic takes any number of further arguments of any type.
	Variadic bool
	Result   Type
	// SeesNulls calls Run for rows with a NULL argument too; otherwise they are NULL and Run skips them by Vector.Null.
	SeesNulls bool
	// Volatile answers something else each time.
	Volatile bool
	// Run fills out with n results. It may run in several threads at once.
	Run func(args []Vector, n int, out *Vector) error
}

// Register makes functions callable; those of one name are told apart by the types of their arguments.
func (d *Database) Register(functions []Function) error {
	sets := map[string]mapping.ScalarFunctionSet{}
	for i := range functions {
		f := &functions[i]
		set, ok := sets[f.Name]
		if !ok {
			set = mapping.CreateScalarFunctionSet(f.Name)
			sets[f.Name] = set
			defer mapping.DestroyScalarFunctionSet(&set)
		}
		if err := f.addTo(set); err != nil {
			return err
		}
	}
	for name, set := range sets {
		if mapping.RegisterScalarFunctionSet(d.root, set) == mapping.StateError {
			return fmt.Errorf("duckdb: function %s cannot be registered", name)
		}
	}
	return nil
}

func (f *Function) addTo(set mapping.ScalarFunctionSet) error {
	s := mapping.CreateScalarFunction()
	defer mapping.DestroyScalarFunction(&s)
	mapping.ScalarFunctionSetName(s, f.Name)
	for _, p := range f.Params {
		l := p.logical()
		mapping.ScalarFunctionAddParameter(s, l)
		mapping.DestroyLogicalType(&l)
	}
	if f.Variadic {
		l := Any.logical()
		mapping.ScalarFunctionSetVarargs(s, l)
		mapping.DestroyLogicalType(&l)
	}
	result := f.Result.logical()
	mapping.ScalarFunctionSetReturnType(s, result)
	mapping.DestroyLogicalType(&result)
	if f.SeesNulls {
		mapping.ScalarFunctionSetSpecialHandling(s)
	}
	if f.Volatile {
		mapping.ScalarFunctionSetVolatile(s)
	}
	mapping.ScalarFunctionSetExtraInfo(s, keep(f), forget)
	mapping.ScalarFunctionSetFunction(s, scalar)
	if mapping.AddScalarFunctionToSet(set, s) == mapping.StateError {
		return fmt.Errorf("duckdb: function %s has two forms for the same arguments", f.Name)
	}
	return nil
}

func (f *Function) call(input mapping.DataChunk, output mapping.Vector) error {
	n := int(mapping.DataChunkGetSize(input))
	args := make([]Vector, mapping.DataChunkGetColumnCount(input))
	for i := range args {
		raw := mapping.DataChunkGetVector(input, mapping.IdxT(i))
		args[i] = newVector(raw, typeOf(mapping.VectorGetColumnType(raw)))
	}
	out := newVector(output, f.Result)
	if !f.SeesNulls {
		for i := range n {
			for k := range args {
				if args[k].Null(i) {
					out.SetNull(i)
				}
			}
		}
	}
	return f.Run(args, n, &out)
}
