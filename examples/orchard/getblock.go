package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
)

// getBlock answers getblock: by hash or height, with verbosity 0 (bytes), 1
// (ids of transactions) or 2 (transactions).
func (n *node) getBlock(_ context.Context, p params) (any, error) {
	verbosity, err := param(p, 1, 1.0)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, final := n.heads()
	b, err := n.find(p, latest)
	switch {
	case err != nil:
		return nil, err
	case verbosity == 0:
		return hex.EncodeToString(b.encode()), nil
	}
	return n.describe(b, verbosity == 1, latest, final), nil
}

// find returns the block of the accumulated chain, which ends at the height latest,
// that the first parameter names: by its hash, or by its height as a text. -1 is the last
// block, -2 the one before it. The caller holds the lock.
func (n *node) find(p params, latest uint64) (*block, error) {
	name, err := param(p, 0, "")
	if err != nil {
		return nil, err
	}
	if len(name) == 2*len(bytes32{}) {
		i := slices.IndexFunc(n.blocks[:latest+1], func(b *block) bool { return b.hash().String() == name })
		if i < 0 {
			return nil, faultf(codeNotFound, "Block not found")
		}
		return n.blocks[i], nil
	}
	height, err := strconv.ParseInt(name, 10, 32)
	if height < 0 {
		height += int64(latest) + 1
	}
	if err != nil || height < 0 || uint64(height) > latest {
		return nil, faultf(codeParameter, "Block height out of range")
	}
	return n.blocks[height], nil
}

// describe returns the result of getblock for the heads of the same request. The last three
// fields are additions. The fields of zcashd about mining and about other pools are
// omitted, because there are no miners and no such pools. The caller holds the lock.
func (n *node) describe(b *block, idsOnly bool, latest, final uint64) map[string]any {
	tx := []any{}
	for _, t := range b.Transactions {
		if idsOnly {
			tx = append(tx, t.id())
		} else {
			tx = append(tx, map[string]any{"txid": t.id(), "hex": hex.EncodeToString(t.encode()), "version": 5, "orchard": t})
		}
	}
	at := n.progress(b.Height)
	return map[string]any{
		"hash": b.hash(), "confirmations": latest - b.Height + 1, "size": len(b.encode()), "height": b.Height,
		"previousblockhash": b.Previous, "merkleroot": b.Merkle, "finalorchardroot": b.Root, "time": b.Time,
		"trees": map[string]any{"orchard": map[string]uint64{"size": b.Notes}}, "tx": tx,
		"workpackagehash": at.Package,        // accumulated package
		"headerhash":      at.At.Hash,        // accumulating JAM block
		"finalized":       b.Height <= final, // the JAM block is final
	}
}

// getBlockchainInfo answers getblockchaininfo with the height of the last final block.
func (n *node) getBlockchainInfo(context.Context, params) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, final := n.heads()
	return map[string]any{
		"chain": "regtest", "blocks": latest, "bestblockhash": n.blocks[latest].hash(), "finalized": final,
	}, nil
}

// getTreeState answers z_gettreestate for a block. A wallet can continue from the state of
// the Orchard pool: the root and the number of notes, 8 bytes, little-endian. zcashd's is
// that of a Sinsemilla tree.
func (n *node) getTreeState(_ context.Context, p params) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	b, err := n.find(p, latest)
	if err != nil {
		return nil, err
	}
	state := binary.LittleEndian.AppendUint64(b.Root[:], b.Notes)
	return map[string]any{
		"hash": b.hash(), "height": b.Height, "time": b.Time,
		"orchard": map[string]any{"commitments": map[string]any{"finalRoot": b.Root, "finalState": hex.EncodeToString(state)}},
	}, nil
}
