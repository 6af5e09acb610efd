package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/jamq/jamq"
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
		var height uint64
		if err := parameter(params, 0, &height); err != nil {
			return nil, err
		}
		return n.hashAt(height)
	case "getrawmempool":
		return n.mempool(), nil
	case "getblock":
		return n.getBlock(params)
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

// getBlock answers getblock: by hash or height, with verbosity 0 (bytes), 1
// (ids of transactions) or 2 (transactions).
func (n *node) getBlock(params []json.RawMessage) (any, error) {
	var name string
	if err := parameter(params, 0, &name); err != nil {
		return nil, err
	}
	verbosity := 1
	if len(params) > 1 {
		if err := parameter(params, 1, &verbosity); err != nil {
			return nil, err
		}
	}
	if verbosity < 0 || verbosity > 2 {
		return nil, faultf(codeParameter, "Verbosity must be in range from 0 to 2")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, final := n.heads()
	b, err := n.find(name, latest)
	if err != nil {
		return nil, err
	}
	if verbosity == 0 {
		return hex.EncodeToString(b.encode()), nil
	}
	return n.describe(b, verbosity, latest, final), nil
}

// find returns a block of the accumulated chain, which ends at the height latest,
// by its hash or height. The caller holds the lock.
func (n *node) find(name string, latest uint64) (*block, error) {
	if raw, err := hex.DecodeString(name); err == nil && len(raw) == len(bytes32{}) {
		if b := n.byHash[bytes32(raw)]; b != nil && b.Height <= latest {
			return b, nil
		}
		return nil, faultf(codeNotFound, "Block not found")
	}
	height, err := strconv.ParseUint(name, 10, 63)
	if err != nil || height > latest {
		return nil, faultf(codeParameter, "Block height out of range")
	}
	return n.blocks[height], nil
}

// blockView is the result of getblock. The last three fields are additions. The
// fields of zcashd about mining are omitted, because there are no miners.
type blockView struct {
	Hash              bytes32  `json:"hash"`
	Confirmations     uint64   `json:"confirmations"`
	Size              int      `json:"size"`
	Height            uint64   `json:"height"`
	Version           int      `json:"version"`
	MerkleRoot        bytes32  `json:"merkleroot"`
	FinalOrchardRoot  bytes32  `json:"finalorchardroot"`
	Tx                []any    `json:"tx"`
	Time              int64    `json:"time"`
	Trees             trees    `json:"trees"`
	PreviousBlockHash *bytes32 `json:"previousblockhash,omitempty"`
	NextBlockHash     *bytes32 `json:"nextblockhash,omitempty"`

	WorkPackageHash jamq.PackageHash `json:"workpackagehash"` // accumulated package
	HeaderHash      jamq.HeaderHash  `json:"headerhash"`      // accumulating JAM block
	Finalized       bool             `json:"finalized"`       // the JAM block is final
}

type trees struct {
	Orchard struct {
		Size uint64 `json:"size"`
	} `json:"orchard"`
}

// describe returns the view of a block for the heads of the same request. The
// caller holds the lock.
func (n *node) describe(b *block, verbosity int, latest, final uint64) blockView {
	at := n.progress(b.Height)
	v := blockView{
		Hash: b.hash(), Confirmations: latest - b.Height + 1, Size: len(b.encode()), Height: b.Height, Version: 5,
		MerkleRoot: b.merkleRoot(), FinalOrchardRoot: b.Root, Tx: []any{}, Time: b.Time,
		WorkPackageHash: at.Package, HeaderHash: at.At.Hash, Finalized: b.Height <= final,
	}
	v.Trees.Orchard.Size = b.Notes
	if b.Height > 0 {
		v.PreviousBlockHash = &b.Previous
	}
	if b.Height < latest {
		next := n.blocks[b.Height+1].hash()
		v.NextBlockHash = &next
	}
	for _, t := range b.Transactions {
		if verbosity == 1 {
			v.Tx = append(v.Tx, t.id())
		} else {
			v.Tx = append(v.Tx, viewOf(t))
		}
	}
	return v
}

// transactionView is a transaction in the result of getblock with verbosity 2.
type transactionView struct {
	Hex     string      `json:"hex"`
	TxID    bytes32     `json:"txid"`
	Version int         `json:"version"`
	Orchard orchardView `json:"orchard"`
}

type orchardView struct {
	Actions         []actionView    `json:"actions"`
	ValueBalance    json.Number     `json:"valueBalance"` // in ZEC
	ValueBalanceZat int64           `json:"valueBalanceZat"`
	Flags           map[string]bool `json:"flags"`
	Anchor          bytes32         `json:"anchor"`
	Proof           string          `json:"proof"`
	BindingSig      string          `json:"bindingSig"`
}

type actionView struct {
	CV            bytes32 `json:"cv"`
	Nullifier     bytes32 `json:"nullifier"`
	RK            bytes32 `json:"rk"`
	CMX           bytes32 `json:"cmx"`
	EphemeralKey  bytes32 `json:"ephemeralKey"`
	EncCiphertext string  `json:"encCiphertext"`
	SpendAuthSig  string  `json:"spendAuthSig"`
	OutCiphertext string  `json:"outCiphertext"`
}

func viewOf(t *transaction) transactionView {
	v := transactionView{Hex: hex.EncodeToString(t.encode()), TxID: t.id(), Version: 5, Orchard: orchardView{
		ValueBalance: zec(t.ValueBalance), ValueBalanceZat: t.ValueBalance,
		Flags:  map[string]bool{"enableSpends": t.Flags&flagSpends != 0, "enableOutputs": t.Flags&flagOutputs != 0},
		Anchor: t.Anchor, Proof: hex.EncodeToString(t.Proof), BindingSig: hex.EncodeToString(t.BindingSig[:]),
	}}
	for i := range t.Actions {
		a := &t.Actions[i]
		v.Orchard.Actions = append(v.Orchard.Actions, actionView{
			a.CV, a.Nullifier, a.RK, a.CMX, a.EphemeralKey,
			hex.EncodeToString(a.EncCiphertext[:]), hex.EncodeToString(a.SpendAuthSig[:]), hex.EncodeToString(a.OutCiphertext[:]),
		})
	}
	return v
}

// zec formats an amount in zatoshi as ZEC, with all 8 digits.
func zec(zatoshi int64) json.Number {
	sign, amount := "", uint64(zatoshi)
	if zatoshi < 0 {
		sign, amount = "-", -amount
	}
	return json.Number(fmt.Sprintf("%s%d.%08d", sign, amount/1e8, amount%1e8))
}
