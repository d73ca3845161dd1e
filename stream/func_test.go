package stream

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// apply runs a Func on one record, and lists what it emitted with the row it came from.
func apply(f Func[string, string], in Record[string]) (out []string, err error) {
	err = f(context.Background(), &in, func(r *Record[string]) error {
		out = append(out, r.Value+" "+r.At.String())
		if r.Value == "full" {
			return errors.New("the writer is full")
		}
		return nil
	})
	return out, err
}

// split emits each word of a record as one, without saying where it was read.
func split(_ context.Context, in *Record[string], emit func(*Record[string]) error) error {
	for word := range strings.FieldsSeq(in.Value) {
		if err := emit(&Record[string]{Value: word}); err != nil {
			return err
		}
	}
	return nil
}

// loud skips "skip", refuses "bad", and shouts.
func loud(_ context.Context, in *Record[string], emit func(*Record[string]) error) error {
	switch in.Value {
	case "skip":
		return ErrSkip
	case "bad":
		return &RecordError{errors.New("it is bad")}
	case "full":
		return emit(in)
	}
	return emit(&Record[string]{Value: strings.ToUpper(in.Value), At: in.At})
}

func TestThen(t *testing.T) {
	at := Position{Split: "s", Row: 7}
	for in, want := range map[string]struct {
		out []string
		err string
	}{
		"a b":      {[]string{"A s@7", "B s@7"}, ""},
		"a skip b": {[]string{"A s@7", "B s@7"}, ""},
		"skip":     {nil, ""},
		"":         {nil, ""},
		"a bad b":  {[]string{"A s@7"}, "it is bad"},
		"a full b": {[]string{"A s@7", "full s@7"}, "the writer is full"},
	} {
		out, err := apply(Then(split, loud), Record[string]{Value: in, At: at})
		if diff := cmp.Diff(want.out, out); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
		if (err == nil) != (want.err == "") || err != nil && err.Error() != want.err {
			t.Errorf("%q: %v, want %q", in, err, want.err)
		}
	}
}

func TestThrough(t *testing.T) {
	out, err := apply(Through[string], Record[string]{Value: "a", At: Position{Split: "s", Row: 1}})
	if err != nil || cmp.Diff([]string{"a s@1"}, out) != "" {
		t.Errorf("%v, %v", out, err)
	}
}
