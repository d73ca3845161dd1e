// Package localbq is a BigQuery that runs in the process: the v2 REST API, the Storage Write API and the Storage Read API,
// answering as BigQuery answers, for the official clients unmodified.
//
//	bq, err := localbq.Start(ctx, localbq.Config{})
//	defer bq.Close()
//	client, err := bigquery.NewClient(ctx, "my-project", bq.ClientOptions()...)
//	writer, err := managedwriter.NewClient(ctx, "my-project", bq.GRPCClientOptions()...)
//
// It keeps what it is given in memory, or in a folder that survives the process (Config.Dir). It checks no credential and
// listens on the loopback interface unless told otherwise. What it does not implement it refuses, with HTTP 501 and reason
// notImplemented or with gRPC UNIMPLEMENTED, naming what is missing; it never takes a request and ignores a part of it that
// would change the result. Queries need an engine (Config.Queries); without one everything else works.
//
// For tests of delivery it can be told to fail between any two steps (Instance.Faults), to stand still (Config.Clock), and to
// account for every row it ever took (Instance.Audit).
package localbq
