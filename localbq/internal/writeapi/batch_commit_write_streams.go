package writeapi

import (
	"context"
	"errors"

	"cloud.google.com/go/bigquery/storage/apiv1/storagepb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/millrace-dev/millrace/localbq/internal/store"
)

// BatchCommitWriteStreams makes all rows of finalized PENDING streams of one table visible at once. If any of the streams
// cannot be committed none is: the answer is OK without a commit time and has an error for each bad one.
func (s *Server) BatchCommitWriteStreams(ctx context.Context, q *storagepb.BatchCommitWriteStreamsRequest) (*storagepb.BatchCommitWriteStreamsResponse, error) {
	answer, err := s.batchCommit(ctx, q)
	return answer, ended(err)
}

func (s *Server) batchCommit(ctx context.Context, q *storagepb.BatchCommitWriteStreamsRequest) (*storagepb.BatchCommitWriteStreamsResponse, error) {
	ref, ok := store.ParseTablePath(q.GetParent())
	if !ok {
		return nil, invalid(q.GetParent(), "Invalid table name.")
	}
	ids, err := membersOf(ref, q)
	if err != nil {
		return nil, err
	}
	t, err := s.table(ctx, ref, permissionUpdate)
	if err != nil {
		return nil, err
	}
	written, err := t.CommitStreams(ids, noteOf(ctx), account(ctx, t))
	if refused, ok := errors.AsType[*store.CommitRefused](err); ok {
		return refusedCommit(t, refused), nil
	}
	if err != nil {
		return nil, streamFailure(streamName{full: q.GetParent(), table: ref}, 0, err)
	}
	return &storagepb.BatchCommitWriteStreamsResponse{CommitTime: timestamppb.New(store.TimeOf(written.After))}, nil
}

// membersOf are the ids of the streams to commit, which must all be of the table and differ.
func membersOf(ref store.TableRef, q *storagepb.BatchCommitWriteStreamsRequest) ([]string, error) {
	if len(q.GetWriteStreams()) == 0 {
		return nil, invalid(q.GetParent(), "No write streams to commit are named.")
	}
	seen := map[string]bool{}
	var ids []string
	for _, full := range q.GetWriteStreams() {
		name, ok := parseStream(full)
		switch {
		case !ok:
			return nil, invalidName(full)
		case name.table != ref:
			return nil, invalid(full, "The stream does not belong to the parent %s.", q.GetParent())
		case seen[name.id]:
			return nil, invalid(full, "The stream is named more than once.")
		}
		seen[name.id] = true
		ids = append(ids, name.id)
	}
	return ids, nil
}

func refusedCommit(t *store.Table, refused *store.CommitRefused) *storagepb.BatchCommitWriteStreamsResponse {
	answer := &storagepb.BatchCommitWriteStreamsResponse{}
	for _, e := range refused.Streams {
		if e.ID == defaultStream {
			e.Fault = store.StreamWrongKind
		}
		f := stateFailure(streamPath(t, e.ID), e.Fault)
		answer.StreamErrors = append(answer.StreamErrors, &storagepb.StorageError{Code: f.storage, Entity: f.entity, ErrorMessage: f.message})
	}
	return answer
}
