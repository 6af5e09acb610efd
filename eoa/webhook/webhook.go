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
	"time"

	"github.com/jamq/jamq/eoa"
)

// Header is where the signature of the body stands.
const Header = "X-Jamq-Signature"

// ErrInvalidConfig is wrapped by the errors of New.
var ErrInvalidConfig = errors.New("webhook: invalid config")

// Endpoint takes events.
type Endpoint struct {
	// URL is posted to.
	URL string
	// Secret signs, at least 16 bytes.
	Secret []byte
}

// Config sets a Sender.
type Config struct {
	// Endpoints returns who is told of an event; none is fine.
	Endpoints func(eoa.Event) []Endpoint
	// DeadLetter keeps an event that an endpoint did not take; its error stops the delivery, which then comes again.
	DeadLetter func(ctx context.Context, url string, e eoa.Event, reason error) error
	// Tries is how often, 0 meaning 5; FirstWait is the wait after the first, doubling, 0 meaning a second; MaxWait bounds it, 0 meaning 30 s.
	Tries              int
	FirstWait, MaxWait time.Duration
	// Client posts, and follows no redirects; nil means one with a time-out of 10 seconds.
	Client *http.Client
}

// Sender posts events. It is safe for concurrent use.
type Sender struct{ cfg Config }

const leastSecret = 16

// New returns a sender. The error wraps ErrInvalidConfig.
func New(cfg Config) (*Sender, error) {
	if cfg.Endpoints == nil || cfg.DeadLetter == nil || cfg.Tries < 0 || cfg.FirstWait < 0 || cfg.MaxWait < 0 {
		return nil, fmt.Errorf("%w: want Endpoints, DeadLetter, and nothing negative", ErrInvalidConfig)
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
	client := *cfg.Client // a redirect would be asked for without the event, and its 200 would count
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cfg.Client = &client
	return &Sender{cfg}, nil
}

// Handle posts an event to its endpoints, one after the other. It returns ctx's error, or that of DeadLetter; then the event comes again.
func (s *Sender) Handle(ctx context.Context, e eoa.Event) error {
	body, err := json.Marshal(e)
	if err != nil {
		return err
	}
	for _, endpoint := range s.cfg.Endpoints(e) {
		reason := s.deliver(ctx, endpoint, body)
		if err := ctx.Err(); err != nil {
			return err
		}
		if reason == nil {
			continue
		}
		if err := s.cfg.DeadLetter(ctx, endpoint.URL, e, reason); err != nil {
			return fmt.Errorf("webhook: dead letter: %w", err)
		}
	}
	return nil
}

func (s *Sender) deliver(ctx context.Context, endpoint Endpoint, body []byte) (err error) {
	if len(endpoint.Secret) < leastSecret {
		return fmt.Errorf("%w: a secret of %d bytes, want at least %d", ErrInvalidConfig, len(endpoint.Secret), leastSecret)
	}
	wait := s.cfg.FirstWait
	for try := 1; ; try++ {
		if err = s.post(ctx, endpoint, body); err == nil || try >= s.cfg.Tries {
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
	const enough = 64 << 10 // so that the connection can be used again
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, enough))
	_ = answer.Body.Close()
	if answer.StatusCode < http.StatusOK || answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("webhook: %s answers %s", endpoint.URL, answer.Status)
	}
	return nil
}

// Sign returns the value of the header for a body.
func Sign(secret, body []byte) string {
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write(body)
	return "sha256=" + hex.EncodeToString(mac.Sum(nil))
}

// Verify reports whether a header's value is that of a body, in constant time. Endpoints use it.
func Verify(secret, body []byte, header string) bool {
	return hmac.Equal([]byte(Sign(secret, body)), []byte(header))
}
