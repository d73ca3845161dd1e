package objects

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"regexp"
	"sync"
	"time"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

const (
	// ChunkBytes is what the length of a chunk must be a multiple of, but for the last (Cloud Storage documentation,
	// "Resumable uploads").
	ChunkBytes = 256 << 10
	// uploadLife is how long a resumable upload may take (the same page).
	uploadLife = 7 * 24 * time.Hour
)

// session is what a resumable upload is. The JSON form is what a folder keeps.
type session struct {
	ID         string     `json:"id"`
	Object     Object     `json:"object"`
	Conditions Conditions `json:"conditions,omitzero"`
	Declared   Declared   `json:"declared,omitzero"`
	Started    time.Time  `json:"started"`
	Data       string     `json:"data"`
	// Persisted is how many bytes have been acknowledged; Total how many there will be, -1 where that is not known.
	Persisted int64 `json:"persisted"`
	Total     int64 `json:"total"`
	// Done is the object that came of it.
	Done *Object `json:"done,omitempty"`
}

func (u *session) expires() time.Time { return u.Started.Add(uploadLife) }

// Upload is a resumable upload. Safe for concurrent use: calls take turns.
type Upload struct {
	store *Store

	mu sync.Mutex // guards the fields below
	session
	data   data // nil once it is over
	sums   *sums
	failed error // the refusal that ended it
	over   bool  // cancelled or expired
}

// Progress is how far an upload has come.
type Progress struct {
	Persisted int64
	Done      *Object // nil while there is more to come
}

// StartUpload begins an upload of total bytes, -1 where the client does not know yet. Conditions are looked at when it is
// complete.
func (s *Store) StartUpload(o Object, c Conditions, declared Declared, total int64) (id string, err error) {
	if err := s.checkDraft(&o, Conditions{}); err != nil {
		return "", err
	}
	d, err := s.medium.create()
	if err != nil {
		return "", err
	}
	u := &Upload{store: s, data: d, sums: newSums(), session: session{
		ID: rand.Text(), Object: o.clone(), Conditions: c, Declared: declared, Started: s.now(), Data: d.name(), Total: total,
	}}
	if err := s.medium.saveUpload(&u.session); err != nil {
		s.drop(d.name())
		return "", errors.Join(err, d.Close())
	}
	s.mu.Lock()
	s.uploads[u.ID] = u
	s.mu.Unlock()
	s.wake(u.expires())
	return u.ID, nil
}

// uploadID is what the ids of uploads look like.
var uploadID = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// Upload finds an upload that has not expired.
func (s *Store) Upload(id string) (*Upload, error) {
	s.mu.RLock()
	u := s.uploads[id]
	s.mu.RUnlock()
	switch {
	case u != nil && s.now().Before(u.expires()):
		return u, nil
	case uploadID.MatchString(id):
		return nil, gone()
	}
	return nil, refusal.New(refusal.NotFound, "Resumable upload session not found")
}

func gone() error {
	return &refusal.Error{Reason: "gone", Status: 410, Message: "The resumable upload session is no longer available: it expired or was cancelled"}
}

// Status is how far the upload has come. A total that has been reached completes it.
func (u *Upload) Status(total int64, declared Declared) (Progress, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.ended(); err != nil || u.Done != nil {
		return u.progress(), err
	}
	if total == u.Persisted && (u.Total < 0 || u.Total == total) {
		u.Total = total
		return u.complete(declared)
	}
	return u.progress(), nil
}

// ended is why the upload takes nothing more, unless it is because it is complete; u.mu is held.
func (u *Upload) ended() error {
	if u.over {
		return gone()
	}
	return u.failed
}

func (u *Upload) progress() Progress { return Progress{Persisted: u.Persisted, Done: u.Done} }

// Chunk is bytes of an upload with their place.
type Chunk struct {
	First int64 // the position of the first byte
	// Length is the number of bytes; -1 where the end of Body tells.
	Length int64
	// Total is the size of the whole object; -1 where that is not known yet. A body of unknown length is the rest of it.
	Total    int64
	Body     io.Reader
	Declared Declared // counts in the chunk that completes the upload
}

// Write takes a chunk. Bytes that the upload has already are passed over by their position; a chunk that begins behind its end
// changes nothing. When the body breaks off, what has come of it is kept in units of ChunkBytes.
func (u *Upload) Write(c Chunk) (Progress, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.ended(); err != nil || u.Done != nil {
		return u.progress(), err
	}
	if err := u.check(c); err != nil {
		return u.progress(), err
	}
	if c.Total >= 0 {
		u.Total = c.Total
	}
	if c.First > u.Persisted {
		return u.progress(), nil
	}
	if err := u.take(c); err != nil {
		return u.progress(), err
	}
	if u.Persisted == u.Total {
		return u.complete(c.Declared)
	}
	return u.progress(), nil
}

