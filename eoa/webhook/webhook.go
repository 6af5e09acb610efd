package webhook

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/jamq/jamq/eoa"
)

// Header is the name of the header that has the signature of the body.
const Header = "X-Jamq-Signature"

// ErrInvalidConfig is wrapped by the errors of [New].
var ErrInvalidConfig = errors.New("webhook: invalid config")

// Endpoint is a receiver of events.
type Endpoint struct {
	// URL is the address to post to.
	URL string
	// Secret is the key of the signature, at least 16 bytes.
	Secret []byte
}

// Config configures a [Sender]. Endpoints and DeadLetter are required.
type Config struct {
	// Endpoints returns the receivers of an event; it may return none.
	Endpoints func(eoa.Event) []Endpoint
	// DeadLetter stores an event that an endpoint did not acknowledge. If it
	// returns an error, delivery stops, and the event is delivered again later.
	DeadLetter func(ctx context.Context, url string, e eoa.Event, reason error) error
	// Tries is the number of posts per event and endpoint; 0 means 5.
	Tries int
	// FirstWait is the wait after the first failure. It doubles with each
	// failure. 0 means one second.
	FirstWait time.Duration
	// MaxWait is the longest wait between two posts; 0 means 30 seconds.
	MaxWait time.Duration
	// Client makes the requests. Redirects are never followed. nil means a
	// client with a timeout of 10 seconds.
	Client *http.Client
}

// Sender posts events. It is safe for concurrent use.
type Sender struct {
	cfg Config

	mu      sync.Mutex
	streams map[eoa.Account]*stream
}

const leastSecret = 16

// New returns a sender. The error wraps ErrInvalidConfig.
func New(cfg Config) (*Sender, error) {
	if cfg.Endpoints == nil || cfg.DeadLetter == nil || cfg.Tries < 0 || cfg.FirstWait < 0 || cfg.MaxWait < 0 {
		return nil, fmt.Errorf("%w: want Endpoints and DeadLetter, and no negative field", ErrInvalidConfig)
	}
	if cfg.Tries == 0 {
		cfg.Tries = 5
	}
	if cfg.FirstWait == 0 {
		cfg.FirstWait = time.Second
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = 30 * time.Second
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{Timeout: 10 * time.Second}
	}
	// Following a redirect would drop the event, and status 200 would still
	// acknowledge it.
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Client = &client
	return &Sender{cfg: cfg, streams: map[eoa.Account]*stream{}}, nil
}

// Handle posts an event to its endpoints, to all at the same time, and returns
// when the slowest has taken it or it is kept as a dead letter. [Sender.Deliver]
// lets no endpoint wait for another. Handle returns ctx's error, or the error of
// DeadLetter. After an error the event is delivered again.
func (s *Sender) Handle(ctx context.Context, e eoa.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	endpoints := s.cfg.Endpoints(e)
	reasons := make([]error, len(endpoints))
	var all sync.WaitGroup
	for i := range endpoints {
		all.Add(1)
		go func() {
			defer all.Done()
			reasons[i] = s.deliver(ctx, endpoints[i], body, s.cfg.Tries, func() {})
		}()
	}
	all.Wait()
	for i, reason := range reasons {
		if err := s.keep(ctx, endpoints[i].URL, e, reason); err != nil {
			return err
		}
	}
	return nil
}

// keep passes an event to DeadLetter if reason is not nil. It returns ctx's error
// if that may be the reason.
func (s *Sender) keep(ctx context.Context, url string, e eoa.Event, reason error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if reason == nil {
		return nil
	}
	if err := s.cfg.DeadLetter(ctx, url, e, reason); err != nil {
		return fmt.Errorf("webhook: dead letter: %w", err)
	}
	return nil
}

// deliver posts a body until the endpoint takes it, at most tries times. It calls
// failed after each failure.
func (s *Sender) deliver(ctx context.Context, endpoint Endpoint, body []byte, tries int, failed func()) (err error) {
	if len(endpoint.Secret) < leastSecret {
		return fmt.Errorf("%w: secret of %d bytes, want at least %d", ErrInvalidConfig, len(endpoint.Secret), leastSecret)
	}
	wait := s.cfg.FirstWait
	for try := 1; ; try++ {
		if err = s.post(ctx, endpoint, body); err == nil {
			return nil
		}
		if failed(); try >= tries {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		wait = min(2*wait, s.cfg.MaxWait)
	}
}

func (s *Sender) post(ctx context.Context, endpoint Endpoint, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(Header, Sign(endpoint.Secret, body))
	answer, err := s.cfg.Client.Do(r)
	if err != nil {
		return err
	}
	const enough = 64 << 10 // lets the connection be reused
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, enough))
	_ = answer.Body.Close()
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("webhook: %s answered %s", endpoint.URL, answer.Status)
	}
	return nil
}

// Sign returns the header value for a body.
func Sign(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify reports whether header is the signature of body, in constant time.
// Endpoints call it.
func Verify(secret, body []byte, header string) bool {
	return hmac.Equal([]byte(Sign(secret, body)), []byte(header))
}
