//go:build cgo

package native

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Table is what a scan reads: batches with these columns. Nobody changes the batches while a scan may run.
type Table struct {
	Columns []Column
	Rows    int64
	// Batches is called for every scan, before its first row is read.
	Batches func() ([]arrow.RecordBatch, error)
}

// Column is a column of a table.
type Column struct {
	Name string
	Type Type
}

// Scans are tables that SQL reads as scan(id).
type Scans struct {
	mu     sync.Mutex // guards the fields below
	tables map[int64]*Table
	last   int64
}

// RegisterScans makes a table function of that name.
func (d *Database) RegisterScans(name string) (*Scans, error) {
	s := &Scans{tables: map[int64]*Table{}}
	f := mapping.CreateTableFunction()
	defer mapping.DestroyTableFunction(&f)
	mapping.TableFunctionSetName(f, name)
	id := Int64.logical()
	mapping.TableFunctionAddParameter(f, id)
	mapping.DestroyLogicalType(&id)
	mapping.TableFunctionSetExtraInfo(f, keep(s), forget)
	mapping.TableFunctionSetBind(f, scanBind)
	mapping.TableFunctionSetInit(f, scanInit)
	mapping.TableFunctionSetFunction(f, scanFill)
	mapping.TableFunctionSupportsProjectionPushdown(f, true)
	if mapping.RegisterTableFunction(d.root, f) == mapping.StateError {
		return nil, fmt.Errorf("duckdb: table function %s cannot be registered", name)
	}
	return s, nil
}

// Add publishes a table until Remove, and answers its id.
func (s *Scans) Add(t *Table) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.tables[s.last] = t
	return s.last
}

// Remove forgets a table. A scan that has begun goes on.
func (s *Scans) Remove(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.tables, id)
}

func bindScan(info mapping.BindInfo) error {
	s := kept[*Scans](mapping.BindGetExtraInfo(info))
	param := mapping.BindGetParameter(info, 0)
	id := mapping.GetInt64(param)
	mapping.DestroyValue(&param)
	s.mu.Lock()
	t := s.tables[id]
	s.mu.Unlock()
	if t == nil {
		return fmt.Errorf("there is no table %d to scan", id)
	}
	columns := t.Columns
	if len(columns) == 0 {
		columns = []Column{{"none", Bool}} // DuckDB has no table without columns; this one is never read
	}
	for _, column := range columns {
		l := column.Type.logical()
		mapping.BindAddResultColumn(info, column.Name, l)
		mapping.DestroyLogicalType(&l)
	}
	mapping.BindSetCardinality(info, mapping.IdxT(t.Rows), true)
	mapping.BindSetBindData(info, keep(t), forget)
	return nil
}

// scan is one reading of a table by any number of threads.
type scan struct {
	columns []int  // of the table, by place in DuckDB's chunks
	types   []Type // of those
	pieces  []piece
	next    atomic.Int64
}

// piece is as many rows of a batch as DuckDB takes at once.
type piece struct {
	batch    arrow.RecordBatch
	from, to int64
}

func initScan(info mapping.InitInfo) error {
	t := kept[*Table](mapping.InitGetBindData(info))
	s := &scan{}
	for i := range mapping.InitGetColumnCount(info) {
		column := int(mapping.InitGetColumnIndex(info, i))
		if column < 0 || column >= len(t.Columns) {
			column = -1 // of no table: only rows are counted
			s.types = append(s.types, Int64)
		} else {
			s.types = append(s.types, t.Columns[column].Type)
		}
		s.columns = append(s.columns, column)
	}
	batches, err := t.Batches()
	if err != nil {
		return err
	}
	size := int64(mapping.VectorSize())
	for _, b := range batches {
		for from := int64(0); from < b.NumRows(); from += size {
			s.pieces = append(s.pieces, piece{b, from, min(from+size, b.NumRows())})
		}
	}
	// A thread for every 64 pieces: a small table is read in order.
	mapping.InitSetMaxThreads(info, mapping.IdxT(1+len(s.pieces)/64))
	mapping.InitSetInitData(info, keep(s), forget)
	return nil
}

func fillScan(info mapping.FunctionInfo, output mapping.DataChunk) error {
	s := kept[*scan](mapping.FunctionGetInitData(info))
	i := s.next.Add(1) - 1
	if i >= int64(len(s.pieces)) {
		mapping.DataChunkSetSize(output, 0)
		return nil
	}
	p := s.pieces[i]
	for place, column := range s.columns {
		v := newVector(mapping.DataChunkGetVector(output, mapping.IdxT(place)), s.types[place])
		if column < 0 {
			continue
		}
		if err := fill(&v, p.batch.Column(column), int(p.from), int(p.to)); err != nil {
			return err
		}
	}
	mapping.DataChunkSetSize(output, mapping.IdxT(p.to-p.from))
	return nil
}
