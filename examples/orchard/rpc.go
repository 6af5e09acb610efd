package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// Error codes of zcashd.
const (
	codeNotFound  = -5  // no such block or transaction
	codeParameter = -8  // a number out of range
	codeDecode    = -22 // not a transaction
	codeRejected  = -26 // refused by the rules
	codeMethod    = -32601
	codeRequest   = -32600
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

// maxRequest is the greatest length of a request in bytes: a transaction with
// the maximum number of actions, in hexadecimal.
const maxRequest = 4 << 20

// ServeHTTP answers JSON-RPC like zcashd: one request with positional
// parameters, and HTTP 500 for an error.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage   `json:"id"`
		Method string            `json:"method"`
		Params []json.RawMessage `json:"params"`
	}
	var result any
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxRequest)).Decode(&request)
	if err != nil {
		err = faultf(codeParse, "Parse error: %v", err)
	} else {
		result, err = n.call(r.Context(), request.Method, request.Params)
	}
	reply := map[string]any{"id": request.ID, "result": result, "error": nil}
	w.Header().Set("Content-Type", "application/json")
	if err != nil {
		var f *fault
		if !errors.As(err, &f) {
			f = &fault{codeRequest, err.Error()}
		}
		reply["result"], reply["error"] = nil, f
		w.WriteHeader(http.StatusInternalServerError)
	}
	_ = json.NewEncoder(w).Encode(reply) // the client may be gone
}

// call answers one request.
func (n *node) call(ctx context.Context, method string, params []json.RawMessage) (any, error) {
	n.mu.Lock()
	tip, _ := n.heads()
	n.mu.Unlock()
	switch method {
	case "getblockcount":
		return tip, nil
	case "getbestblockhash":
		return n.hashAt(tip)
	case "getblockhash":
		var height int64
		if err := parameter(params, 0, &height); err != nil {
			return nil, err
		}
		if height < 0 { // from the tip down
			height += int64(tip) + 1
		}
		return n.hashAt(uint64(height))
	case "getrawmempool":
		return n.mempool(), nil
	case "getblock":
		return n.getBlock(params)
	case "getrawtransaction":
		return n.getRawTransaction(params)
	case "z_gettreestate":
		return n.treeState(params)
	case "getblockchaininfo":
		return n.chainInfo()
	case "getinfo":
		return infoView{Version: 1, Build: "jamq", Subversion: "/jamq:orchard/", ProtocolVersion: protocolVersion, Blocks: tip}, nil
	case "sendrawtransaction":
		return n.sendRawTransaction(ctx, params)
	}
	return nil, faultf(codeMethod, "Method not found")
}

// parameter decodes a required parameter.
func parameter(params []json.RawMessage, i int, into any) error {
	if i >= len(params) {
		return faultf(codeRequest, "parameter %d is missing", i+1)
	}
	if err := json.Unmarshal(params[i], into); err != nil {
		return faultf(codeRequest, "parameter %d: %v", i+1, err)
	}
	return nil
}

// hashAt returns the hash of the block at a height of the chain that JAM has
// accumulated.
func (n *node) hashAt(height uint64) (bytes32, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if latest, _ := n.heads(); height > latest {
		return bytes32{}, faultf(codeParameter, "Block height out of range")
	}
	return n.blocks[height].hash(), nil
}

func (n *node) mempool() []bytes32 {
	n.mu.Lock()
	defer n.mu.Unlock()
	ids := []bytes32{}
	for _, t := range n.waiting {
		ids = append(ids, t.id())
	}
	// To wallets, a block that is executed but not accumulated does not exist.
	latest, _ := n.heads()
	for _, b := range n.blocks[latest+1:] {
		for _, t := range b.Transactions {
			ids = append(ids, t.id())
		}
	}
	return ids
}

func (n *node) sendRawTransaction(ctx context.Context, params []json.RawMessage) (any, error) {
	var text string
	if err := parameter(params, 0, &text); err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(text)
	if err != nil {
		return nil, faultf(codeDecode, "TX decode failed: %v", err)
	}
	t, err := decodeTransaction(raw)
	if err != nil {
		return nil, faultf(codeDecode, "TX decode failed: %v", err)
	}
	err = n.add(ctx, t)
	if errors.Is(err, errDoubleSpend) {
		return nil, faultf(codeRejected, "bad-txns-orchard-double-spend: %v", err)
	}
	return t.id(), err
}
