package main

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math"
	"sort"
)

// The calls besides getblock that lightwalletd makes to follow a chain.

// protocolVersion is the version of Zcash's network protocol for the upgrade NU5.
const protocolVersion = 170_100

// The branch ids of the network upgrades that brought Zcash's Sapling (ZIP 205) and
// Orchard pools (ZIP 252). Light wallets read the heights of these from the chain's info.
const (
	branchSapling = "76b809bb"
	branchNU5     = "c2d6d0b4"
)

// infoView is the result of getinfo.
type infoView struct {
	Version         int    `json:"version"`
	Build           string `json:"build"`
	Subversion      string `json:"subversion"`
	ProtocolVersion int    `json:"protocolversion"`
	Blocks          uint64 `json:"blocks"`
	Connections     int    `json:"connections"`
	Testnet         bool   `json:"testnet"`
	Errors          string `json:"errors"`
}

// chainView is the result of getblockchaininfo.
type chainView struct {
	Chain                string                 `json:"chain"`
	Blocks               uint64                 `json:"blocks"`
	Headers              uint64                 `json:"headers"`
	EstimatedHeight      uint64                 `json:"estimatedheight"`
	BestBlockHash        bytes32                `json:"bestblockhash"`
	VerificationProgress float64                `json:"verificationprogress"`
	Downloaded           bool                   `json:"initial_block_download_complete"`
	Pruned               bool                   `json:"pruned"`
	Upgrades             map[string]upgradeView `json:"upgrades"`
	Consensus            consensusView          `json:"consensus"`

	Finalized uint64 `json:"finalized"` // height of the last final block; an addition
}

type upgradeView struct {
	Name             string `json:"name"`
	ActivationHeight uint64 `json:"activationheight"`
	Status           string `json:"status"`
	Info             string `json:"info"`
}

type consensusView struct {
	ChainTip  string `json:"chaintip"`
	NextBlock string `json:"nextblock"`
}

// getInfo answers getinfo.
func (n *node) getInfo(context.Context, params) (any, error) {
	return infoView{
		Version: 1, Build: "jamq", Subversion: "/jamq:orchard/", ProtocolVersion: protocolVersion, Blocks: n.latest(),
	}, nil
}

// getBlockchainInfo answers getblockchaininfo.
func (n *node) getBlockchainInfo(context.Context, params) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, final := n.heads()
	active := func(name string) upgradeView { return upgradeView{Name: name, Status: "active"} }
	return chainView{
		Chain: "regtest", Blocks: latest, Headers: latest, EstimatedHeight: latest, BestBlockHash: n.blocks[latest].hash(),
		VerificationProgress: 1, Downloaded: true, Finalized: final,
		Upgrades:  map[string]upgradeView{branchSapling: active("Sapling"), branchNU5: active("NU5")},
		Consensus: consensusView{branchNU5, branchNU5},
	}, nil
}

// treeStateView is the result of z_gettreestate.
type treeStateView struct {
	Hash    bytes32  `json:"hash"`
	Height  uint64   `json:"height"`
	Time    int64    `json:"time"`
	Sapling treeView `json:"sapling"`
	Orchard treeView `json:"orchard"`
}

type treeView struct {
	Commitments struct {
		FinalRoot  string `json:"finalRoot"`
		FinalState string `json:"finalState"`
	} `json:"commitments"`
}

// emptyTree is the state of a tree without notes: two absent leaves and no parents.
const emptyTree = "000000"

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
	v := treeStateView{Hash: b.hash(), Height: b.Height, Time: b.Time}
	v.Sapling.Commitments.FinalRoot, v.Sapling.Commitments.FinalState = emptySapling, emptyTree
	v.Orchard.Commitments.FinalRoot = b.Root.String()
	v.Orchard.Commitments.FinalState = hex.EncodeToString(binary.LittleEndian.AppendUint64(b.Root[:], b.Notes))
	return v, nil
}

// subtreesView is the result of z_getsubtreesbyindex.
type subtreesView struct {
	Pool       string        `json:"pool"`
	StartIndex int64         `json:"start_index"`
	Subtrees   []subtreeView `json:"subtrees"`
}

type subtreeView struct {
	Root      bytes32 `json:"root"`
	EndHeight uint64  `json:"end_height"`
}

