//go:build cgo

package native

/*
#include <stdint.h>
#include <stdlib.h>

// From duckdb.h, which lies in a module of its own.
extern void duckdb_vector_assign_string_element_len(void *vector, uint64_t index, const char *text, uint64_t length);

void millraceScalar(void *info, void *input, void *output);
void millraceScanBind(void *info);
void millraceScanInit(void *info);
void millraceScanFill(void *info, void *output);
void millraceForget(void *handle);

// assign_strings copies texts that lie back to back into a vector.
static void assign_strings(void *vector, const int32_t *offsets, const char *data, int64_t n) {
	for (int64_t i = 0; i < n; i++) {
		duckdb_vector_assign_string_element_len(vector, i, data + offsets[i], offsets[i + 1] - offsets[i]);
	}
}

static void *keep(uintptr_t handle) {
	uintptr_t *p = malloc(sizeof(handle));
	*p = handle;
	return p;
}
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"unsafe"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// assignStrings copies texts into a vector: text i is data[offsets[i]:offsets[i+1]].
func assignStrings(v mapping.Vector, offsets []int32, data []byte) {
	if len(offsets) < 2 {
		return
	}
	C.assign_strings(v.Ptr, (*C.int32_t)(unsafe.Pointer(&offsets[0])), (*C.char)(unsafe.Pointer(unsafe.SliceData(data))), C.int64_t(len(offsets)-1))
}

func assignString(v mapping.Vector, i int, b []byte) {
	C.duckdb_vector_assign_string_element_len(v.Ptr, C.uint64_t(i), (*C.char)(unsafe.Pointer(unsafe.SliceData(b))), C.uint64_t(len(b)))
}

// keep makes a pointer that C may hold for a value of Go's; forget, which DuckDB calls, frees it.
func keep(v any) unsafe.Pointer { return C.keep(C.uintptr_t(cgo.NewHandle(v))) }

func kept[T any](p unsafe.Pointer) T { return cgo.Handle(*(*uintptr)(p)).Value().(T) }

var (
	forget   = unsafe.Pointer(C.millraceForget)
	scalar   = unsafe.Pointer(C.millraceScalar)
	scanBind = unsafe.Pointer(C.millraceScanBind)
	scanInit = unsafe.Pointer(C.millraceScanInit)
	scanFill = unsafe.Pointer(C.millraceScanFill)
)

//export millraceForget
func millraceForget(p unsafe.Pointer) {
	cgo.Handle(*(*uintptr)(p)).Delete()
	C.free(p)
}

// A panic must not cross into C: it becomes the query's error.

//export millraceScalar
func millraceScalar(info, input, output unsafe.Pointer) {
	i := mapping.FunctionInfo{Ptr: info}
	if err := guarded(func() error {
		f := kept[*Function](mapping.ScalarFunctionGetExtraInfo(i))
		return f.call(mapping.DataChunk{Ptr: input}, mapping.Vector{Ptr: output})
	}); err != nil {
		mapping.ScalarFunctionSetError(i, err.Error())
	}
}

//export millraceScanBind
func millraceScanBind(info unsafe.Pointer) {
	i := mapping.BindInfo{Ptr: info}
	if err := guarded(func() error { return bindScan(i) }); err != nil {
		mapping.BindSetError(i, err.Error())
	}
}

//export millraceScanInit
func millraceScanInit(info unsafe.Pointer) {
	i := mapping.InitInfo{Ptr: info}
	if err := guarded(func() error { return initScan(i) }); err != nil {
		mapping.InitSetError(i, err.Error())
	}
}

//export millraceScanFill
func millraceScanFill(info, output unsafe.Pointer) {
	i := mapping.FunctionInfo{Ptr: info}
	if err := guarded(func() error { return fillScan(i, mapping.DataChunk{Ptr: output}) }); err != nil {
		mapping.FunctionSetError(i, err.Error())
	}
}

func guarded(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the query engine: %v", p)
		}
	}()
	return f()
}
