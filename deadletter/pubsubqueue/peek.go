package pubsubqueue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"regexp"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/millrace-dev/millrace/deadletter"
)

var subscriptionName = regexp.MustCompile(`^projects/([^/\s]+)/subscriptions/[A-Za-z][A-Za-z0-9._~+%-]{2,254}$`)

// CheckSubscription says what is wrong with the name of a subscription.
func CheckSubscription(name string) error {
	if !subscriptionName.MatchString(name) {
		return fmt.Errorf("subscription %q: expected projects/PROJECT/subscriptions/SUBSCRIPTION", name)
	}
	return nil
}

// Foreign is the error about a message that is no dead letter. Others follow.
type Foreign struct {
	ID  string
	Err error
}

func (e *Foreign) Error() string { return fmt.Sprintf("message %s: %v", e.ID, e.Err) }
func (e *Foreign) Unwrap() error { return e.Err }

// pullMessages is how many messages one call asks for.
const pullMessages = 100

// Peek reads the letters that a subscription has now, and gives the messages back when it is done: none is acknowledged.
// Pub/Sub may hand over fewer than there are.
func Peek(ctx context.Context, subscription string, o Options) iter.Seq2[deadletter.Letter, error] {
	return func(yield func(deadletter.Letter, error) bool) {
		enough := false
		err := peek(ctx, subscription, o, func(l deadletter.Letter, err error) bool {
			enough = !yield(l, err)
			return !enough
		})
		if err != nil && !enough {
			yield(deadletter.Letter{}, fmt.Errorf("dead letters of %s: %w", subscription, err))
		}
	}
}

func peek(ctx context.Context, subscription string, o Options, yield func(deadletter.Letter, error) bool) (err error) {
	if err := CheckSubscription(subscription); err != nil {
		return err
	}
	opts, err := o.dial(ctx)
	if err != nil {
		return err
	}
	client, err := pubsub.NewClient(ctx, subscriptionName.FindStringSubmatch(subscription)[1], opts...)
	if err != nil {
		return err
	}
	defer client.Close()
	var held []string
	defer func() { err = errors.Join(err, giveBack(context.WithoutCancel(ctx), client, subscription, held)) }()
	seen := map[string]bool{}
	for {
		// ReturnImmediately is discouraged for those who wait for messages, and this is what it is for: there may be none.
		//lint:ignore SA1019 there is no other way to ask for what is there and no more
		q := &pubsubpb.PullRequest{Subscription: subscription, MaxMessages: pullMessages, ReturnImmediately: true}
		answer, err := client.SubscriptionAdminClient.Pull(ctx, q)
		if err != nil {
			return err
		}
		fresh := false
		for _, m := range answer.GetReceivedMessages() {
			held = append(held, m.GetAckId())
			id := m.GetMessage().GetMessageId()
			if seen[id] {
				continue
			}
			seen[id], fresh = true, true
			l, err := letter(m.GetMessage().GetData(), m.GetMessage().GetAttributes())
			if err != nil {
				err = &Foreign{id, err}
			}
			if !yield(l, err) {
				return nil
			}
		}
		if !fresh {
			return nil
		}
	}
}

// giveBack makes messages available again at once.
func giveBack(ctx context.Context, client *pubsub.Client, subscription string, held []string) error {
	for len(held) > 0 {
		n := min(len(held), pullMessages)
		err := client.SubscriptionAdminClient.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: subscription, AckIds: held[:n]})
		if err != nil {
			return fmt.Errorf("give messages back: %w", err)
		}
		held = held[n:]
	}
	return nil
}
