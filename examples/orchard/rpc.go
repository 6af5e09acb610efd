package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Error codes of zcashd.
const (
	codeMisc       = -1  // a parameter cannot be read
	codeType       = -3  // a parameter has another JSON type
	codeNotFound   = -5  // no such block or transaction
	codeParameter  = -8  // a parameter is out of range
	codeDecode     = -22 // not a transaction
	codeVerify     = -25 // a transaction could not be accepted
	codeRejected   = -26 // refused by the rules
	codeInChain    = -27 // a transaction is in a block
	codeMethod     = -32601
	codeRequest    = -32600
	codeParameters = -32602 // a parameter is missing, or there are too many
	codeParse      = -32700
)

// fault is an error in the form of zcashd.
type fault struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (f *fault) Error() string { return f.Message }

func faultf(code int, format string, args ...any) error {
	return &fault{code, fmt.Sprintf(format, args...)}
}

// reply is the answer to a request. Exactly one of Result and Error is set.
type reply struct {
	ID     json.RawMessage `json:"id"`
	Result any             `json:"result"`
	Error  *fault          `json:"error"`
}

// maxRequest is the greatest length of a request in bytes: a transaction with
// the maximum number of actions, in hexadecimal. maxAnswer is that of the answer to a
// batch, because small requests can have large answers.
const maxRequest, maxAnswer = 4 << 20, 32 << 20

// ServeHTTP answers JSON-RPC like zcashd: a request with positional parameters, or a
// batch, which is an array of requests. The answers to a batch have the status 200, and so has
// the result of a request. For an error it is 404 if there is no such method, 400 if the
// request has a wrong form, and 500 otherwise. A batch whose answers are larger than maxAnswer
// gets one error.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "JSONRPC server handles only POST requests", http.StatusMethodNotAllowed)
		return
	}
	answer, status := any(nil), http.StatusOK
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	var batch []json.RawMessage
	switch {
	case err != nil || !json.Valid(body):
		answer, status = reply{Error: &fault{codeParse, "Parse error"}}, http.StatusInternalServerError
	case json.Unmarshal(body, &batch) == nil && batch != nil:
		replies, one := n.answerAll(r.Context(), batch)
		if answer = replies; one != nil {
			answer, status = one, one.status()
		}
	case kind(body) != "object":
		answer, status = reply{Error: &fault{codeParse, "Top-level object parse error"}}, http.StatusInternalServerError
	default:
		one := n.answer(r.Context(), body)
		answer, status = one, one.status()
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the client may be gone
}

// status returns the HTTP status of the answer to a single request.
func (r *reply) status() int {
	switch {
	case r.Error == nil:
		return http.StatusOK
	case r.Error.Code == codeRequest:
		return http.StatusBadRequest
	case r.Error.Code == codeMethod:
		return http.StatusNotFound
	}
	return http.StatusInternalServerError
}

// answerAll answers the requests of a batch, or all of them with one error if the answers are
// too large. It ends early if the client has left.
func (n *node) answerAll(ctx context.Context, batch []json.RawMessage) (replies []json.RawMessage, failed *reply) {
	replies = []json.RawMessage{}
	size := 0
	for _, raw := range batch {
		if err := ctx.Err(); err != nil {
			return nil, &reply{Error: &fault{codeMisc, err.Error()}}
		}
		r := n.answer(ctx, raw)
		one, err := json.Marshal(r)
		if err != nil {
			return nil, &reply{Error: &fault{codeMisc, err.Error()}}
		}
		if size += len(one); size > maxAnswer {
			return nil, &reply{Error: &fault{codeMisc, fmt.Sprintf("answers of more than %d bytes", maxAnswer)}}
		}
		replies = append(replies, one)
	}
	return replies, nil
}

// answer answers one request.
func (n *node) answer(ctx context.Context, raw json.RawMessage) (r reply) {
	result, err := n.call(ctx, raw, &r.ID)
	if err == nil {
		r.Result = result
	} else if !errors.As(err, &r.Error) {
		r.Error = &fault{codeMisc, err.Error()}
	}
	return r
}

// call calls the method that a request names. It sets id as soon as that is known.
func (n *node) call(ctx context.Context, raw json.RawMessage, id *json.RawMessage) (any, error) {
	var request map[string]json.RawMessage
	if err := json.Unmarshal(raw, &request); err != nil || request == nil {
		return nil, faultf(codeRequest, "Invalid Request object")
	}
	*id = request["id"]
	var name string
	switch kind(request["method"]) {
	case "string":
		if err := json.Unmarshal(request["method"], &name); err != nil {
			return nil, err
		}
	case "null":
		return nil, faultf(codeRequest, "Missing method")
	default:
		return nil, faultf(codeRequest, "Method must be a string")
	}
	var p params
	switch kind(request["params"]) {
	case "array":
		if err := json.Unmarshal(request["params"], &p); err != nil {
			return nil, err
		}
	case "null":
	default:
		return nil, faultf(codeRequest, "Params must be an array")
	}
	m, some := methods[name]
	if !some {
		return nil, faultf(codeMethod, "Method not found")
	}
	if err := m.checkNumber(name, len(p)); err != nil {
		return nil, err
	}
	return m.answer(n, ctx, p)
}