// getSubtrees answers z_getsubtreesbyindex: the complete subtrees of subtreeSize notes, from
// an index on, each with the block that has its last note. The root is that of the pool
// after the last note, because the notes are not in a tree. The Sapling pool is empty.
func (n *node) getSubtrees(_ context.Context, p params) (any, error) {
	pool, err := p.text(0)
	if err != nil {
		return nil, err
	}
	if pool != "sapling" && pool != "orchard" {
		return nil, faultf(codeParameter, `Requested pool must be "sapling" or "orchard"`)
	}
	start, err := p.integer(1)
	if err != nil {
		return nil, err
	}
	limit := int64(math.MaxInt64)
	if len(p) > 2 {
		if limit, err = p.integer(2); err != nil {
			return nil, err
		}
	}
	if start < 0 || limit < 0 {
		return nil, faultf(codeParameter, "start_index is %d and limit is %d, want 0 or more", start, limit)
	}
	v := subtreesView{Pool: pool, StartIndex: start, Subtrees: []subtreeView{}}
	if pool == "orchard" {
		n.mu.Lock()
		defer n.mu.Unlock()
		latest, _ := n.heads()
		v.Subtrees = n.subtrees(latest, uint64(start), uint64(limit))
	}
	return v, nil
}

// subtrees returns at most limit subtrees of the chain that ends at the height latest. The
// caller holds the lock.
func (r *rollup) subtrees(latest, start, limit uint64) []subtreeView {
	views := []subtreeView{}
	for i := start; i < r.blocks[latest].Notes/subtreeSize && uint64(len(views)) < limit; i++ {
		end := sort.Search(int(latest), func(h int) bool { return r.blocks[h].Notes >= (i+1)*subtreeSize })
		views = append(views, subtreeView{r.state.subtrees[i], uint64(end)})
	}
	return views
}

// placedView is the result of getrawtransaction with verbosity 1. Before the transaction is
// in a block, the fields after its own are omitted.
type placedView struct {
	transactionView
	Height        uint64   `json:"height,omitempty"`
	Confirmations uint64   `json:"confirmations,omitempty"`
	BlockHash     *bytes32 `json:"blockhash,omitempty"`
	Time          int64    `json:"time,omitempty"`
	BlockTime     int64    `json:"blocktime,omitempty"`
}

// getRawTransaction answers getrawtransaction: by id, with verbosity 0 (bytes) or 1, and
// perhaps only if it is in the block with a hash.
func (n *node) getRawTransaction(_ context.Context, p params) (any, error) {
	id, err := p.hash(0)
	if err != nil {
		return nil, err
	}
	verbosity, in := int64(0), (*block)(nil)
	if len(p) > 1 {
		if verbosity, err = p.integer(1); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	if len(p) > 2 {
		hash, err := p.hash(2)
		if err != nil {
			return nil, err
		}
		if in = n.byHash[hash]; in == nil || in.Height > latest {
			return nil, faultf(codeNotFound, "Block hash not found")
		}
	}
	t, at := n.transaction(id)
	switch {
	case in != nil && at != in:
		return nil, faultf(codeNotFound, "No such transaction found in the provided block")
	case t == nil:
		return nil, faultf(codeNotFound, "No such mempool or blockchain transaction")
	case verbosity == 0:
		return hex.EncodeToString(t.encode()), nil
	}
	v := placedView{transactionView: viewOf(t)}
	if at != nil {
		hash := at.hash()
		v.Height, v.Confirmations, v.BlockHash, v.Time, v.BlockTime = at.Height, latest-at.Height+1, &hash, at.Time, at.Time
	}
	return v, nil
}

// hash returns a parameter that is the hash of a block or a transaction. A hash of another
// length is one that nothing has.
func (p params) hash(i int) (h bytes32, err error) {
	text, _ := p.text(i)
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) == 0 {
		return h, faultf(codeParameter, "parameter %d must be hexadecimal string (not '%.64s')", i+1, text)
	}
	if len(raw) == len(h) {
		h = bytes32(raw)
	}
	return h, nil
}

// known reports whether a transaction waits or is in a block, which is nil while it waits.
func (n *node) known(id bytes32) (known bool, at *block) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t, at := n.transaction(id)
	return t != nil, at
}

// transaction returns a transaction with its block, which is nil as long as JAM has not
// accumulated it. The caller holds the lock.
func (n *node) transaction(id bytes32) (*transaction, *block) {
	for _, t := range n.waiting {
		if t.id() == id {
			return t, nil
		}
	}
	latest, _ := n.heads()
	for i := len(n.blocks) - 1; i >= 0; i-- {
		for _, t := range n.blocks[i].Transactions {
			if t.id() != id {
				continue
			}
			if uint64(i) > latest {
				return t, nil
			}
			return t, n.blocks[i]
		}
	}
	return nil, nil
}
