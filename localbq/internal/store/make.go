package store

import (
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// MakeTable makes a table with rows in it, at once: nobody sees it without them, whenever the process ends. Of r it takes the
// batches, their times of ingestion and the job. In a folder, rows whose record would not fit into one write come in another
// commit behind the table.
func (s *Store) MakeTable(ref TableRef, d *schema.Definition, r Rows) (*Table, Written, error) {
	if err := s.checkNew(ref, d); err != nil {
		return nil, Written{}, err
	}
	w := &write{Rows: Rows{Batches: r.Batches, Ingested: r.Ingested, Job: r.Job, Definition: d}}
	if err := w.reshape(); err != nil {
		return nil, Written{}, err
	}
	w.Definition = nil
	if s.log != nil {
		for _, b := range w.Batches {
			w.encoded = appendBatch(w.encoded, b)
		}
	}
	if len(w.encoded) > maxWrite/2 { // they are written down as text, which takes a third more
		t, err := s.CreateTable(ref, d)
		if err != nil {
			return nil, Written{}, err
		}
		r.Info, r.Definition = t.Info(), nil
		written, err := t.Write(r)
		return t, written, err
	}
	c := &makeWithRows{createTable: createTable{ref: ref, definition: d}, rows: w}
	_, err := s.commit(c)
	return c.table, w.written, err
}

type makeWithRows struct {
	createTable
	rows *write
}

func (c *makeWithRows) prepare(s *Store, version int64) error {
	if err := c.createTable.prepare(s, version); err != nil {
		return err
	}
	c.rows.table, c.rows.Info = c.table, c.table.infos[0]
	if c.table.mode != ModeStore {
		for _, b := range c.rows.Batches {
			c.rows.Count += b.NumRows()
		}
		c.rows.Batches, c.rows.Ingested, c.rows.encoded = nil, nil, nil
	}
	return c.rows.prepare(s, version)
}

func (c *makeWithRows) append(buf []byte, version int64) []byte {
	record := c.record(version)
	record.Rows = c.rows.append(nil, version)
	return record.append(buf)
}

// account tells of the rows, if there are any.
func (c *makeWithRows) account() {
	if c.rows.written.Count > 0 {
		c.rows.account()
	}
}

func (c *makeWithRows) publish(s *Store, version int64) {
	c.createTable.publish(s, version)
	c.rows.publish(s, version)
}
