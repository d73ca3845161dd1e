package rest

import (
	"encoding/json"

	"github.com/millrace-dev/millrace/localbq/internal/refusal"
)

func readExtract(common, map[string]json.RawMessage) (transfer, error) {
	return nil, refusal.New(refusal.NotImplemented, "local BigQuery does not implement job.configuration.extract")
}
