package avrorow

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/millrace-dev/millrace/bigquery/row"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/internal/avro"
)

// Schemas answers what a registry keeps under the ids that messages carry. Package registry has one that asks over HTTP.
type Schemas interface {
	// Schema is called once for an id as long as it succeeds, from whichever goroutine meets the id first, and blocks the rows
	// behind it. An error that is ErrNoSchema says that there is none, which fails the records that carry the id; any other ends the
	// attempt.
	Schema(ctx context.Context, id uint32) (Registered, error)
}

// Registered is a schema of a registry.
type Registered struct {
	Text string // the Avro schema as JSON
	// References are the schemas that it refers to, and they to others, in an order in which each stands behind those it refers to.
	References []string
	Subject    string // for errors; "" where it is not known
}

// ErrNoSchema is found in an error about an id that no Avro schema of the registry has.
var ErrNoSchema = errors.New("the registry has no such Avro schema")

// MessageSerializer makes rows of messages as Confluent's serializers frame them: the byte 0, the schema's id in four bytes, most
// significant first, and the datum. It implements row.Serializer, and makes no garbage once the schemas are known.
type MessageSerializer[T any] struct {
	shape
	message func(T) []byte
	schemas Schemas
	plans   plansByID
	decodings
}

var _ row.Serializer[[]byte] = (*MessageSerializer[[]byte])(nil)

// NewMessages makes the MessageSerializer of the job's schema. message returns a record's message, which the Serializer only reads
// and does not keep. The schema that a message was written with is asked for once, and resolved into the job's as NewWritten does.
func NewMessages[T any](schema string, message func(T) []byte, schemas Schemas, o Options) (*MessageSerializer[T], error) {
	s, err := newShape(schema, o)
	if err != nil {
		return nil, err
	}
	return &MessageSerializer[T]{shape: s, message: message, schemas: schemas}, nil
}

const framing = 5

var errFraming = badType("expected a message framed as Confluent's serializers do: the byte 0, a schema id of four bytes, and a datum")

// AppendRow appends the row of rec's message. Errors about the message are *row.Error values with the path of the field and the byte
// of the datum; one of the kind D-SCHEMA names the schema's id. An error that is row.ErrUnavailable is the registry's.
func (s *MessageSerializer[T]) AppendRow(buf []byte, _ table.Destination, rec T) ([]byte, error) {
	m := s.message(rec)
	if len(m) < framing || m[0] != 0 {
		return buf, row.At(errFraming, "", 0)
	}
	id := binary.BigEndian.Uint32(m[1:framing])
	p := s.plans.find(id)
	if p == nil {
		var err error
		if p, err = s.plans.make(id, s.ask); err != nil {
			return buf, err
		}
	}
	if p.err != nil {
		return buf, p.err
	}
	return s.append(buf, m[framing:], p.plan)
}

// ask gets a schema and makes the plan. An error is one that may be gone the next time.
func (s *MessageSerializer[T]) ask(id uint32) (*planOf, error) {
	r, err := s.schemas.Schema(context.Background(), id)
	if errors.Is(err, ErrNoSchema) {
		return nil, fault(row.KindResolve, "", fmt.Sprintf("schema %d: %v", id, err))
	}
	if err != nil {
		return nil, fmt.Errorf("%w: schema %d: %w", row.ErrUnavailable, id, err)
	}
	p, err := s.resolveRegistered(r)
	var e *row.Error
	if errors.As(err, &e) {
		named := *e
		named.Msg = "the message's schema, " + describe(r, id) + ", does not become the job's: " + e.Msg
		return &planOf{err: &named}, nil
	}
	return &planOf{plan: p, err: err}, nil
}

func describe(r Registered, id uint32) string {
	if r.Subject == "" {
		return fmt.Sprintf("id %d", id)
	}
	return fmt.Sprintf("id %d of subject %q", id, r.Subject)
}

func (s *shape) resolveRegistered(r Registered) (*plan, error) {
	names := avro.Names{}
	for _, text := range append(r.References, r.Text) {
		w, err := names.Parse(text)
		if err != nil {
			return nil, fault(row.KindResolve, "", "it cannot be read: "+err.Error())
		}
		w.Prepare()
		if text == r.Text {
			return compile(w, s.reader, s.schema.Fields)
		}
	}
	return nil, fault(row.KindResolve, "", "it is empty")
}

// plansByID keeps the plans of the ids that were met. Readers share them without a lock.
type plansByID struct {
	met atomic.Pointer[map[uint32]*planOf]
	mu  sync.Mutex // held while a plan is made
}

func (p *plansByID) find(id uint32) *planOf {
	if met := p.met.Load(); met != nil {
		return (*met)[id]
	}
	return nil
}

func (p *plansByID) make(id uint32, ask func(uint32) (*planOf, error)) (*planOf, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if found := p.find(id); found != nil {
		return found, nil
	}
	made, err := ask(id)
	if err != nil {
		return nil, err
	}
	all := map[uint32]*planOf{}
	if met := p.met.Load(); met != nil {
		maps.Copy(all, *met)
	}
	all[id] = made
	p.met.Store(&all)
	return made, nil
}
