package main

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
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

// chainInfo answers getblockchaininfo.
func (n *node) chainInfo() (any, error) {
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

// treeState answers z_gettreestate for a block. A wallet can continue from the state of
// the Orchard pool: the root and the number of notes, 8 bytes, little-endian. zcashd's is
// that of a Sinsemilla tree.
func (n *node) treeState(params []json.RawMessage) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, _ := n.heads()
	b, err := n.find(params, latest)
	if err != nil {
		return nil, err
	}
	v := treeStateView{Hash: b.hash(), Height: b.Height, Time: b.Time}
	v.Sapling.Commitments.FinalRoot, v.Sapling.Commitments.FinalState = emptySapling, emptyTree
	v.Orchard.Commitments.FinalRoot = b.Root.String()
	v.Orchard.Commitments.FinalState = hex.EncodeToString(binary.LittleEndian.AppendUint64(b.Root[:], b.Notes))
	return v, nil
}

// placedView is the result of getrawtransaction with verbosity 1. Before the
// transaction is in a block, Height is -1 and the fields after it are omitted.
type placedView struct {
	transactionView
	Height        int64    `json:"height"`
	Confirmations uint64   `json:"confirmations,omitempty"`
	BlockHash     *bytes32 `json:"blockhash,omitempty"`
	Time          int64    `json:"time,omitempty"`
	BlockTime     int64    `json:"blocktime,omitempty"`
}

// getRawTransaction answers getrawtransaction: by id, with verbosity 0 (bytes) or 1.
func (n *node) getRawTransaction(params []json.RawMessage) (any, error) {
	var text string
	if err := parameter(params, 0, &text); err != nil {
		return nil, err
	}
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(bytes32{}) {
		return nil, faultf(codeParameter, "parameter 1 must be hexadecimal of length 64 (not '%.64s')", text)
	}
	verbosity := 0
	if len(params) > 1 {
		if err := parameter(params, 1, &verbosity); err != nil {
			return nil, err
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	t, at := n.transaction(bytes32(raw))
	switch {
	case t == nil:
		return nil, faultf(codeNotFound, "No such mempool or blockchain transaction")
	case verbosity == 0:
		return hex.EncodeToString(t.encode()), nil
	}
	v := placedView{transactionView: viewOf(t), Height: -1}
	if latest, _ := n.heads(); at != nil && at.Height <= latest {
		hash := at.hash()
		v.Height, v.Confirmations, v.BlockHash, v.Time, v.BlockTime = int64(at.Height), latest-at.Height+1, &hash, at.Time, at.Time
	}
	return v, nil
}

// transaction returns a transaction with its block, which is nil while it waits. The
// caller holds the lock.
func (n *node) transaction(id bytes32) (*transaction, *block) {
	for _, t := range n.waiting {
		if t.id() == id {
			return t, nil
		}
	}
	for i := len(n.blocks) - 1; i >= 0; i-- {
		for _, t := range n.blocks[i].Transactions {
			if t.id() == id {
				return t, n.blocks[i]
			}
		}
	}
	return nil, nil
}
