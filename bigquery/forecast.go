package bigquery

import "github.com/millrace-dev/millrace/bigquery/internal/loadplan"

type (
	// FileLoadFlow is what is expected of a job with MethodFileLoads that goes on and on.
	FileLoadFlow = loadplan.Flow
	// FileLoadForecast is what it comes to in files, jobs and quotas: rows spread evenly over time, tables and lanes, and nothing goes
	// wrong.
	FileLoadForecast = loadplan.Forecast
)

// Forecast is what a flow of rows comes to with these options, of which StagingPath may be missing.
func (f FileLoadOptions) Forecast(flow FileLoadFlow) (FileLoadForecast, error) {
	if f.StagingPath == "" {
		f.StagingPath = "gs://nowhere"
	}
	o, err := SinkOptions{Method: MethodFileLoads, FileLoads: f}.resolveFiles()
	if err != nil {
		return FileLoadForecast{}, err
	}
	return flow.Forecast(loadplan.Staging{
		Disposition: o.Plan.Disposition, FileBytes: o.MaxFileBytes, OpenFiles: o.MaxOpenDestinations, PendingFiles: o.MaxPendingFiles,
		MinEvery: o.MinCheckpointInterval, Limits: o.Limits,
	})
}
