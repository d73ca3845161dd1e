package pubsubqueue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"google.golang.org/api/option"

	"github.com/millrace-dev/millrace/internal/gcp"
)

// Options tune a queue. The zero value is the default of each.
type Options struct {
	// MaxInFlightMessages is how many messages of one lane may be unanswered: once there are as many, all are waited for.
	// Default 1000; Synchronous waits for each, Unbounded only at flushes.
	MaxInFlightMessages int
	// FlushTimeout is how long one wait takes, for all its messages together. Default 60 s; at least 1 ms.
	FlushTimeout time.Duration
	// ShutdownTimeout is how long a publisher may take to stop. Default 30 s; at least 1 ms.
	ShutdownTimeout time.Duration

	// KeyFile is the path of a service account key (JSON), read when a lane's handler is made. Default: application default
	// credentials.
	KeyFile string
	// Endpoint is the host:port of an emulator, which is reached in plain text and without credentials. Default: the one that
	// PUBSUB_EMULATOR_HOST names, as official clients have it, where there is no KeyFile.
	Endpoint string
}

// The values of Options.MaxInFlightMessages that are no numbers of messages.
const (
	Unbounded   = -1
	Synchronous = -2
)

var topicName = regexp.MustCompile(`^projects/([^/\s]+)/topics/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// resolve fills the defaults in, and says everything that is wrong at once.
func (o Options) resolve(topic string) (Options, error) {
	faults := []error{o.connection()}
	switch {
	case strings.TrimSpace(topic) == "":
		faults = append(faults, errors.New("dead-letter topic is required"))
	case !topicName.MatchString(topic):
		faults = append(faults, fmt.Errorf("dead-letter topic %q: expected projects/PROJECT/topics/TOPIC", topic))
	}
	if o.MaxInFlightMessages < Synchronous {
		faults = append(faults, fmt.Errorf("MaxInFlightMessages %d: expected a positive number, 0 for the default, Unbounded or Synchronous", o.MaxInFlightMessages))
	}
	o.MaxInFlightMessages = cmp.Or(o.MaxInFlightMessages, 1000)
	for _, d := range []struct {
		name  string
		value *time.Duration
		def   time.Duration
	}{{"FlushTimeout", &o.FlushTimeout, time.Minute}, {"ShutdownTimeout", &o.ShutdownTimeout, 30 * time.Second}} {
		if *d.value != 0 && *d.value < time.Millisecond {
			faults = append(faults, fmt.Errorf("%s must be at least 1ms: %v", d.name, *d.value))
		}
		*d.value = cmp.Or(*d.value, d.def)
	}
	return o, errors.Join(faults...)
}

func (o Options) connection() error {
	switch {
	case o.Endpoint != "" && (gcp.Connection{GRPCEndpoint: o.Endpoint}).Validate() != nil:
		return fmt.Errorf("Endpoint must be host:port, was '%s'", o.Endpoint)
	case o.KeyFile != "" && strings.TrimSpace(o.KeyFile) == "":
		return errors.New("KeyFile must not be blank: leave it empty to use application default credentials")
	case o.KeyFile != "" && o.Endpoint != "":
		return errors.New("KeyFile cannot be combined with Endpoint: emulators take no credentials")
	}
	return nil
}

// Validate reports every fault, as New does.
func (o Options) Validate(topic string) error {
	_, err := o.resolve(topic)
	return err
}

// ErrCredentials says that the key file could not be used. It deliberately wraps nothing and names neither the path nor the
// fault: errors of parsers can quote the key.
var ErrCredentials error = keyFileError{}

type keyFileError struct{}

func (keyFileError) Error() string {
	return "cannot load the service account key file given for the dead-letter topic"
}

// Permanent is true: see engine.Restart.
func (keyFileError) Permanent() bool { return true }

// dial is the options of clients. The key file is read here.
func (o Options) dial(ctx context.Context) ([]option.ClientOption, error) {
	c := gcp.Connection{GRPCEndpoint: o.Endpoint, KeyFile: o.KeyFile}
	if o.KeyFile == "" {
		c.GRPCEndpoint = cmp.Or(o.Endpoint, os.Getenv("PUBSUB_EMULATOR_HOST"))
	}
	opts, err := c.GRPCOptions(ctx)
	if errors.Is(err, gcp.ErrCredentials) {
		err = ErrCredentials
	}
	// One connection of HTTP/2 is many times what dead letters need.
	return append(opts, option.WithGRPCConnectionPool(1)), err
}
