package bigquery

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/stream"
)

// Resolver says which table a record is written to. One Resolver serves all lanes at the same time.
//
// An *Unroutable error, however deep, hands the record to the failure policy; any other error ends the job, as does the
// zero Destination (ErrNilResolution) or one that cannot be a table's name.
type Resolver[T any] interface {
	Resolve(ctx context.Context, r *stream.Record[T]) (table.Destination, error)
}

// ResolverFunc is a function as a Resolver.
type ResolverFunc[T any] func(ctx context.Context, r *stream.Record[T]) (table.Destination, error)

// Resolve calls f.
func (f ResolverFunc[T]) Resolve(ctx context.Context, r *stream.Record[T]) (table.Destination, error) {
	return f(ctx, r)
}

// To is the Resolver that writes every record to one table.
func To[T any](dst table.Destination) Resolver[T] { return to[T]{dst} }

type to[T any] struct{ dst table.Destination }

func (t to[T]) Resolve(context.Context, *stream.Record[T]) (table.Destination, error) {
	return t.dst, nil
}

// ErrNilResolution is found in the error of a job whose resolver answered without a table and without an error.
var ErrNilResolution = errors.New("destination resolver returned no table")

// Unroutable is the error of a record that belongs to no table.
type Unroutable struct {
	Field  string // what the record was routed by, "" where that is no one field
	Value  string // that field's value, as far as there is one
	Reason string // why it leads to no table
	Err    error  // the cause, nil where there is none
}

func (u *Unroutable) Error() string {
	switch {
	case u.Field == "":
		return u.Reason
	case u.Err != nil || u.Value == "":
		return fmt.Sprintf("field %q %s", u.Field, u.Reason)
	}
	return fmt.Sprintf("field %q is %s, which %s", u.Field, shortQuote(u.Value), u.Reason)
}

// shortQuote quotes the beginning of a value, which may be of any length.
func shortQuote(s string) string {
	const most = 80
	if r := []rune(s); len(r) > most {
		return strconv.Quote(string(r[:most])) + "…"
	}
	return strconv.Quote(s)
}

func (u *Unroutable) Unwrap() error { return u.Err }

// perLane is a Resolver that gives each lane one of its own, which may remember.
type perLane[T any] interface{ lane() Resolver[T] }

func laneResolver[T any](r Resolver[T]) Resolver[T] {
	if p, ok := r.(perLane[T]); ok {
		return p.lane()
	}
	return r
}
