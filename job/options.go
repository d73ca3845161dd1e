package job

import (
	"github.com/millrace-dev/millrace/bigquery"
	"github.com/millrace-dev/millrace/bigquery/table"
	"github.com/millrace-dev/millrace/engine"
)

func (b *BigQuery) sinkOptions() bigquery.SinkOptions {
	o := bigquery.SinkOptions{
		Location: b.Location,
		Create: bigquery.Create{
			Datasets: b.Create.Datasets,
			Options: table.CreateOptions{
				Partition:   b.Create.Partition.options(),
				Cluster:     b.Create.Cluster,
				Description: b.Create.Description,
				Labels:      b.Create.Labels,
			},
		},
		SchemaUpdate:          bigquery.SchemaUpdate(b.SchemaUpdate),
		DefaultStream:         knobs[bigquery.DefaultStreamOptions](b.DefaultStream),
		PerDestinationMetrics: b.PerDestinationMetrics,
	}
	if b.ExactlyOnce() {
		o.Method = bigquery.MethodExactlyOnce
		o.BufferedStream = knobs[bigquery.BufferedStreamOptions](b.BufferedStream)
		o.DefaultStream = bigquery.DefaultStreamOptions{}
	}
	if b.Create.Disposition == "never" {
		o.Create.Disposition = bigquery.CreateNever
	}
	return o
}

// ExactlyOnce reports whether rows become visible by commits.
func (b *BigQuery) ExactlyOnce() bool { return b.Method == "exactly-once" }

var partitionTypes = map[string]table.PartitionType{
	"hour": table.PartitionHour, "day": table.PartitionDay, "month": table.PartitionMonth, "year": table.PartitionYear,
}

func (p *Partition) options() table.Partition {
	if p == nil {
		return table.Partition{}
	}
	return table.Partition{
		Type:          partitionTypes[p.Type],
		Field:         p.Field,
		ExpirationMs:  p.Expiration.Milliseconds(),
		RequireFilter: p.RequireFilter,
	}
}

func (c Connection) options() bigquery.Connection {
	return bigquery.Connection{GRPCEndpoint: c.GRPCEndpoint, RESTEndpoint: c.RESTEndpoint, KeyFile: c.KeyFile, QuotaProject: c.QuotaProject}
}

var restartPolicies = map[string]engine.RestartPolicy{
	"": engine.Exponential, "exponential": engine.Exponential, "fixed": engine.FixedDelay, "none": engine.NoRestart,
}

func (r Restart) options() engine.Restart {
	return engine.Restart{Policy: restartPolicies[r.Policy], Initial: r.Delay, Max: r.MaxDelay, Attempts: r.Attempts}
}
