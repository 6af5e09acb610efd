package ethchain

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

// maxWait bounds a node's wish to be left alone, as the executor does.
const maxWait = time.Minute

// Dial connects to a node as rpc.DialOptions does, and hears over HTTP for how long the node asks to be left alone (Retry-After). An option that sets
// another http.Client takes that away, unless its transport is a [Listener].
func Dial(ctx context.Context, url string, options ...rpc.ClientOption) (*rpc.Client, error) {
	heard := rpc.WithHTTPClient(&http.Client{Transport: Listener{}})
	return rpc.DialOptions(ctx, url, append([]rpc.ClientOption{heard}, options...)...)
}

// Listener is an http.RoundTripper that lets a Chain know of the Retry-After header of answers 429 and 503, which an rpc.HTTPError does not have. It is
// safe for concurrent use if Base is.
type Listener struct {
	// Base makes the round trips; nil means http.DefaultTransport.
	Base http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (l Listener) RoundTrip(r *http.Request) (*http.Response, error) {
	base := l.Base
	if base == nil {
		base = http.DefaultTransport
	}
	answer, err := base.RoundTrip(r)
	if wait, asked := r.Context().Value(waitKey{}).(*time.Duration); asked && err == nil && isBusy(answer.StatusCode) {
		*wait = retryAfter(answer.Header.Get("Retry-After"), time.Now())
	}
	return answer, err
}

// waitKey is of the place, in a call's context, where its Listener notes for how long to wait.
type waitKey struct{}

func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter reads a header that is a number of seconds or a date (RFC 9110, section 10.2.3); 0 means that it is neither, or over.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxWait)
}

// batch makes calls. An error of all of them wraps an eoa.BusyError where the node asks to be left alone.
func (c *Chain) batch(ctx context.Context, calls []rpc.BatchElem) error {
	var wait time.Duration
	err := c.client.BatchCallContext(context.WithValue(ctx, waitKey{}, &wait), calls)
	if err == nil {
		return nil
	}
	var failed rpc.HTTPError
	if errors.As(err, &failed) && isBusy(failed.StatusCode) {
		err = &eoa.BusyError{RetryAfter: wait, Err: err}
	}
	return fmt.Errorf("ethchain: %w", err)
}
