package copyrow

import (
	"sync"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Options change what becomes of columns that only one side has.
type Options struct {
	// IgnoreUnknown leaves out columns that are read and not written. By default they are an error.
	IgnoreUnknown bool
}

// Encoder makes rows of one table. It may be used from many goroutines.
type Encoder struct {
	target  *table.Schema
	options Options

	mu    sync.RWMutex              // guards plans
	plans map[*table.Schema]*record // by the schema that rows are read with
}

// New makes the encoder of a table's rows. The error is that of row.CheckSchema.
func New(target *table.Schema, o Options) (*Encoder, error) {
	if err := row.CheckSchema(target); err != nil {
		return nil, err
	}
	return &Encoder{target: target, options: o, plans: map[*table.Schema]*record{}}, nil
}

// Schema is the schema of the rows that are made.
func (e *Encoder) Schema() *table.Schema { return e.target }

// Append appends the bytes of a row, none of which are r's. An error is a *row.Error that names the column: of a kind C where no
// row of r.Schema could be written, of a kind R where it is this one.
func (e *Encoder) Append(buf []byte, r *row.Row) ([]byte, error) {
	p, err := e.plan(r.Schema)
	if err != nil {
		return buf, err
	}
	out, fault := p.append(buf, r.Values)
	if fault != nil {
		return buf, fault
	}
	return out, nil
}

// maxPlans bounds what is kept for schemas that are no longer read: each reader has its own.
const maxPlans = 256

func (e *Encoder) plan(read *table.Schema) (*record, error) {
	e.mu.RLock()
	p := e.plans[read]
	e.mu.RUnlock()
	if p != nil {
		return p, nil
	}
	p, fault := e.compile(read.Fields, e.target.Fields)
	if fault != nil {
		return nil, fault
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.plans) >= maxPlans {
		clear(e.plans)
	}
	e.plans[read] = p
	return p, nil
}
