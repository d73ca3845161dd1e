package objects

import (
	"crypto/rand"
	"errors"
	"io"
	"sync"
)

// medium is where a store keeps things: memory or a folder. Calls that save are made one at a time.
type medium interface {
	// create makes a place for bytes, under a name of its own.
	create() (data, error)
	// open opens bytes for reading.
	open(name string) (data, error)
	// drop forgets bytes. Who has them open goes on reading them.
	drop(name string) error

	saveBucket(*Bucket) error
	removeBucket(name string) error
	// saveObject makes an object exist, durably; its bytes have been synced.
	saveObject(*Object) error
	removeObject(*Object) error
	saveUpload(*session) error
	// removeUpload forgets an upload, which need not be there; its bytes stay.
	removeUpload(id string) error
	// saveFloor keeps a number that no generation to come may be below.
	saveFloor(generation int64) error
}

// data is bytes that grow at the end until they are published.
type data interface {
	io.Writer
	io.ReaderAt
	io.Closer
	// name is what open and drop know it by.
	name() string
	// sync makes what has been written outlive the process, and the machine where that was asked for.
	sync() error
	// truncate cuts it to a length.
	truncate(size int64) error
}

// memory is a medium that ends with the process.
type memory struct {
	mu    sync.Mutex // guards bytes
	bytes map[string]*memoryData
}

func newMemory() *memory { return &memory{bytes: map[string]*memoryData{}} }

func (m *memory) create() (data, error) {
	d := &memoryData{id: rand.Text()}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes[d.id] = d
	return d, nil
}

func (m *memory) open(name string) (data, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.bytes[name]
	if d == nil {
		return nil, errors.New("objects: no bytes " + name)
	}
	return d, nil
}

func (m *memory) drop(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.bytes, name)
	return nil
}

func (*memory) saveBucket(*Bucket) error   { return nil }
func (*memory) removeBucket(string) error  { return nil }
func (*memory) saveObject(*Object) error   { return nil }
func (*memory) removeObject(*Object) error { return nil }
func (*memory) saveUpload(*session) error  { return nil }
func (*memory) removeUpload(string) error  { return nil }
func (*memory) saveFloor(int64) error      { return nil }

// memoryData is written by one goroutine, and read by others only once it has been published.
type memoryData struct {
	id    string
	bytes []byte
}

func (d *memoryData) name() string { return d.id }
func (d *memoryData) Close() error { return nil }
func (d *memoryData) sync() error  { return nil }

func (d *memoryData) truncate(size int64) error {
	d.bytes = d.bytes[:size]
	return nil
}

func (d *memoryData) Write(b []byte) (int, error) {
	d.bytes = append(d.bytes, b...)
	return len(b), nil
}

func (d *memoryData) ReadAt(b []byte, at int64) (int, error) {
	if at >= int64(len(d.bytes)) {
		return 0, io.EOF
	}
	n := copy(b, d.bytes[at:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}
