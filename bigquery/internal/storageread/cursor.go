package storageread

import (
	"fmt"
	"math"

	"github.com/millrace-dev/millrace/bigquery/row"
)

// cursor decides what goes into a batch. It decodes the rows of one split lazily, one at a time, out of the block it was
// given last.
//
// A row is delivered between next answering giveRow and gave. A row that next decoded and that does not fit into the
// batch is the deferred row: it stays decoded, and is the first of the next batch. There is never more than one, and a
// batch takes its first row whatever its size, so every batch makes progress.
type cursor struct {
	decoder  *Decoder
	maxRows  int
	maxBytes int
	stop     int64 // position at which the split ends by itself

	delivered int64 // position of the next row to deliver
	block     []byte
	left      int64 // rows in block
	decoded   int   // bytes of the row that is decoded and not delivered; 0 when none is

	rows, bytes int // of the batch being made
}

// noStop is the stop of a split that is read to its end.
const noStop = math.MaxInt64

// action is what a reader does next.
type action uint8

const (
	giveRow   action = iota + 1 // hand the decoder's row over, then call gave
	needBlock                   // receive a block and load it, or learn that there is none
	batchFull
	splitEnded
)

// begin starts a batch.
func (c *cursor) begin() { c.rows, c.bytes = 0, 0 }

// load gives the next block. It is called after needBlock only.
func (c *cursor) load(data []byte, rows int64) error {
	c.block, c.left = data, rows
	return c.leftovers()
}

// leftovers checks that the bytes of a block end with its last row.
func (c *cursor) leftovers() error {
	if c.left < 0 || c.left == 0 && len(c.block) > 0 {
		return &row.Error{Kind: row.KindDecode, Offset: -1,
			Msg: fmt.Sprintf("the block has %d bytes more than its rows", len(c.block))}
	}
	return nil
}

func (c *cursor) next() (action, error) {
	switch {
	case c.delivered >= c.stop:
		return splitEnded, nil
	case c.rows == c.maxRows:
		return batchFull, nil
	case c.decoded == 0 && c.left == 0:
		return needBlock, nil
	}
	if c.decoded == 0 {
		if err := c.decode(); err != nil {
			return 0, err
		}
	}
	if c.rows > 0 && c.bytes+c.decoded > c.maxBytes {
		return batchFull, nil
	}
	return giveRow, nil
}

func (c *cursor) decode() error {
	n, err := c.decoder.Decode(c.block)
	if err != nil {
		return err
	}
	c.block, c.left, c.decoded = c.block[n:], c.left-1, n
	return c.leftovers()
}

// gave says that the row has been handed over.
func (c *cursor) gave() {
	c.rows++
	c.bytes += c.decoded
	c.decoded = 0
	c.delivered++
}
