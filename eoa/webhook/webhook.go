package webhook

import (
	"bytes"
	"cmp"
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

// Header is the name of the HTTP header that has the signature of the body.
const Header = "X-Jamq-Signature"

// ErrInvalidConfig is wrapped by the errors of [New].
var ErrInvalidConfig = errors.New("webhook: invalid config")

// Endpoint is a server that receives events.
type Endpoint struct {
	// URL is the address to post to.
	URL string
	// Secret is the key that signs the posts, at least 16 bytes. The endpoint has
	// the same key.
	Secret []byte
}

// Config configures a [Sender]. Endpoints and DeadLetter are required.
type Config struct {
	// Endpoints returns the endpoints that receive an event. It may return none.
	Endpoints func(eoa.Event) []Endpoint
	// DeadLetter stores an event that an endpoint did not accept in Config.Tries
	// posts, so that the host can post it later. If DeadLetter returns an error,
	// the event is delivered again.
	DeadLetter func(ctx context.Context, url string, e eoa.Event, reason error) error
	// Tries is how often an event is posted to an endpoint; 0 means 5.
	Tries int
	// FirstWait is the wait after the first failed post; 0 means one second. The
	// wait doubles with each further failure.
	FirstWait time.Duration
	// MaxWait is the longest wait between two posts; 0 means 30 seconds.
	MaxWait time.Duration
	// Client makes the requests; nil means a client with a timeout of 10 seconds.
	// Redirects are never followed.
	Client *http.Client
}

// Sender posts events to endpoints. It is safe for concurrent use.
type Sender struct {
	cfg  Config
	down sync.Map // keys: URLs that did not accept their last event
}

// New returns a sender. The error wraps ErrInvalidConfig.
func New(cfg Config) (*Sender, error) {
	if cfg.Endpoints == nil || cfg.DeadLetter == nil || cfg.Tries < 0 || cfg.FirstWait < 0 || cfg.MaxWait < 0 {
		return nil, fmt.Errorf("%w: want Endpoints and DeadLetter, and no negative field", ErrInvalidConfig)
	}
	cfg.Tries, cfg.FirstWait, cfg.MaxWait = cmp.Or(cfg.Tries, 5), cmp.Or(cfg.FirstWait, time.Second), cmp.Or(cfg.MaxWait, 30*time.Second)
	cfg.Client = cmp.Or(cfg.Client, &http.Client{Timeout: 10 * time.Second})
	// Redirects are not followed. The followed request may lack the event, and an
	// answer 200 to it would wrongly acknowledge the event.
	client := *cfg.Client
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Client = &client
	return &Sender{cfg: cfg}, nil
}

// Handle posts an event to all its endpoints at the same time. It returns when each
// endpoint has accepted the event or DeadLetter has stored it. Pass Handle to
// [eoa.Client.Deliver] or [eoa.Fleet.Deliver], which call it again with the same
// event after an error. The error is ctx's, or that of DeadLetter.
//
// If an endpoint did not accept an event in Config.Tries posts, Handle posts each
// further event to this endpoint only once, until the endpoint accepts an event. A
// broken endpoint therefore does not hold up the others for long.
func (s *Sender) Handle(ctx context.Context, e eoa.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	endpoints := s.cfg.Endpoints(e)
	reasons := make([]error, len(endpoints))
	var all sync.WaitGroup
	for i := range endpoints {
		all.Go(func() { reasons[i] = s.deliver(ctx, endpoints[i], body) })
	}
	all.Wait()
	for i, reason := range reasons {
		if err := ctx.Err(); err != nil {
			return err
		}
		if reason == nil {
			continue
		}
		if err := s.cfg.DeadLetter(ctx, endpoints[i].URL, e, reason); err != nil {
			return fmt.Errorf("webhook: dead letter: %w", err)
		}
	}
	return nil
}

// deliver posts a body until the endpoint accepts it, at most Config.Tries times.
func (s *Sender) deliver(ctx context.Context, endpoint Endpoint, body []byte) (err error) {
	if len(endpoint.Secret) < 16 {
		return fmt.Errorf("%w: secret of %d bytes, want at least 16", ErrInvalidConfig, len(endpoint.Secret))
	}
	tries, wait := s.cfg.Tries, s.cfg.FirstWait
	if _, down := s.down.Load(endpoint.URL); down {
		tries = 1
	}
	for try := 1; ; try++ {
		if err = s.post(ctx, endpoint, body); err == nil {
			s.down.Delete(endpoint.URL)
			return nil
		}
		if try >= tries {
			s.down.Store(endpoint.URL, nil)
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
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

// Sign returns the signature of a body in the form of the header's value.
func Sign(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify reports whether header is the signature of body. Endpoints call it for
// each post. It takes the same time for right and wrong signatures.
func Verify(secret, body []byte, header string) bool {
	return hmac.Equal([]byte(Sign(secret, body)), []byte(header))
}
