package main

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error codes of zcashd.
const (
	codeNotFound  = -5  // no such block
	codeParameter = -8  // a parameter has a wrong type or value
	codeDecode    = -22 // not a transaction
	codeRejected  = -26 // refused, because of the rules or for now
	codeMethod    = -32601
	codeParse     = -32700
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

// params are the positional parameters of a request.
type params []any

// param returns a parameter, or a default if the request has no such parameter. The error
// is a fault if the parameter has another type than the default.
func param[T any](p params, i int, missing T) (T, error) {
	if i >= len(p) {
		return missing, nil
	}
	if v, ok := p[i].(T); ok {
		return v, nil
	}
	return missing, faultf(codeParameter, "parameter %d is a %T, want a %T", i+1, p[i], missing)
}

// methods are the calls that the node answers, by name. Each error is a fault.
var methods = map[string]func(*node, context.Context, params) (any, error){
	"getblock":           (*node).getBlock,
	"getblockchaininfo":  (*node).getBlockchainInfo,
	"sendrawtransaction": (*node).sendRawTransaction,
	"z_gettreestate":     (*node).getTreeState,
}

// maxRequest is the greatest length of a request in bytes: a transaction with
// the maximum number of actions, in hexadecimal.
const maxRequest = 4 << 20

// ServeHTTP answers a request of JSON-RPC with positional parameters.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     any
		Method string
		Params params
	}
	var reply struct {
		ID     any    `json:"id"`
		Result any    `json:"result,omitempty"`
		Error  *fault `json:"error,omitempty"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&request)
	if err != nil {
		err = faultf(codeParse, "Parse error")
	} else if answer := methods[request.Method]; answer == nil {
		err = faultf(codeMethod, "Method not found")
	} else {
		reply.Result, err = answer(n, r.Context(), request.Params)
	}
	reply.ID = request.ID
	w.Header().Set("Content-Type", "application/json")
	if errors.As(err, &reply.Error) {
		reply.Result = nil
	}
	_ = json.NewEncoder(w).Encode(reply) // the client may be gone
}

// sendRawTransaction accepts a transaction and returns its id.
func (n *node) sendRawTransaction(ctx context.Context, p params) (any, error) {
	text, err := param(p, 0, "")
	if err != nil {
		return nil, err
	}
	raw, notHex := hex.DecodeString(text)
	t, err := decodeTransaction(raw)
	if err = cmp.Or(notHex, err); err != nil {
		return nil, faultf(codeDecode, "TX decode failed: %v", err)
	}
	if err := n.builder.Submit(ctx, raw); err != nil {
		return nil, faultf(codeRejected, "%v", err)
	}
	return t.id(), nil
}