func (u *Upload) check(c Chunk) error {
	total, end := max(c.Total, u.Total), c.First+c.Length
	switch {
	case c.Total >= 0 && u.Total >= 0 && c.Total != u.Total:
		return refusal.New(refusal.Invalid, "Invalid request. The upload is of %d byte(s), but this request speaks of %d.", u.Total, c.Total)
	case c.Length < 0:
		return nil
	case total >= 0 && end > total:
		return refusal.New(refusal.Invalid, "Invalid request. The upload is of %d byte(s), but this request goes to byte %d.", total, end)
	case end != total && c.Length%ChunkBytes != 0:
		return refusal.New(refusal.Invalid,
			"Invalid request. There were %d byte(s) in the request body. The number of bytes uploaded is required to be a multiple of %d, except for the final request.",
			c.Length, ChunkBytes)
	}
	return nil
}

// take stores what is new of a chunk.
func (u *Upload) take(c Chunk) error {
	body := &counted{r: c.Body}
	if c.Length >= 0 {
		body.r = io.LimitReader(c.Body, c.Length)
	}
	if _, err := io.CopyN(io.Discard, body, u.Persisted-c.First); err != nil && err != io.EOF {
		return broken(err)
	}
	err := u.blocks(body, c)
	if saved := u.data.sync(); saved != nil {
		return errors.Join(err, saved)
	}
	u.Persisted = u.sums.size
	return errors.Join(err, u.store.medium.saveUpload(&u.session))
}

// blocks stores a body block by block; a block that is not whole only if it is the last of a whole body.
func (u *Upload) blocks(body *counted, c Chunk) error {
	block := make([]byte, ChunkBytes)
	for {
		n, err := io.ReadFull(body, block)
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !ended {
			return broken(err)
		}
		if ended && c.Length >= 0 && body.n < c.Length {
			return broken(io.ErrUnexpectedEOF)
		}
		if _, err := u.data.Write(block[:n]); err != nil {
			return errors.Join(err, u.data.truncate(u.sums.size))
		}
		u.sums.Write(block[:n])
		if ended {
			if c.Length < 0 {
				u.Total = u.sums.size
			}
			return nil
		}
	}
}

// ErrBroken is an upload's body that ended early; there is nobody to tell.
var ErrBroken = errors.New("the request body broke off")

func broken(err error) error { return fmt.Errorf("%w: %w", ErrBroken, err) }

type counted struct {
	r io.Reader
	n int64
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.r.Read(b)
	c.n += int64(n)
	return n, err
}

// complete makes the object. A refusal ends the upload; another failure leaves it to be completed by asking again.
func (u *Upload) complete(declared Declared) (Progress, error) {
	o := u.Object.clone()
	o.Size, o.CRC32C, o.MD5, o.data, o.upload = u.sums.size, u.sums.crc.Sum32(), u.sums.md5.Sum(nil), u.Data, u.ID
	err := u.Declared.check(&o)
	if err == nil {
		err = declared.check(&o)
	}
	if err == nil {
		err = u.store.publishUpload(u, &o)
	}
	switch {
	case refusal.Of(err) != nil:
		u.failed = err
		return u.progress(), errors.Join(err, u.abandon())
	case err != nil:
		return u.progress(), err
	}
	err = u.data.Close()
	u.data = nil
	return u.progress(), err
}

// publishUpload publishes the object of an upload and notes in the upload that it did.
func (s *Store) publishUpload(u *Upload, o *Object) error {
	s.mu.Lock()
	done, err := s.publish(o, u.Conditions)
	if err == nil {
		u.Done, u.Persisted = &done, done.Size
		err = s.medium.saveUpload(&u.session)
	}
	s.mu.Unlock()
	if err == nil {
		s.aging(o)
	}
	return err
}

// Cancel ends the upload for good.
func (u *Upload) Cancel() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if err := u.ended(); err != nil {
		return err
	}
	return u.end()
}

// end forgets an upload, and its bytes unless an object has them; u.mu is held.
func (u *Upload) end() error {
	u.over = true
	err := u.abandon()
	u.store.mu.Lock()
	delete(u.store.uploads, u.ID)
	u.store.mu.Unlock()
	return err
}

// abandon gives the bytes back; u.mu is held.
func (u *Upload) abandon() error {
	err := u.store.medium.removeUpload(u.ID)
	if u.data == nil {
		return err
	}
	err = errors.Join(err, u.data.Close())
	u.data = nil
	u.store.drop(u.Data)
	return err
}
