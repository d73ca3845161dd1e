package export

import (
	"sync"
	"time"
)

// Progress is how far an export is.
type Progress struct {
	Rows  int64 // written, with those of the processes before
	Bytes int64 // of files, with those of the processes before
	Files int   // that are complete
	// Share is how much of the read is done, 0 to 1, as the service tells it of each stream; before it has told, from its estimate
	// of rows. Known is false where there is neither.
	Share float64
	Known bool
	// Left is how long the rest takes at the pace so far; 0 where that cannot be told.
	Left time.Duration
}

// meter keeps account of the streams.
type meter struct {
	mu       sync.Mutex // guards all below
	now      Progress
	streams  int
	finished int
	shares   []float64 // of the streams of the slots
	estimate int64     // rows; 0 is none
	began    time.Time
	first    float64 // the share at the first chunk
	chunks   int
}

func (m *meter) start(streams, slots, finished int, estimate int64, at mark) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.streams, m.finished, m.shares, m.estimate, m.began = streams, finished, make([]float64, slots), estimate, time.Now()
	m.now = Progress{Rows: at.Rows, Bytes: at.Bytes + at.Length, Files: at.File}
}

// chunk takes note of a chunk of a slot.
func (m *meter) chunk(slot int, rows, bytes int64, share float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Rows += rows
	m.now.Bytes += bytes
	m.shares[slot] = share
	if m.chunks++; m.chunks == len(m.shares) {
		m.first, m.began = m.share(), time.Now()
	}
}

func (m *meter) ended(slot int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shares[slot] = 0
	m.finished++
}

func (m *meter) files(n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Files = n
}

func (m *meter) share() float64 {
	if m.streams == 0 {
		return 1
	}
	done := float64(m.finished)
	for _, s := range m.shares {
		done += s
	}
	if done == 0 && m.estimate > 0 {
		return min(1, float64(m.now.Rows)/float64(m.estimate))
	}
	return min(1, done/float64(m.streams))
}

func (m *meter) progress() Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.now
	p.Share = m.share()
	p.Known = p.Share > 0
	if gained := p.Share - m.first; gained > 0 && p.Share < 1 && m.chunks > len(m.shares) {
		p.Left = time.Duration(float64(time.Since(m.began)) * (1 - p.Share) / gained)
	}
	return p
}
