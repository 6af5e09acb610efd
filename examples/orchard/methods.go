package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
)

// method is a call of the RPC, with the names of its parameters.
type method struct {
	required, optional []string
	answer             func(*node, context.Context, params) (any, error)
}

// methods are the calls that the node answers, by name.
var methods = map[string]method{
	"getaddressbalance":    {required: []string{"addresses"}, answer: (*node).getAddressBalance},
	"getaddresstxids":      {required: []string{"addresses"}, answer: (*node).getAddressTxIDs},
	"getaddressutxos":      {required: []string{"addresses"}, answer: (*node).getAddressUTXOs},
	"getbestblockhash":     {answer: (*node).getBestBlockHash},
	"getblock":             {required: []string{"hash|height"}, optional: []string{"verbosity"}, answer: (*node).getBlock},
	"getblockchaininfo":    {answer: (*node).getBlockchainInfo},
	"getblockcount":        {answer: (*node).getBlockCount},
	"getblockhash":         {required: []string{"index"}, answer: (*node).getBlockHash},
	"getinfo":              {answer: (*node).getInfo},
	"getrawmempool":        {optional: []string{"verbose"}, answer: (*node).getRawMempool},
	"getrawtransaction":    {required: []string{"txid"}, optional: []string{"verbose", "blockhash"}, answer: (*node).getRawTransaction},
	"sendrawtransaction":   {required: []string{"hexstring"}, optional: []string{"allowhighfees"}, answer: (*node).sendRawTransaction},
	"z_getsubtreesbyindex": {required: []string{"pool", "start_index"}, optional: []string{"limit"}, answer: (*node).getSubtrees},
	"z_gettreestate":       {required: []string{"hash|height"}, answer: (*node).getTreeState},
}

// latest returns the height of the newest block that JAM has accumulated.
func (n *node) latest() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	return latest
}

func (n *node) getBlockCount(context.Context, params) (any, error) { return n.latest(), nil }

func (n *node) getBestBlockHash(context.Context, params) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	return n.blocks[latest].hash(), nil
}

func (n *node) getBlockHash(_ context.Context, p params) (any, error) {
	height, err := p.integer(0)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	b, err := n.at(height, latest)
	if err != nil {
		return nil, err
	}
	return b.hash(), nil
}

// getRawMempool returns the ids of the transactions that wait. With verbose, zcashd adds
// fees, times and priorities, which this pool does not know.
func (n *node) getRawMempool(_ context.Context, p params) (any, error) {
	if len(p) > 0 {
		verbose, err := p.flag(0)
		if err != nil {
			return nil, err
		}
		if verbose {
			return nil, faultf(codeParameter, "verbose must be false: the pool knows no fees, times or priorities")
		}
	}
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
	return ids, nil
}

// sendRawTransaction accepts a transaction and returns its id, also if the transaction waits
// already. Any fee is accepted, so that allowhighfees has no effect.
func (n *node) sendRawTransaction(ctx context.Context, p params) (any, error) {
	if err := p.expect("string", "bool"); err != nil {
		return nil, err
	}
	text, err := p.text(0)
	if err != nil {
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
	known, at := n.known(t.id())
	switch {
	case err == nil, known && at == nil:
		return t.id(), nil
	case known:
		return nil, faultf(codeInChain, "transaction already in block chain")
	case errors.Is(err, errDoubleSpend):
		return nil, faultf(codeRejected, "18: bad-txns-orchard-duplicate-nullifier: %v", err)
	}
	return nil, faultf(codeVerify, "%v", err)
}

// The calls that follow are about transparent addresses. No transaction of this pool pays to
// one, so that all of them have neither transactions nor outputs.

func (n *node) getAddressTxIDs(_ context.Context, p params) (any, error) {
	if err := p.addresses(); err != nil {
		return nil, err
	}
	return []string{}, p.heights()
}

func (n *node) getAddressBalance(_ context.Context, p params) (any, error) {
	return map[string]uint64{"balance": 0, "received": 0}, p.addresses()
}

func (n *node) getAddressUTXOs(_ context.Context, p params) (any, error) {
	return []string{}, p.addresses()
}

// addresses checks the parameter of a call about transparent addresses: one address, or an
// object with a list of them. The addresses themselves are not checked.
func (p params) addresses() error {
	switch kind(p[0]) {
	case "string":
		return nil
	case "object":
	default:
		return faultf(codeNotFound, "Invalid address")
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(p[0], &object); err != nil {
		return err
	}
	var list params
	if kind(object["addresses"]) != "array" {
		return faultf(codeNotFound, "Addresses is expected to be an array")
	}
	if err := json.Unmarshal(object["addresses"], &list); err != nil {
		return err
	}
	for i := range list {
		if _, err := list.text(i); err != nil {
			return err
		}
	}
	return nil
}

// heights checks the range of blocks in a call about transparent addresses, if it has both ends.
func (p params) heights() error {
	if kind(p[0]) != "object" {
		return nil
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(p[0], &object); err != nil {
		return err
	}
	ends := params{object["start"], object["end"]}
	if kind(ends[0]) == "null" || kind(ends[1]) == "null" {
		return nil
	}
	start, err := ends.integer(0)
	if err != nil {
		return err
	}
	end, err := ends.integer(1)
	switch {
	case err != nil:
		return err
	case start <= 0 || end <= 0:
		return faultf(codeNotFound, "Start and end are expected to be greater than zero")
	case end < start:
		return faultf(codeNotFound, "End value is expected to be greater than start")
	}
	return nil
}
