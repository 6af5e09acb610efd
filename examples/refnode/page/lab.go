package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/lab"
)

// maxBody is the maximum size of a request to the laboratory, in bytes.
const maxBody = 1024

// laboratory serves the fault injection. Pages of other sites cannot use it:
// browsers report the origin of a request, and send JSON to another site only
// if that site permits it.
func (p *Page) laboratory() http.Handler {
	mux := http.NewServeMux()
	for name, act := range map[string]func(l *lab.Lab, r *http.Request, value json.RawMessage) error{
		"loss":    func(l *lab.Lab, _ *http.Request, v json.RawMessage) error { return with(v, l.SetLoss) },
		"skip":    func(l *lab.Lab, _ *http.Request, v json.RawMessage) error { return with(v, l.SetSkip) },
		"latency": func(l *lab.Lab, _ *http.Request, v json.RawMessage) error { return with(v, l.SetLatency) },
		"stop":    func(l *lab.Lab, _ *http.Request, v json.RawMessage) error { return with(v, l.StopFinality) },
		"reorg":   func(l *lab.Lab, _ *http.Request, v json.RawMessage) error { return with(v, l.Reorg) },
		"kill": func(l *lab.Lab, r *http.Request, v json.RawMessage) error {
			return with(v, func(number uint64) error { return l.Kill(r.Context(), number) })
		},
	} {
		mux.HandleFunc("POST /lab/"+name, func(w http.ResponseWriter, r *http.Request) {
			if p.lab == nil {
				http.Error(w, "the laboratory is disabled: start the node with -lab, on the embedded chain", http.StatusForbidden)
				return
			}
			serveAct(w, r, func(value json.RawMessage) error { return act(p.lab, r, value) })
		})
	}
	mux.HandleFunc("POST /lab/replica", func(w http.ResponseWriter, r *http.Request) {
		serveAct(w, r, func(value json.RawMessage) error {
			return with(value, func(address string) error { return p.kill(r.Context(), address) })
		})
	})
	same := http.NewCrossOriginProtection()
	same.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "pages of other sites may not use the laboratory", http.StatusForbidden)
	}))
	return same.Handler(mux)
}

// serveAct reads the value of a request, and answers with the outcome of act.
func serveAct(w http.ResponseWriter, r *http.Request, act func(value json.RawMessage) error) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		http.Error(w, "want Content-Type: application/json", http.StatusUnsupportedMediaType)
		return
	}
	value, err := readValue(http.MaxBytesReader(w, r.Body, maxBody))
	if err == nil {
		err = act(value)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, lab.ErrRefused), errors.Is(err, node.ErrNoCluster):
		http.Error(w, err.Error(), http.StatusBadRequest)
	default:
		http.Error(w, "the node is stopping", http.StatusServiceUnavailable)
	}
}

// readValue reads a body of the form {"value": …}.
func readValue(body io.Reader) (json.RawMessage, error) {
	var request struct {
		Value json.RawMessage `json:"value"`
	}
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	if err := d.Decode(&request); err != nil {
		return nil, fmt.Errorf("%w: want {\"value\": …}: %w", lab.ErrRefused, err)
	}
	if len(request.Value) == 0 || string(request.Value) == "null" {
		return nil, fmt.Errorf("%w: want {\"value\": …}", lab.ErrRefused)
	}
	return request.Value, nil
}

// with decodes raw and calls f with the value.
func with[T any](raw json.RawMessage, f func(T) error) error {
	var value T
	if err := json.Unmarshal(raw, &value); err != nil {
		return fmt.Errorf("%w: value %s: %w", lab.ErrRefused, raw, err)
	}
	return f(value)
}
