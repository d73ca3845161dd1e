package rest

import (
	"hash/fnv"

	bqapi "google.golang.org/api/bigquery/v2"
)

// listProjects answers the projects that hold a dataset.
func (s *Server) listProjects(c *call) (any, error) {
	items, next, err := page(c, s.Store.Projects(), func(id string) string { return id })
	if err != nil {
		return nil, err
	}
	out := &bqapi.ProjectList{
		Kind: "bigquery#projectList", Etag: listTag(items), NextPageToken: next, TotalItems: int64(len(s.Store.Projects())),
		ForceSendFields: []string{"TotalItems"},
	}
	for _, id := range items {
		out.Projects = append(out.Projects, &bqapi.ProjectListProjects{
			Kind: "bigquery#project", Id: id, NumericId: projectNumber(id), FriendlyName: id,
			ProjectReference: &bqapi.ProjectReference{ProjectId: id},
		})
	}
	return out, nil
}

// projectNumber stands in for the number a project would have.
func projectNumber(id string) uint64 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return uint64(h.Sum32())
}

func (s *Server) serviceAccount(c *call) (any, error) {
	return &bqapi.GetServiceAccountResponse{
		Kind: "bigquery#getServiceAccountResponse", Email: "bq-" + c.project() + "@bigquery-encryption.iam.gserviceaccount.com",
	}, nil
}
