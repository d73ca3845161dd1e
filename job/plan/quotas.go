package plan

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job"
)

// Quota is what the job would take of one quota or limit of BigQuery.
type Quota struct {
	Name  string `json:"name"`
	Uses  string `json:"uses"`
	Limit string `json:"limit"`
	// Left is what is left of the limit, "" where that is not counted.
	Left string `json:"left,omitempty"`
	// Over says that the job as it is planned takes more than there is by default.
	Over   bool   `json:"over"`
	Source string `json:"source"` // the page that the limit is from
}

// The pages that say what the limits are (BigQuery documentation, as of 2026-11-30).
const (
	writeLimits     = "https://cloud.google.com/bigquery/quotas#write-api-limits"
	tableLimits     = "https://cloud.google.com/bigquery/quotas#standard_tables"
	partitionLimits = "https://cloud.google.com/bigquery/quotas#partitioned_tables"
	writePractices  = "https://cloud.google.com/bigquery/docs/write-api-best-practices#limit_the_rate_of_stream_creation"
)

const (
	regionBytes        = 300_000_000 // in a second, of a project in one region
	multiRegionBytes   = 3_000_000_000
	regionConnections  = 1_000
	multiConnections   = 10_000
	streamsInAnHour    = 10_000
	streamsInASecond   = 40 // from where on calls take long
	metadataBurst      = 5  // updates of a table in 10 s
	partitionsOfATable = 10_000
	// mostConnections is the default of DefaultStreamOptions.MaxConnectionsPerRegion.
	mostConnections = 20
)

// place is the kind of the job's location: limits differ.
type place struct {
	known, multi bool
	name         string
}

func placeOf(location string) place {
	multi := strings.EqualFold(location, "US") || strings.EqualFold(location, "EU")
	return place{location != "", multi, location}
}

// of writes a figure for regions and one for multi-regions, or the one that holds.
func (p place) of(region, multi, unit string) string {
	switch {
	case p.multi:
		return multi + unit + " in " + p.name
	case p.known:
		return region + unit + " in " + p.name
	}
	return region + unit + " in a region, " + multi + unit + " in US and EU"
}

func (p place) most(region, multi int) int {
	if p.multi || !p.known {
		return multi
	}
	return region
}

func quotas(p *job.Parsed, plan *Plan) ([]Quota, error) {
	at := placeOf(p.Sink.BigQuery.Location)
	var all []Quota
	switch plan.Method {
	case "file-loads":
		var err error
		if all, err = loadQuotas(plan, p); err != nil {
			return nil, err
		}
	case "exactly-once":
		all = append([]Quota{throughput(plan, at), connections(plan, at)}, streams(plan, p)...)
	default:
		all = []Quota{throughput(plan, at), connections(plan, at)}
	}
	if plan.Create.Disposition == "if-needed" || plan.SchemaUpdate != "" {
		all = append(all, metadata(plan))
	}
	if q, ok := widest(plan); ok {
		all = append(all, q)
	}
	if part := p.Sink.BigQuery.Create.Partition; part != nil {
		all = append(all, partitions(part))
	}
	return all, nil
}

func throughput(plan *Plan, at place) Quota {
	q := Quota{Name: "bytes appended in a second, by all of a project", Limit: at.of("300 MB", "3 GB", ""), Source: writeLimits}
	if plan.Source.Bytes == 0 {
		q.Uses = "as many as come"
		return q
	}
	q.Uses = fmt.Sprintf("%s of input, as stored: %s at the limit of a region", bytesText(plan.Source.Bytes), leastTime(plan.Source.Bytes, regionBytes))
	if at.multi {
		q.Uses = fmt.Sprintf("%s of input, as stored: %s at the limit", bytesText(plan.Source.Bytes), leastTime(plan.Source.Bytes, multiRegionBytes))
	}
	return q
}

// leastTime is how long bytes take at a rate.
func leastTime(bytes, rate int64) string {
	d := time.Duration(float64(bytes) / float64(rate) * float64(time.Second))
	if d < time.Second {
		return "less than a second"
	}
	return "at least " + d.Round(time.Second).String()
}

