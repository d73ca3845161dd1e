// Package killtest kills a client of BigQuery at every step of every call it makes, starts it again, and lets a test judge
// what came of its work.
//
// The client is a process of its own, given by the command that starts it, and runs once undisturbed: the audit log of the
// local service then knows its calls. For each of them, and each of the three phases of a call (nothing done yet; done and not
// answered; answered), a fresh client works against a fresh service until it gets there. It is then killed with SIGKILL, which
// gives it no chance to tidy up, and started again by the same command, and has to end well.
//
//	killtest.Test{
//		Client: func(t testing.TB, bq *localbq.Instance, dir string) *exec.Cmd {
//			return exec.Command("loader", "--state", dir, "--rest", bq.REST(), "--grpc", bq.GRPC())
//		},
//		Check: func(t testing.TB, bq *localbq.Instance) {
//			if got, err := bq.Audit().ExactlyOnce("d.t", "id", want); err != nil || !got.OK() {
//				t.Errorf("%+v, %v", got, err)
//			}
//		},
//	}.Run(t)
//
// Each point is a subtest, as in AppendRows:3:applied, and runs alone by its name. A [ServerTest] kills the service, in a process
// of its own, at the same points, and starts it again over the folder that it kept its data in.
package killtest
