package job

import "time"

// File is a job file. Its keys are the names of these fields with a lower-case first word; docs/reference/options.md lists them all
// with their defaults. The zero value of everything but the required keys is the default.
type File struct {
	Job         string `need:"true"` // name of the job: what its checkpoints are kept under
	Source      Source `need:"true"`
	Sink        Sink   `need:"true"`
	Checkpoint  Checkpoint
	Restart     Restart
	Lineage     *Lineage
	Parallelism int // lanes; 0 is one for each processor
}

// Source is where records come from: exactly one of its keys.
type Source struct {
	Files    *Files
	BigQuery *Read `key:"bigquery"`
}

// Read reads a table or a view, or the result of a query, and ends. Beside these two its fields are those of
// bigquery.SourceOptions.
type Read struct {
	Table string // project.dataset.table
	Query string // GoogleSQL

	ParentProject    string // owns and pays for the read, and the query
	MaterializeViews bool

	QueryLocation          string
	QueryResultDataset     string
	QueryResultProject     string
	QueryResultExpiration  time.Duration
	ReuseQueryResultWithin time.Duration
	QueryPriority          string `one:"interactive,batch"`
	QueryParameters        []QueryParameter

	SelectedFields   []string
	RowRestriction   string
	Partitions       []string
	SnapshotTime     time.Time
	SamplePercentage float64
	Limit            int64

	MaxStreamCount          int
	PreferredMinStreamCount int
	StreamsPerLane          int
	CompressResponses       bool
	TraceID                 string
	CreateSessionTimeout    time.Duration

	MaxRecordsPerFetch int
	MaxBytesPerFetch   Bytes
	FetchQueue         int
	RetryMaxAttempts   int
	StallTimeout       time.Duration

	Connection *Connection // nil is the sink's
}

// QueryParameter is a value of a query.
type QueryParameter struct {
	Name   string
	Type   string   `need:"true"` // as GoogleSQL calls it
	Value  *string  // its text; none is NULL
	Values []string // make it an array
}

// Files reads local files.
type Files struct {
	Paths          []string `need:"true"` // files and patterns; relative ones are relative to the job file
	Format         string   `one:"ndjson,avro,csv,parquet,protobuf"`
	CSV            *CSV
	Protobuf       *Protobuf
	MaxRecordBytes Bytes
	MaxBlockBytes  Bytes
	SplitBytes     Bytes
}

// CSV says more about CSV files.
type CSV struct {
	Delimiter        string   // between cells; "" is a comma
	Quote            string   // around cells; "" is a double quote
	NoQuotes         bool     // nothing encloses cells
	NoHeader         bool     // the first record does not name the columns
	SkipRows         int      // records before the header
	NullMarkers      []string // texts that mean NULL; none given: the empty text
	AllowJaggedRows  bool     // missing cells at the end are NULL
	TimestampNumbers string   `one:"reject,seconds,millis,micros"` // what numbers mean in TIMESTAMP columns
}

// Protobuf says which messages protobuf files hold, each with its length before it.
type Protobuf struct {
	Descriptors      string   `need:"true"` // a descriptor set file, with all that its files import
	Message          string   `need:"true"` // full name, with the package
	JSONOptions      []string // field options that mark JSON columns: full names, or numbers
	GeographyOptions []string // field options that mark GEOGRAPHY columns
}

// Sink is where records go: exactly one of its keys.
type Sink struct {
	BigQuery *BigQuery `key:"bigquery"`
}

// BigQuery writes to tables.
type BigQuery struct {
	Method         string `one:"default,exactly-once,file-loads"`
	Table          string `need:"true"` // project.dataset.table with {placeholders}
	Schema         Schema `need:"true"`
	Create         Create
	SchemaUpdate   SchemaUpdate
	Failures       Failures
	Location       string
	DefaultStream  DefaultStream
	BufferedStream BufferedStream
	FileLoads      FileLoads
	Connection     Connection

	PerDestinationMetrics bool // counters for each table too
}

// Schema says where the columns come from: exactly one of File, Table, Infer; and what becomes of fields without one.
type Schema struct {
	File  string // a schema file as bq writes it
	Table bool   // the schema of the table, which exists
	Infer *Infer

	UnknownFields string `one:"fail,ignore"` // what a field without a column does to its record
	Rest          string // name of a JSON column that takes every field without a column of its own
}

// Infer derives a schema for each table from the records that will go there.
type Infer struct {
	Sample int      // records looked at for each table; 0 is 1000
	Scan   Bytes    // how much input is looked through for them; 0 is all of it
	Text   bool     // keep times and dates as STRING
	JSON   []string // fields that become JSON columns whatever they hold, as "payload.labels" or "items[].extra"

	Geography []string // text fields that become GEOGRAPHY columns, where files tell their columns
	Required  bool     // columns that files say are never null are REQUIRED
}

// Create says how tables are made that are not there.
type Create struct {
	Disposition string `one:"if-needed,never"`
	Partition   *Partition
	Cluster     []string
	Description string
	Labels      map[string]string
	Datasets    bool // make datasets too
}

// SchemaUpdate says which changes are made to tables that are there.
type SchemaUpdate struct {
	AllowNewFields       bool // add columns that rows have and the table lacks
	AllowFieldRelaxation bool // make REQUIRED columns NULLABLE where the rows' schema has them so
}

// Partition is a table's partitioning.
type Partition struct {
	Type          string `need:"true" one:"hour,day,month,year"`
	Field         string
	Expiration    time.Duration
	RequireFilter bool
}

