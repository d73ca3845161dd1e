package rest

import (
	"github.com/millrace-dev/millrace/localbq/internal/query"
	"github.com/millrace-dev/millrace/localbq/internal/refusal"
	"github.com/millrace-dev/millrace/localbq/internal/schema"
)

// viewSchema checks a view's text and answers the columns it has. Bare table names in it belong to the view's dataset.
func (s *Server) viewSchema(c *call, v *schema.View) (*schema.Schema, error) {
	if s.Queries == nil {
		return nil, refusal.New(refusal.NotImplemented, "local BigQuery cannot make a view without a query engine: %s", s.NoQueries)
	}
	result, err := s.Queries.Run(c.r.Context(), query.Statement{
		SQL: v.Query, Project: c.project(), DefaultProject: c.project(), DefaultDataset: c.dataset().Dataset,
		Now: s.Clock.Now(), User: c.principal, DryRun: true,
	}, s.catalog(c.principal))
	if err != nil {
		return nil, err
	}
	return result.Schema, nil
}