func connections(plan *Plan, at place) Quota {
	q := Quota{Name: "connections open at once, of a project", Limit: at.of("1,000", "10,000", ""), Source: writeLimits}
	if plan.Method != "exactly-once" {
		q.Uses = fmt.Sprintf("up to %d, shared by all lanes and tables", mostConnections)
		return q
	}
	n := plan.Lanes * len(plan.Tables)
	q.Uses = fmt.Sprintf("up to %s: one for each of %s and each of %s that has rows", number(n), plural(plan.Lanes, "lane"), plural(len(plan.Tables), "table"))
	q.Over = n > at.most(regionConnections, multiConnections)
	return q
}

// streams: each lane makes one for each table that it meets, and one more where a table was idle for long, after a
// failure that its stream did not outlive, and in the next run.
func streams(plan *Plan, p *job.Parsed) []Quota {
	n := plan.Lanes * len(plan.Tables)
	idle := cmp.Or(p.Sink.BigQuery.BufferedStream.DestinationIdleTimeout, time.Hour)
	uses := fmt.Sprintf("%s to begin with: one for each of %s and each of %s; one more for a table that gets rows after %s without",
		number(n), plural(plan.Lanes, "lane"), plural(len(plan.Tables), "table"), idle)
	return []Quota{
		{Name: "streams made in an hour (CreateWriteStream), of a project in a location", Uses: uses, Limit: number(streamsInAnHour), Over: n > streamsInAnHour, Source: writeLimits},
		{Name: "streams made in a second, before calls take long", Uses: fmt.Sprintf("as fast as %s are met", plural(len(plan.Tables), "table")), Limit: "40 to 50", Source: writePractices},
	}
}

func metadata(plan *Plan) Quota {
	var uses []string
	if plan.Create.Disposition == "if-needed" {
		uses = append(uses, "one to make a table")
		if plan.Method != "file-loads" {
			uses[0] += fmt.Sprintf(", which up to %s may ask for at once", plural(plan.Lanes, "lane"))
		}
	}
	if plan.SchemaUpdate != "" && plan.Method == "file-loads" {
		uses = append(uses, "one at each commit to widen one")
	} else if plan.SchemaUpdate != "" {
		uses = append(uses, fmt.Sprintf("up to 5 of each of %s to widen one", plural(plan.Lanes, "lane")))
	}
	if plan.Method == "file-loads" {
		uses = append(uses, "one for each job into it")
	}
	return Quota{Name: "updates of a table's metadata in 10 s", Uses: strings.Join(uses, "; ") + "; what is refused is tried again",
		Limit: number(metadataBurst), Source: tableLimits}
}

func widest(plan *Plan) (Quota, bool) {
	most, name := 0, ""
	for _, t := range plan.Tables {
		if n := count(t.Columns); n > most {
			most, name = n, t.Name
		}
	}
	q := Quota{Name: "columns of a table, members of STRUCTs included", Limit: number(table.MaxColumns), Over: most > table.MaxColumns, Source: tableLimits}
	q.Uses = number(most)
	if len(plan.Tables) > 1 {
		q.Uses += " in " + name
	}
	return q, most > 0
}

func count(columns []Column) int {
	n := len(columns)
	for _, c := range columns {
		n += count(c.Columns)
	}
	return n
}

// partitions: how far the partitions of one table reach.
func partitions(p *job.Partition) Quota {
	const day = 24 * time.Hour
	units := map[string]time.Duration{"hour": time.Hour, "day": day, "month": 30 * day, "year": 365 * day}
	unit := units[p.Type]
	q := Quota{Name: "partitions of a table", Limit: number(partitionsOfATable), Source: partitionLimits}
	if p.Expiration > 0 {
		n := int(p.Expiration/unit) + 1
		q.Uses = fmt.Sprintf("up to %s, one for each %s of the %s that one is kept", number(n), p.Type, span(p.Expiration))
		q.Over = n > partitionsOfATable
		return q
	}
	years := map[string]int{"day": partitionsOfATable / 365, "month": partitionsOfATable / 12, "year": partitionsOfATable}
	if n := years[p.Type]; n > 0 {
		q.Uses = fmt.Sprintf("one for each %s: room for %s years", p.Type, number(n))
	} else {
		q.Uses = fmt.Sprintf("one for each hour: room for %d days", partitionsOfATable/24)
	}
	return q
}

// plural writes a count and its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return number(n) + " " + noun + "s"
}

// number writes thousands with commas.
func number(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// bytesText writes a size in powers of ten, as the limits are.
func bytesText(n int64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB"}
	v, i := float64(n), 0
	for v >= 1000 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.3g %s", v, units[i])
}
