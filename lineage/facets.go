package lineage

// Facet is what every facet begins with.
type Facet struct {
	Producer  string `json:"_producer"`
	SchemaURL string `json:"_schemaURL"`
}

func standard(version, name string) Facet {
	return Facet{Producer, facetURL + version + "/" + name + ".json#/$defs/" + name}
}

// RunFacets describe a run.
type RunFacets struct {
	Engine *EngineFacet `json:"processing_engine,omitempty"`
	Error  *ErrorFacet  `json:"errorMessage,omitempty"` // with Fail
}

// EngineFacet is what ran the job.
type EngineFacet struct {
	Facet
	Name    string `json:"name"`
	Version string `json:"version"`
}

// NewEngineFacet says that this program, of that version, runs the job.
func NewEngineFacet(version string) *EngineFacet {
	return &EngineFacet{standard("1-1-1", "ProcessingEngineRunFacet"), "millrace", version}
}

// ErrorFacet is why a run failed.
type ErrorFacet struct {
	Facet
	Message  string `json:"message"`
	Language string `json:"programmingLanguage"`
}

// NewErrorFacet tells the error of a run.
func NewErrorFacet(err error) *ErrorFacet {
	return &ErrorFacet{standard("1-0-1", "ErrorMessageRunFacet"), err.Error(), "Go"}
}

// JobFacets describe a job.
type JobFacets struct {
	Type *JobTypeFacet `json:"jobType,omitempty"`
}

// JobTypeFacet says what kind of job it is.
type JobTypeFacet struct {
	Facet
	Processing  string `json:"processingType"` // "BATCH" or "STREAMING"
	Integration string `json:"integration"`
	Type        string `json:"jobType"`
}

// NewJobTypeFacet describes a job that ends, or one that does not.
func NewJobTypeFacet(bounded bool) *JobTypeFacet {
	f := &JobTypeFacet{standard("2-0-3", "JobTypeJobFacet"), "STREAMING", "MILLRACE", "JOB"}
	if bounded {
		f.Processing = "BATCH"
	}
	return f
}

// DatasetFacets describe a dataset.
type DatasetFacets struct {
	Schema *SchemaFacet `json:"schema,omitempty"`
	Source *SourceFacet `json:"dataSource,omitempty"`
	GCP    *GCPFacet    `json:"gcp,omitempty"`
}

// SchemaFacet is the columns of a table.
type SchemaFacet struct {
	Facet
	Fields []Field `json:"fields"`
}

// Field is a column, or a member of a STRUCT.
type Field struct {
	Name        string  `json:"name"`
	Type        string  `json:"type,omitempty"`
	Description string  `json:"description,omitempty"`
	Fields      []Field `json:"fields,omitempty"`
}

// NewSchemaFacet describes columns.
func NewSchemaFacet(fields []Field) *SchemaFacet {
	return &SchemaFacet{standard("1-1-1", "SchemaDatasetFacet"), fields}
}

// SourceFacet is where a dataset is: a service, a file system.
type SourceFacet struct {
	Facet
	Name string `json:"name"`
	URI  string `json:"uri"`
}

// NewSourceFacet names a data source whose URI is its name.
func NewSourceFacet(name string) *SourceFacet {
	return &SourceFacet{standard("1-0-1", "DatasourceDatasetFacet"), name, name}
}

// GCPFacet says which resource of Google Cloud a dataset is. It is a facet of our own; its schema is
// docs/reference/gcp-dataset-facet.json.
type GCPFacet struct {
	Facet
	Kind    string `json:"resourceKind"` // "bigquery-table"
	Project string `json:"project"`
	Dataset string `json:"dataset"`
	Table   string `json:"table"`
}

// NewTable is the dataset that a table of BigQuery is.
func NewTable(project, dataset, table string) Dataset {
	return Dataset{
		Namespace: "bigquery",
		Name:      project + "." + dataset + "." + table,
		Facets: DatasetFacets{
			Source: NewSourceFacet("bigquery"),
			GCP:    &GCPFacet{Facet{Producer, gcpURL + "#/$defs/GCPDatasetFacet"}, "bigquery-table", project, dataset, table},
		},
	}
}

// NewFile is the dataset that a local file, or a folder of them, is. The path is absolute.
func NewFile(path string) Dataset {
	return Dataset{Namespace: "file", Name: path, Facets: DatasetFacets{Source: NewSourceFacet("file")}}
}

// InputFacets are what a run has read of a dataset.
type InputFacets struct {
	Statistics *InputStatistics `json:"inputStatistics,omitempty"`
}

// InputStatistics count what was read.
type InputStatistics struct {
	Facet
	Rows int64 `json:"rowCount"`
	Size int64 `json:"size"`
}

// NewInputStatistics counts rows and bytes.
func NewInputStatistics(rows, size int64) *InputStatistics {
	return &InputStatistics{standard("1-0-0", "InputStatisticsInputDatasetFacet"), rows, size}
}

// OutputFacets are what a run has written of a dataset.
type OutputFacets struct {
	Statistics *OutputStatistics `json:"outputStatistics,omitempty"`
}

// OutputStatistics count what was written.
type OutputStatistics struct {
	Facet
	Rows int64 `json:"rowCount"`
	Size int64 `json:"size"`
}

// NewOutputStatistics counts rows and bytes.
func NewOutputStatistics(rows, size int64) *OutputStatistics {
	return &OutputStatistics{standard("1-0-2", "OutputStatisticsOutputDatasetFacet"), rows, size}
}
