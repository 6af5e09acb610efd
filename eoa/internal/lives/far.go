package lives

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// Far is the URL of a chain in another process, which serves it with [Handler].
// It is for tests that kill processes. It implements eoa.BlobChain, except
// Estimate.
type Far string

// Handler serves c to [Far] chains. A call is carried out even if its caller
// has gone.
func Handler(c eoa.Chain) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/look", answering(func(ctx context.Context, a common.Address) (any, error) {
		l, err := c.Look(ctx, a)
		return &l, err
	}))
	mux.HandleFunc("/blobs", answering(func(ctx context.Context, a common.Address) (any, error) {
		blobs, knows := c.(eoa.BlobChain)
		if !knows {
			return nil, errors.New("lives: the chain has no blobs")
		}
		l, err := blobs.LookBlobs(ctx, a)
		return &l, err
	}))
	mux.HandleFunc("/ask", answering(func(ctx context.Context, q eoa.Questions) (any, error) { return c.Ask(ctx, q) }))
	mux.HandleFunc("/send", answering(func(ctx context.Context, raws [][]byte) (any, error) { return c.Send(ctx, raws), nil }))
	return mux
}

// answering returns a handler that decodes a question and encodes its answer.
func answering[Q any](answer func(context.Context, Q) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var q Q
		err := json.NewDecoder(r.Body).Decode(&q)
		var a any
		if err == nil {
			a, err = answer(context.WithoutCancel(r.Context()), q)
		}
		if err == nil {
			err = json.NewEncoder(w).Encode(a)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}
}

// ask sends a question and decodes the answer.
func (f Far) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, string(f)+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = got.Body.Close() }()
	if got.StatusCode != http.StatusOK {
		return errors.New(got.Status)
	}
	return json.NewDecoder(got.Body).Decode(answer)
}

// Look implements eoa.Chain.
func (f Far) Look(ctx context.Context, a common.Address) (l eoa.Look, err error) {
	return l, f.ask(ctx, "/look", a, &l)
}

// LookBlobs implements eoa.BlobChain. It returns an error if the other
// process's chain does not implement it.
func (f Far) LookBlobs(ctx context.Context, a common.Address) (l eoa.Look, err error) {
	return l, f.ask(ctx, "/blobs", a, &l)
}

// Ask implements eoa.Chain.
func (f Far) Ask(ctx context.Context, q eoa.Questions) (a eoa.Answers, err error) {
	return a, f.ask(ctx, "/ask", q, &a)
}

// Estimate implements eoa.Chain. It always returns an error: requests must set
// Gas.
func (f Far) Estimate(_ context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, len(requests))
	for i := range out {
		out[i].Err = errors.New("lives: Far does not estimate gas: set Request.Gas")
	}
	return out
}

// Send implements eoa.Chain.
func (f Far) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := make([]eoa.Sent, len(raws))
	if err := f.ask(ctx, "/send", raws, &out); err != nil {
		return make([]eoa.Sent, len(raws))
	}
	return out
}
