package row

import "testing"

// TestPlainInstant holds the quick way to the general one: where the quick way answers, both answer the same, whatever
// byte is damaged.
func TestPlainInstant(t *testing.T) {
	for _, good := range []string{"2026-01-02T03:04:05Z", "2026-01-02T03:04:05.678901Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "2024-02-29T12:00:00Z"} {
		if _, ok := plainInstant(good); !ok {
			t.Errorf("%s is left to the general way", good)
		}
		for i := range len(good) {
			for c := range 256 {
				text := []byte(good)
				text[i] = byte(c)
				quick, ok := plainInstant(text)
				if !ok {
					continue
				}
				// A space in front of the zone takes the general way and changes nothing.
				general, err := ParseTimestamp(string(text[:len(text)-1]) + " Z")
				if err != nil || general != quick {
					t.Fatalf("%q: quickly %d, in general %d, %v", text, quick, general, err)
				}
			}
		}
	}
	for _, bad := range []string{"2026-02-29T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T23:60:00Z", "2026-13-01T00:00:00Z", "0000-01-01T00:00:00Z"} {
		if _, ok := plainInstant(bad); ok {
			t.Errorf("%s was taken", bad)
		}
	}
}

func BenchmarkParseTimestamp(b *testing.B) {
	for _, text := range []string{"2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901+00:00"} {
		b.Run(text[26:], func(b *testing.B) {
			data := []byte(text)
			for b.Loop() {
				if _, err := ParseTimestamp(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
