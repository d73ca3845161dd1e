package plan

import (
	"cmp"
	"strings"

	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/job"
)

// Kind is the kind of a resource.
type Kind string

// The kinds of resources that permissions are needed on.
const (
	OnProject Kind = "project"
	OnDataset Kind = "dataset"
	OnTable   Kind = "table"
	OnBucket  Kind = "bucket"
	OnTopic   Kind = "topic"
)

// Permission is one that the job needs. What is granted on a resource holds for everything in it.
type Permission struct {
	Name     string `json:"permission"` // of IAM
	Kind     Kind   `json:"kind"`
	Resource string `json:"resource"` // a table with the placeholders of the job file
	For      string `json:"for"`      // the calls that need it
}

// permissions are by method and by what the job file allows (BigQuery documentation, "BigQuery IAM roles and permissions",
// "Storage Write API"; Cloud Storage documentation, "IAM permissions for Cloud Storage").
func permissions(p *job.Parsed, plan *Plan) []Permission {
	b := p.Sink.BigQuery
	project, dataset := containers(b.Table)
	var all []Permission
	need := func(kind Kind, resource, name, use string) {
		all = append(all, Permission{name, kind, resource, use})
	}
	reading(p, need)
	if plan.Create.Datasets {
		need(OnProject, project, "bigquery.datasets.create", "make datasets that are not there (datasets.insert)")
	}
	if plan.Create.Disposition == "if-needed" {
		need(OnDataset, dataset, "bigquery.tables.create", "make tables that are not there (tables.insert)")
		if tagged(plan.Tables) {
			need(OnDataset, dataset, "bigquery.tables.setCategory", "make tables whose columns have policy tags")
		}
	}
	var reads []string
	switch plan.Method {
	case "exactly-once":
		need(OnTable, b.Table, "bigquery.tables.updateData", "append rows and make them visible (CreateWriteStream, AppendRows, FlushRows)")
		reads = append(reads, "look its streams up after a restart (GetWriteStream)")
	case "file-loads":
		fileLoads(b, need)
		reads = append(reads, "find out whether it is there, and its columns (tables.get)")
	default:
		need(OnTable, b.Table, "bigquery.tables.updateData", "append rows (AppendRows)")
		if b.Location == "" {
			reads = append(reads, "find out where its dataset is (GetWriteStream)")
		}
	}
	if b.Schema.Table && plan.Method != "file-loads" {
		reads = append(reads, "read its columns (tables.get)")
	} else if plan.SchemaUpdate != "" {
		reads = append(reads, "compare its columns (tables.get)")
	}
	if reads != nil {
		need(OnTable, b.Table, "bigquery.tables.get", strings.Join(reads, ", "))
	}
	if plan.SchemaUpdate != "" {
		need(OnTable, b.Table, "bigquery.tables.update", "change its columns (tables.patch)")
	}
	if d := b.Failures.DeadLetter; d != nil && d.Table != "" {
		_, of := containers(d.Table)
		need(OnDataset, of, "bigquery.tables.create", "make the table of dead letters (tables.insert)")
		need(OnTable, d.Table, "bigquery.tables.get", "find out where the dataset of dead letters is (GetWriteStream)")
		need(OnTable, d.Table, "bigquery.tables.updateData", "append dead letters (AppendRows)")
	} else if d != nil && d.PubSub != nil {
		need(OnTopic, d.PubSub.Topic, "pubsub.topics.publish", "publish dead letters, with the credentials of the topic")
	}
	if q := b.Connection.QuotaProject; q != "" {
		need(OnProject, q, "serviceusage.services.use", "have calls counted against it")
	}
	if bucket, ok := bucketOf(plan.Checkpoint.Store); ok {
		for _, name := range []string{"create", "delete", "get", "list"} {
			need(OnBucket, bucket, "storage.objects."+name, "keep checkpoints")
		}
	}
	return all
}

