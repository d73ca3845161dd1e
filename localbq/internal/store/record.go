package store

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// The kinds of frames in the log, in the first byte of the payload.
const (
	frameCatalog = 1 // JSON of a catalogRecord, behind a byte
	frameRows    = 2 // a rowsRecord
	// frameContinues is the first frame of a segment that follows another: where that one ended, eight bytes at byte 8.
	frameContinues = 3
	// frameChanges is what its rows do to those of their keys, and a rowsRecord.
	frameChanges = 4
)

func appendContinues(buf []byte, end int64) []byte {
	return binary.LittleEndian.AppendUint64(append(buf, frameContinues, 0, 0, 0, 0, 0, 0, 0), uint64(end))
}

func parseContinues(payload []byte) (int64, error) {
	if len(payload) != 16 {
		return 0, fmt.Errorf("a beginning of %d bytes", len(payload))
	}
	return int64(binary.LittleEndian.Uint64(payload[8:])), nil
}

// catalogRecord is a change of the catalog, as its result: replaying it decides nothing.
type catalogRecord struct {
	Op       string    `json:"op"`
	Version  int64     `json:"version"`
	Dataset  *Dataset  `json:"dataset,omitempty"`  // put-dataset
	Ref      *TableRef `json:"ref,omitempty"`      // of a table; a dataset's has no table
	To       *TableRef `json:"to,omitempty"`       // rename-table
	Instance int64     `json:"instance,omitempty"` // put-table, mode
	Info     *Info     `json:"info,omitempty"`     // put-table
	Mode     Mode      `json:"mode,omitempty"`     // put-table of a new table, mode
	Rows     []byte    `json:"rows,omitempty"`     // put-table of a new table: the rowsRecord of the rows that it is made with
	// Streams and Note are for changes of streams, whose table Instance names.
	Streams []streamRecord `json:"streams,omitempty"`
	Note    []byte         `json:"note,omitempty"`
	Job     *Job           `json:"job,omitempty"` // put-job
}

const (
	opPutDataset    = "put-dataset"
	opDeleteDataset = "delete-dataset"
	opPutTable      = "put-table"
	opDeleteTable   = "delete-table"
	opRenameTable   = "rename-table"
	opMode          = "mode"
	opApply         = "apply-changes"

	opCreateStream   = "create-stream"
	opFlushStream    = "flush-stream"
	opFinalizeStream = "finalize-stream"
	opCommitStreams  = "commit-streams"
	opExpireStream   = "expire-stream"
	opPutJob         = "put-job"
)

func (r catalogRecord) append(buf []byte) []byte {
	b, err := json.Marshal(r)
	if err != nil { // every field marshals
		panic(fmt.Sprintf("store: catalog record: %v", err))
	}
	return append(append(buf, frameCatalog), b...)
}

// rowsRecord is a write of rows. Its head has a fixed size; note, definition, job and batches follow.
type rowsRecord struct {
	instance, version, count int64
	number                   int // of the definition that the batches are shaped by
	truncate                 bool
	note                     []byte
	definition               *schema.Definition
	job                      *Job
	batches                  []byte // encoded, one behind the other
	batchCount               int
	remove                   []Range
	ingested                 []int64
	stream, offset           int64 // key of the stream that they are appended to, and where; 0 is none
}

const rowsHead = 48

// The layouts of a write, in the second byte: one to a created stream has its key and the offset before the batches.
const (
	rowsOfTable  = 1
	rowsOfStream = 2
	// rowsThatRemove has the rows that it takes away before the batches.
	rowsThatRemove = 3
	// rowsWithTimes has the rows that it takes away and, for each batch, when it counts as ingested, before the batches.
	rowsWithTimes = 4
)

