package protorow

import (
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// printer prints messages as protobuf's JSON, without white space.
type printer struct {
	kind     protoreflect.MessageType
	resolver AnyResolver // nil finds nothing
}

// nothing finds no type and no extension, whatever is linked into the program.
var nothing = new(protoregistry.Types)

// append appends the JSON text of a message, with its length.
func (p *printer) append(buf, data []byte) ([]byte, *row.Error) {
	m := p.kind.New().Interface()
	if !read(data, m) {
		return buf, unprintable(whyNoMessage)
	}
	find := finder{AnyResolver: p.resolver}
	if p.resolver == nil {
		find.AnyResolver = nothing
	}
	text, err := protojson.MarshalOptions{AllowPartial: true, Resolver: &find}.Marshal(m)
	switch {
	case err != nil && find.missing != "":
		return buf, unprintable("it holds a google.protobuf.Any of " + find.missing + ": expected a type that the AnyResolver finds")
	case err != nil:
		return buf, unprintable(whyNoForm)
	}
	buf, start := row.BeginLength(buf)
	return row.EndLength(appendCompact(buf, text), start), nil
}

// What the errors of printing say.
const (
	whyNoMessage = "it is no message of its type, or has text that is not valid UTF-8"
	whyNoForm    = "JSON knows no NaN in a google.protobuf.Value, no Value of no kind, and no Timestamp, Duration or FieldMask outside of its bounds"
)

// read fills m, and answers false where data is no message of its type. The library panics when it reads into a
// dynamic message an entry of a map whose key is there twice, the second time with another wire type (protobuf-go 1.36.12),
// and data may be anything.
func read(data []byte, m proto.Message) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return proto.UnmarshalOptions{AllowPartial: true, Resolver: nothing}.Unmarshal(data, m) == nil
}

func unprintable(why string) *row.Error {
	return &row.Error{Kind: row.KindPrint, Offset: -1, Msg: "the message has no JSON form: " + why}
}

// finder remembers the type that was not found.
type finder struct {
	AnyResolver
	missing string
}

func (f *finder) FindMessageByURL(url string) (protoreflect.MessageType, error) {
	t, err := f.AnyResolver.FindMessageByURL(url)
	if err == nil {
		return t, nil
	}
	// A record's contents are not quoted; the name of a type is none.
	name := protoreflect.FullName(url[strings.LastIndexByte(url, '/')+1:])
	if f.missing = "a type without a name"; name.IsValid() && len(name) <= 200 {
		f.missing = string(name)
	}
	return nil, err
}

// appendCompact appends JSON text without the white space around its tokens, which protobuf's printer varies.
func appendCompact(buf, text []byte) []byte {
	quoted := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case quoted && c == '\\':
			buf = append(buf, c, text[i+1])
			i++
			continue
		case c == '"':
			quoted = !quoted
		case !quoted && c == ' ':
			continue
		}
		buf = append(buf, c)
	}
	return buf
}
