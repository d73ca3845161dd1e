package main

import (
	"reflect"

	"github.com/spf13/pflag"

	"github.com/millrace-dev/millrace/job"
)

// csvFlags say how CSV files are written.
type csvFlags struct{ job.CSV }

func (c *csvFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&c.Delimiter, "delimiter", "", "`character` between the cells of CSV, \\t is a tab (default a comma)")
	fs.StringVar(&c.Quote, "quote", "", "`character` around cells of CSV (default a double quote)")
	fs.BoolVar(&c.NoQuotes, "no-quotes", false, "nothing encloses cells of CSV; large files are then read in ranges")
	fs.BoolVar(&c.NoHeader, "no-header", false, "the first record of CSV does not name the columns")
	fs.IntVar(&c.SkipRows, "skip-rows", 0, "`number` of records of CSV before the header")
	fs.StringArrayVar(&c.NullMarkers, "null", nil, "`text` that means NULL in cells of CSV, any number of times (default the empty text)")
}

// options are those that were given, nil for none.
func (c *csvFlags) options() *job.CSV {
	o := c.CSV
	if o.Delimiter == `\t` {
		o.Delimiter = "\t"
	}
	if reflect.ValueOf(o).IsZero() {
		return nil
	}
	return &o
}