// appendRows encodes a write.
func (r *rowsRecord) append(buf []byte) []byte {
	var definition []byte
	if r.definition != nil {
		var err error
		if definition, err = json.Marshal(r.definition); err != nil { // every field marshals
			panic(fmt.Sprintf("store: definition: %v", err))
		}
	}
	var job []byte
	if r.job != nil {
		var err error
		if job, err = json.Marshal(r.job); err != nil {
			panic(fmt.Sprintf("store: job %s: %v", r.job.Name, err)) // its record is JSON already
		}
	}
	head := [rowsHead]byte{0: frameRows, 1: rowsOfTable}
	if r.truncate {
		head[2] = 1
	}
	binary.LittleEndian.PutUint32(head[4:], uint32(r.number))
	binary.LittleEndian.PutUint64(head[8:], uint64(r.instance))
	binary.LittleEndian.PutUint64(head[16:], uint64(r.version))
	binary.LittleEndian.PutUint64(head[24:], uint64(r.count))
	binary.LittleEndian.PutUint32(head[32:], uint32(len(r.note)))
	binary.LittleEndian.PutUint32(head[36:], uint32(len(definition)))
	binary.LittleEndian.PutUint32(head[40:], uint32(r.batchCount))
	binary.LittleEndian.PutUint32(head[44:], uint32(len(job)))
	head0 := len(buf)
	buf = append(buf, head[:]...)
	buf = append(append(append(buf, r.note...), definition...), job...)
	buf = pad(buf)
	if r.stream != 0 {
		buf[head0+1] = rowsOfStream
		buf = binary.LittleEndian.AppendUint64(buf, uint64(r.stream))
		buf = binary.LittleEndian.AppendUint64(buf, uint64(r.offset))
	}
	if r.remove != nil || r.ingested != nil {
		buf[head0+1] = rowsThatRemove
		buf = appendRanges(buf, r.remove)
	}
	if r.ingested != nil {
		buf[head0+1] = rowsWithTimes
		for _, at := range r.ingested[:r.batchCount] {
			buf = binary.LittleEndian.AppendUint64(buf, uint64(at))
		}
	}
	return append(buf, r.batches...)
}

// parseRows decodes the head of a write; batches are decoded once the table's schema is at hand.
func parseRows(payload []byte) (*rowsRecord, error) {
	if len(payload) < rowsHead || payload[1] < rowsOfTable || payload[1] > rowsWithTimes {
		return nil, fmt.Errorf("rows of an unknown format")
	}
	r := &rowsRecord{
		truncate: payload[2] == 1,
		number:   int(binary.LittleEndian.Uint32(payload[4:])),
		instance: int64(binary.LittleEndian.Uint64(payload[8:])),
		version:  int64(binary.LittleEndian.Uint64(payload[16:])),
		count:    int64(binary.LittleEndian.Uint64(payload[24:])),
	}
	note, definition := int(binary.LittleEndian.Uint32(payload[32:])), int(binary.LittleEndian.Uint32(payload[36:]))
	r.batchCount = int(binary.LittleEndian.Uint32(payload[40:]))
	job := int(binary.LittleEndian.Uint32(payload[44:]))
	start := (rowsHead + note + definition + job + 7) / 8 * 8
	if note < 0 || definition < 0 || job < 0 || start > len(payload)+7 || rowsHead+note+definition+job > len(payload) {
		return nil, fmt.Errorf("rows are cut off")
	}
	if note > 0 {
		r.note = payload[rowsHead : rowsHead+note]
	}
	if definition > 0 {
		r.definition = &schema.Definition{}
		if err := json.Unmarshal(payload[rowsHead+note:rowsHead+note+definition], r.definition); err != nil {
			return nil, err
		}
	}
	if job > 0 {
		r.job = &Job{}
		if err := json.Unmarshal(payload[rowsHead+note+definition:rowsHead+note+definition+job], r.job); err != nil {
			return nil, err
		}
	}
	r.batches = payload[min(start, len(payload)):]
	if payload[1] == rowsOfStream {
		if len(r.batches) < 16 {
			return nil, fmt.Errorf("rows are cut off")
		}
		r.stream, r.offset = int64(binary.LittleEndian.Uint64(r.batches)), int64(binary.LittleEndian.Uint64(r.batches[8:]))
		r.batches = r.batches[16:]
	}
	if payload[1] >= rowsThatRemove {
		var err error
		if r.remove, r.batches, err = parseRanges(r.batches); err != nil {
			return nil, err
		}
	}
	if payload[1] == rowsWithTimes {
		if len(r.batches)/8 < r.batchCount {
			return nil, fmt.Errorf("rows are cut off")
		}
		r.ingested = make([]int64, r.batchCount)
		for i := range r.ingested {
			r.ingested[i] = int64(binary.LittleEndian.Uint64(r.batches[8*i:]))
		}
		r.batches = r.batches[8*r.batchCount:]
	}
	return r, nil
}

// decode reads the batches.
func (r *rowsRecord) decode(s *arrow.Schema) ([]arrow.RecordBatch, error) {
	in := batchReader{payload: r.batches}
	var out []arrow.RecordBatch
	for range r.batchCount {
		b, err := in.batch(s)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}
