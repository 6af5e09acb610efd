package ethchain

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
)

// maxWait limits the wait that a node can request. The executor has the same limit.
const maxWait = time.Minute

// Dial connects to a node in the same way as [rpc.DialOptions]. Over HTTP, it also
// reads how long the node asks the caller to wait (Retry-After). That header is not
// read if an option sets another http.Client.
func Dial(ctx context.Context, url string, options ...rpc.ClientOption) (*rpc.Client, error) {
	client := rpc.WithHTTPClient(&http.Client{Transport: transport{}})
	return rpc.DialOptions(ctx, url, append([]rpc.ClientOption{client}, options...)...)
}

// transport passes the Retry-After header of responses with status 429 or 503 to
// the Chain that made the call, because the errors of rpc.Client do not contain the
// header.
type transport struct{}

// RoundTrip implements http.RoundTripper.
func (transport) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultTransport.RoundTrip(r)
	if wait, asked := r.Context().Value(waitKey{}).(*time.Duration); asked && err == nil && isBusy(answer.StatusCode) {
		*wait = retryAfter(answer.Header.Get("Retry-After"), time.Now())
	}
	return answer, err
}

// waitKey is the context key of a *time.Duration in which transport stores the
// wait that the node requested.
type waitKey struct{}

func isBusy(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable
}

// retryAfter parses a Retry-After header (RFC 9110, section 10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	// The header is a number of seconds or a date.
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(maxWait/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	return min(max(at.Sub(now), 0), maxWait)
}
