package added

import (
	"errors"
	"fmt"
	"sync"

	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
)

// Serializer appends computed columns to the rows of another serializer. It implements row.Serializer.
type Serializer[T any] struct {
	inner  row.Serializer[T]
	fields []Field[T]
	pseudo []Field[T] // in the descriptor, not in the schema

	mu    sync.RWMutex // guards plans
	plans map[table.Destination]*plan
}

var _ row.Serializer[int] = (*Serializer[int])(nil)

// New makes a Serializer that appends fields, in their order, to the rows of inner. Every fault of the declarations is
// reported at once, as *row.Error of the kind C-FIELD. A column of inner with the name of an added one is found when the
// schema of a destination is first asked for.
func New[T any](inner row.Serializer[T], fields ...Field[T]) (*Serializer[T], error) {
	if len(fields) == 0 {
		return nil, &row.Error{Kind: row.KindField, Offset: -1, Msg: "no column to add, expected at least one"}
	}
	return wrap(inner, fields, nil)
}

func wrap[T any](inner row.Serializer[T], fields, pseudo []Field[T]) (*Serializer[T], error) {
	if inner == nil {
		return nil, &row.Error{Kind: row.KindField, Offset: -1, Msg: "columns are added to the rows of a serializer, which is missing"}
	}
	var faults []error
	seen := map[string]bool{}
	for i := range fields {
		f := &fields[i]
		if err := f.check(); err != nil {
			faults = append(faults, err)
			continue
		}
		key := table.FoldName(f.name)
		if seen[key] {
			faults = append(faults, &row.Error{Kind: row.KindField, Path: f.name, Offset: -1, Msg: "added twice: BigQuery ignores case in names"})
		}
		seen[key] = true
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Serializer[T]{inner: inner, fields: fields, pseudo: pseudo, plans: map[table.Destination]*plan{}}, nil
}

// Schema is the inner serializer's schema and the added columns behind it.
func (s *Serializer[T]) Schema(dst table.Destination) (*table.Schema, error) {
	p, err := s.plan(dst)
	if err != nil {
		return nil, err
	}
	return p.schema, nil
}

// Descriptor is the inner serializer's message with a field for each added column.
func (s *Serializer[T]) Descriptor(dst table.Destination) (*descriptorpb.DescriptorProto, error) {
	p, err := s.plan(dst)
	if err != nil {
		return nil, err
	}
	return p.descriptor, nil
}

// Fingerprint is the inner serializer's: what is added never changes.
func (s *Serializer[T]) Fingerprint(dst table.Destination) uint64 { return s.inner.Fingerprint(dst) }

// AppendRow appends the inner serializer's row, and the added columns to it. The inner serializer's errors, row.ErrSkip
// among them, come back as they are.
func (s *Serializer[T]) AppendRow(buf []byte, dst table.Destination, rec T) ([]byte, error) {
	// The plan comes first: columns that collide are no fault of the record.
	p, err := s.plan(dst)
	if err != nil {
		return buf, err
	}
	out, err := s.inner.AppendRow(buf, dst, rec)
	if err != nil {
		return buf, err
	}
	if p.fingerprint != 0 {
		// The record itself may have changed the schema.
		if p, err = s.plan(dst); err != nil {
			return buf, err
		}
	}
	for i := range s.fields {
		if out, err = s.fields[i].append(out, p.tags[i], rec); err != nil {
			return buf, err
		}
	}
	for i := range s.pseudo {
		if out, err = s.pseudo[i].append(out, p.tags[len(s.fields)+i], rec); err != nil {
			return buf, err
		}
	}
	return out, nil
}

func (f *Field[T]) append(buf, tag []byte, rec T) ([]byte, error) {
	out, present, err := f.form(buf, tag, rec)
	if err == nil && (present || f.policy == Nullable) {
		return out, nil
	}
	return buf, f.failure(err)
}

// failure is the error of a field that failed, or has no value and must have one when err is nil.
func (f *Field[T]) failure(err error) error {
	var p *provided
	switch {
	case err == nil:
		return &row.Error{Kind: row.KindRequired, Path: f.name, Offset: -1, Msg: "no value for an added column that is Required"}
	case errors.As(err, &p):
		return &providerError{&row.Error{Kind: row.KindProvider, Path: f.name, Offset: -1, Msg: p.Error()}, p.cause}
	}
	return row.At(err, f.name, -1)
}

// providerError is an error of a field's function: a *row.Error and the function's own.
type providerError struct {
	field *row.Error
	cause error
}

func (e *providerError) Error() string   { return e.field.Error() }
func (e *providerError) Unwrap() []error { return []error{e.field, e.cause} }

// plan is what was derived for a destination, made anew when the inner serializer's fingerprint has changed.
func (s *Serializer[T]) plan(dst table.Destination) (*plan, error) {
	// The fingerprint is read first: a change in between then costs a plan too many instead of one missed.
	fingerprint := s.inner.Fingerprint(dst)
	s.mu.RLock()
	p := s.plans[dst]
	s.mu.RUnlock()
	if p != nil && p.fingerprint == fingerprint {
		return p, nil
	}
	p, err := s.derive(dst, fingerprint)
	if err != nil {
		return nil, fmt.Errorf("columns added to %s: %w", dst, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plans[dst] = p
	return p, nil
}
