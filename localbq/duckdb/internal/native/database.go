//go:build cgo

package native

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/duckdb/duckdb-go/v2/mapping"
)

// Database is a DuckDB in memory that reaches neither files nor network, and cannot be told to by SQL. Safe for concurrent
// use.
type Database struct {
	db   mapping.Database
	root mapping.Connection // registers functions
}

// Options bound what a database takes.
type Options struct {
	MemoryBytes int64
	Threads     int
}

// Open makes a database.
func Open(o Options) (*Database, error) {
	var config mapping.Config
	if mapping.CreateConfig(&config) == mapping.StateError {
		return nil, errors.New("duckdb: no configuration")
	}
	defer mapping.DestroyConfig(&config)
	for name, value := range map[string]string{
		"access_mode":                            "automatic",
		"enable_external_access":                 "false",
		"autoinstall_known_extensions":           "false",
		"autoload_known_extensions":              "false",
		"allow_community_extensions":             "false",
		"allow_unsigned_extensions":              "false",
		"memory_limit":                           strconv.FormatInt(o.MemoryBytes, 10) + "B",
		"threads":                                strconv.Itoa(o.Threads),
		"default_null_order":                     "nulls_first",
		"preserve_insertion_order":               "true",
		"errors_as_json":                         "false",
		"scalar_subquery_error_on_multiple_rows": "true",
	} {
		if mapping.SetConfig(config, name, value) == mapping.StateError {
			return nil, fmt.Errorf("duckdb: option %s cannot be %s", name, value)
		}
	}
	d := &Database{}
	var message string
	if mapping.OpenExt(":memory:", &d.db, config, &message) == mapping.StateError {
		return nil, fmt.Errorf("duckdb: %s", message)
	}
	if mapping.Connect(d.db, &d.root) == mapping.StateError {
		mapping.Close(&d.db)
		return nil, errors.New("duckdb: no connection")
	}
	return d, nil
}

// Lock forbids SQL to change any option from now on.
func (d *Database) Lock() error { return d.exec("SET lock_configuration = true") }

func (d *Database) exec(sql string) error {
	_, err := d.Query(context.Background(), sql, func([]Vector, int) error { return nil })
	return err
}

// Close frees the database. No query may be running.
func (d *Database) Close() {
	mapping.Disconnect(&d.root)
	mapping.Close(&d.db)
}

// Error is what DuckDB says of a statement.
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// Query runs a statement and hands over its rows, chunk by chunk; it answers the types of the columns. It is interrupted
// when ctx ends, and then answers ctx's cause.
func (d *Database) Query(ctx context.Context, sql string, rows func(columns []Vector, n int) error) ([]Type, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	var conn mapping.Connection
	if mapping.Connect(d.db, &conn) == mapping.StateError {
		return nil, errors.New("duckdb: no connection")
	}
	defer mapping.Disconnect(&conn)
	interrupted := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(interrupted)
		mapping.Interrupt(conn)
	})
	var result mapping.Result
	state := mapping.Query(conn, sql, &result)
	defer mapping.DestroyResult(&result)
	if !stop() {
		<-interrupted // before the connection goes
	}
	if state == mapping.StateError {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		return nil, &Error{mapping.ResultError(&result)}
	}
	types := make([]Type, mapping.ColumnCount(&result))
	for i := range types {
		types[i] = typeOf(mapping.ColumnLogicalType(&result, mapping.IdxT(i)))
	}
	return types, fetch(result, types, rows)
}

func fetch(result mapping.Result, types []Type, rows func([]Vector, int) error) error {
	columns := make([]Vector, len(types))
	for {
		chunk := mapping.FetchChunk(result)
		if chunk.Ptr == nil {
			return nil
		}
		for i, t := range types {
			columns[i] = newVector(mapping.DataChunkGetVector(chunk, mapping.IdxT(i)), t)
		}
		n := int(mapping.DataChunkGetSize(chunk))
		var err error
		if n > 0 {
			err = rows(columns, n)
		}
		mapping.DestroyDataChunk(&chunk)
		if n == 0 || err != nil {
			return err
		}
	}
}

// Check plans a statement and runs nothing.
func (d *Database) Check(sql string) error {
	var conn mapping.Connection
	if mapping.Connect(d.db, &conn) == mapping.StateError {
		return errors.New("duckdb: no connection")
	}
	defer mapping.Disconnect(&conn)
	var statement mapping.PreparedStatement
	defer mapping.DestroyPrepare(&statement)
	if mapping.Prepare(conn, sql, &statement) == mapping.StateError {
		return &Error{mapping.PrepareError(statement)}
	}
	return nil
}
