package objects_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/millrace-dev/millrace/localbq/internal/hostile"
	"github.com/millrace-dev/millrace/localbq/internal/objects"
)

// FuzzFolder opens folders of any content: they are read, or refused with the name of a file.
func FuzzFolder(f *testing.F) {
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	f.Add([]byte(`{"name":"lake"}`), []byte(`{"bucket":"lake","name":"o","size":5,"data":"`+id+`"}`), []byte(`{"id":"`+id+`","object":{"bucket":"lake","name":"u"},"data":"`+id+`","persisted":3,"total":-1}`), []byte("12345"))
	f.Add([]byte(`{"Name":"lake","Lifecycle":[{"Age":1}]}`), []byte(`{}`), []byte(`{"persisted":1152921504606846976,"data":"`+id+`"}`), []byte("5"))
	f.Add([]byte(`null`), []byte(`[]`), []byte(`{"data":"..","persisted":-1}`), []byte{})
	f.Fuzz(func(t *testing.T, bucket, object, upload, floor []byte) {
		dir := t.TempDir()
		write := func(path string, content []byte) {
			path = filepath.Join(dir, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		write("buckets/lake/bucket.json", bucket)
		write("buckets/lake/65c74c15a686187bb6bbf9958f494fc6b80068034a659a9ad44991b08c58f2d2.json", object)
		write("uploads/"+id+".json", upload)
		write("data/"+id, []byte("12345"))
		write("floor", floor)
		hostile.Proportional(t, len(bucket)+len(object)+len(upload)+len(floor), 64, 1<<20, func() {
			s, err := objects.New(objects.Options{Dir: dir})
			if err != nil {
				if !strings.Contains(err.Error(), dir) && !strings.Contains(err.Error(), "upload") {
					t.Errorf("the error names no file: %v", err)
				}
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	})
}