// reading are those of what is read (BigQuery documentation, "Use the BigQuery Storage Read API", "Permissions").
func reading(p *job.Parsed, need func(kind Kind, resource, name, use string)) {
	r := p.Source.BigQuery
	if r == nil {
		return
	}
	from, table := p.Reads()
	pays := cmp.Or(r.ParentProject, from.Project)
	need(OnProject, pays, "bigquery.readsessions.create", "read (CreateReadSession)")
	need(OnProject, pays, "bigquery.readsessions.getData", "read (ReadRows)")
	if table {
		need(OnTable, from.String(), "bigquery.tables.getData", "read its rows")
		need(OnTable, from.String(), "bigquery.tables.get", "read its columns (tables.get)")
	}
	if r.Query == "" && !r.MaterializeViews {
		return
	}
	need(OnProject, pays, "bigquery.jobs.create", "run the query (jobs.insert); it needs bigquery.tables.getData on all that it reads")
	if r.QueryResultDataset != "" {
		need(OnDataset, cmp.Or(r.QueryResultProject, pays)+"."+r.QueryResultDataset, "bigquery.tables.create", "leave the result of the query there")
		need(OnDataset, cmp.Or(r.QueryResultProject, pays)+"."+r.QueryResultDataset, "bigquery.tables.updateData", "leave the result of the query there")
		need(OnDataset, cmp.Or(r.QueryResultProject, pays)+"."+r.QueryResultDataset, "bigquery.tables.update", "have the result expire (tables.patch)")
	}
}

// fileLoads are those of the jobs that load files, and of what they are loaded from.
func fileLoads(b *job.BigQuery, need func(kind Kind, resource, name, use string)) {
	project, dataset := containers(b.Table)
	f := b.FileLoads
	need(OnProject, cmp.Or(f.JobProject, project), "bigquery.jobs.create", "load files, copy and query temporary tables (jobs.insert, jobs.get)")
	need(OnTable, b.Table, "bigquery.tables.updateData", "have rows loaded (load, copy and query jobs)")
	if b.Location == "" {
		need(OnDataset, dataset, "bigquery.datasets.get", "find out where jobs have to run (datasets.get)")
	}
	temp := dataset
	if f.TempDataset != "" {
		temp = cmp.Or(f.TempProject, project) + "." + f.TempDataset
	}
	for _, name := range []string{"create", "updateData", "get", "getData", "delete"} {
		need(OnDataset, temp, "bigquery.tables."+name, "have temporary tables, where one load job is too small")
	}
	if bucket, ok := bucketOf(f.StagingPath); ok {
		need(OnBucket, bucket, "storage.objects.create", "stage files")
		need(OnBucket, bucket, "storage.objects.get", "load files")
		need(OnBucket, bucket, "storage.objects.delete", "delete files that are loaded")
	}
}

// containers are the project and the dataset of a table's name, with the placeholders of a pattern.
func containers(name string) (project, dataset string) {
	dataset, _ = cutLast(name)
	project, _ = cutLast(dataset)
	return project, dataset
}

// cutLast cuts at the last dot that is not in a placeholder.
func cutLast(name string) (before, after string) {
	depth := 0
	for i := len(name) - 1; i >= 0; i-- {
		switch name[i] {
		case '}':
			depth++
		case '{':
			depth--
		case '.':
			if depth == 0 {
				return name[:i], name[i+1:]
			}
		}
	}
	return name, ""
}

func tagged(tables []Table) bool {
	for _, t := range tables {
		if t.Schema != nil && anyTags(t.Schema.Fields) {
			return true
		}
	}
	return false
}

func anyTags(fields []table.Field) bool {
	for i := range fields {
		if len(fields[i].PolicyTags) > 0 || anyTags(fields[i].Fields) {
			return true
		}
	}
	return false
}

// bucketOf is the bucket of a checkpoint store or a staging path.
func bucketOf(store string) (string, bool) {
	rest, ok := strings.CutPrefix(store, "gs://")
	if !ok {
		return "", false
	}
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		rest = rest[:i]
	}
	return rest, true
}