// Failures says what becomes of records that cannot be written.
type Failures struct {
	Policy     string `one:"fail,drop,dead-letter"`
	DeadLetter *DeadLetter
}

// DeadLetter is where records go that cannot be written: exactly one of File, PubSub, Table.
type DeadLetter struct {
	File         string  `need:"one"` // to append to, one JSON object a line; relative to the job file
	MaxFileBytes Bytes   // size from which on another file is begun; 0 is 1 GiB
	PubSub       *PubSub `need:"one" key:"pubsub"`
	Table        string  `need:"one"` // project.dataset.table, created if it does not exist; reached as the sink's tables are
}

// PubSub is a topic for dead letters, with credentials of its own.
type PubSub struct {
	Topic               string `need:"true"` // projects/PROJECT/topics/TOPIC
	MaxInFlightMessages *int   // of a lane; 0 waits for each, -1 only at flushes; none given: 1000
	FlushTimeout        time.Duration
	ShutdownTimeout     time.Duration
	KeyFile             string
	Endpoint            string // host:port of an emulator
}

// DefaultStream tunes the default write stream. Its fields are those of bigquery.DefaultStreamOptions.
type DefaultStream struct {
	MaxAppendBytes   Bytes
	MaxBufferedBytes Bytes

	RecoveryInitialBackoff time.Duration
	RecoveryMaxBackoff     time.Duration
	RecoveryMaxAttempts    int

	RetryInitialDelay    Delay
	RetryDelayMultiplier float64
	RetryMaxDelay        Delay
	RetryMaxAttempts     int
	MaxRetryDuration     Delay

	MaxInflightRequests     int
	MaxInflightBytes        Bytes
	MinConnectionsPerRegion int
	MaxConnectionsPerRegion int

	FlushInterval          time.Duration
	DestinationIdleTimeout time.Duration
	ArrowBatches           bool // parts of Parquet files' batches are sent as they are
}

// BufferedStream tunes the streams of method exactly-once. Its fields are those of bigquery.BufferedStreamOptions.
type BufferedStream struct {
	MaxAppendBytes   Bytes
	MaxBufferedBytes Bytes

	RecoveryInitialBackoff time.Duration
	RecoveryMaxBackoff     time.Duration
	RecoveryMaxAttempts    int

	RetryInitialDelay    Delay
	RetryDelayMultiplier float64
	RetryMaxDelay        Delay
	RetryMaxAttempts     int
	MaxRetryDuration     Delay

	DestinationIdleTimeout time.Duration
}

// FileLoads tunes method file-loads. Its fields are those of bigquery.FileLoadOptions.
type FileLoads struct {
	StagingPath        string // gs://bucket/prefix
	WriteDisposition   string `one:"write-append,write-truncate,write-truncate-data,write-empty"`
	TempDataset        string
	TempProject        string
	JobProject         string
	AllowProfileChange bool

	StagingFormat                        string `one:"avro,parquet,jsonl,csv"`
	ParquetCompression                   string `one:"zstd,none"`
	MaxStagingFileBytes                  Bytes
	MaxOpenDestinations                  int
	MaxPendingFiles                      int
	MaxSerializedRowBytes                Bytes
	DestinationIdleTimeout               time.Duration
	MaxConcurrentCheckpointFinalizations int

	MinCheckpointInterval         time.Duration
	MaxConcurrentDestinations     int
	LoadJobPollInitialBackoff     time.Duration
	LoadJobPollMaxBackoff         time.Duration
	SchemaReconcileInitialBackoff time.Duration
	SchemaReconcileMaxBackoff     time.Duration
	SchemaReconcileMaxAttempts    int
	RetryIDLimit                  int
	InlineJobRetries              int `zero:"good"`
	CallTimeout                   time.Duration
	MaxLoadFiles                  int
	MaxLoadBytes                  Bytes
	MaxCopyTables                 int

	EmptyInput      string `one:"leave,apply"`
	KeepStagedFiles bool

	JobLabels           map[string]string
	KMSKeyName          string `key:"kmsKeyName"`
	JobTimeout          time.Duration
	Reservation         string
	DecimalTargetTypes  []string
	IgnoreUnknownValues bool
}

// Connection says how to reach BigQuery; the zero value is the service itself with application default credentials.
type Connection struct {
	GRPCEndpoint    string // host:port of an emulator
	RESTEndpoint    string // host:port of an emulator
	StorageEndpoint string // host:port of an emulator of Cloud Storage
	KeyFile         string
	QuotaProject    string
}

// Checkpoint says when checkpoints are taken and where they are kept.
type Checkpoint struct {
	Every time.Duration // 0 is at the end of the input only
	Store string        // URL of a bucket: file://folder, gs://bucket/prefix, mem://
	Keep  int           // how many; 0 is 3
}

// Restart says how often a job that failed is started again.
type Restart struct {
	Policy   string `one:"exponential,fixed,none"`
	Attempts int
	Delay    time.Duration
	MaxDelay time.Duration
}

// Lineage says where it is told what the job reads and writes, as events of OpenLineage.
type Lineage struct {
	File      string        // appended to, one event a line
	HTTP      *LineageHTTP  // a server of OpenLineage
	Namespace string        // of the job; "" is "default"
	Every     time.Duration // between two events of a run that goes on; 0 is a minute
}

// LineageHTTP is a server that takes events.
type LineageHTTP struct {
	URL      string        `need:"true"`
	TokenEnv string        // name of the environment variable with a bearer token
	Timeout  time.Duration // of one request; 0 is 5 s
}
