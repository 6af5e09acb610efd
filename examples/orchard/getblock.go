package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"

	"github.com/jamq/jamq"
)

// getBlock answers getblock: by hash or height, with verbosity 0 (bytes), 1
// (ids of transactions) or 2 (transactions). false is 0 and true is 1.
func (n *node) getBlock(_ context.Context, p params) (any, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	latest, final := n.heads()
	b, notFound := n.find(p, latest)
	verbosity, err := p.verbosity(1)
	switch {
	case notFound != nil:
		return nil, notFound
	case err != nil:
		return nil, err
	case verbosity == 0:
		return hex.EncodeToString(b.encode()), nil
	}
	return n.describe(b, verbosity, latest, final), nil
}

// verbosity returns a parameter from 0 to 2, which is 1 if it is missing.
func (p params) verbosity(i int) (int64, error) {
	if len(p) <= i {
		return 1, nil
	}
	if kind(p[i]) != "number" {
		ids, err := p.flag(i)
		if ids {
			return 1, err
		}
		return 0, err
	}
	v, err := p.integer(i)
	if err == nil && (v < 0 || v > 2) {
		err = faultf(codeParameter, "Verbosity must be in range from 0 to 2")
	}
	return v, err
}

// heightPattern are the texts that zcashd reads as a height.
var heightPattern = regexp.MustCompile(`^(-?[1-9][0-9]*|[0-9]+)$`)

// find returns the block of the accumulated chain, which ends at the height latest,
// that the first parameter names: by its hash, or by its height as a number or a text.
// The caller holds the lock.
func (n *node) find(p params, latest uint64) (*block, error) {
	name, err := p.text(0)
	if kind(p[0]) == "number" { // which zcashd does not accept
		name, err = string(p[0]), nil
	}
	if err != nil {
		return nil, err
	}
	if len(name) < 2*len(bytes32{}) {
		height, err := strconv.ParseInt(name, 10, 32)
		if err != nil || !heightPattern.MatchString(name) {
			return nil, faultf(codeParameter, "Invalid block height parameter")
		}
		return n.at(height, latest)
	}
	raw, err := hex.DecodeString(name)
	if err == nil && len(raw) == len(bytes32{}) {
		if b := n.byHash[bytes32(raw)]; b != nil && b.Height <= latest {
			return b, nil
		}
	}
	return nil, faultf(codeNotFound, "Block not found")
}

// at returns the block at a height of the accumulated chain, which ends at the height latest.
// -1 is the last block, -2 the one before it. The caller holds the lock.
func (n *node) at(height int64, latest uint64) (*block, error) {
	if height < 0 {
		height += int64(latest) + 1
	}
	if height < 0 || uint64(height) > latest {
		return nil, faultf(codeParameter, "Block height out of range")
	}
	return n.blocks[height], nil
}

// blockView is the result of getblock. The last three fields are additions. The
// fields of zcashd about mining and about other pools are omitted, because there are
// no miners and no such pools.
type blockView struct {
	Hash              bytes32  `json:"hash"`
	Confirmations     uint64   `json:"confirmations"`
	Size              int      `json:"size"`
	Height            uint64   `json:"height"`
	Version           int      `json:"version"`
	MerkleRoot        bytes32  `json:"merkleroot"`
	FinalSaplingRoot  string   `json:"finalsaplingroot"` // of an empty pool
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

// emptySapling is the root of a Sapling tree without notes, as zcashd shows it.
const emptySapling = "3e49b5f954aa9d3545bc6c37744661eea48d7c34e3000d82b7f0010c30f4c2fb"

type trees struct {
	Orchard struct {
		Size uint64 `json:"size"`
	} `json:"orchard"`
}

// describe returns the view of a block for the heads of the same request. The
// caller holds the lock.
func (n *node) describe(b *block, verbosity int64, latest, final uint64) blockView {
	at := n.progress(b.Height)
	v := blockView{
		Hash: b.hash(), Confirmations: latest - b.Height + 1, Size: len(b.encode()), Height: b.Height, Version: 5,
		MerkleRoot: b.merkleRoot(), FinalSaplingRoot: emptySapling, FinalOrchardRoot: b.Root, Tx: []any{}, Time: b.Time,
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

// transactionView is a transaction in the results of getblock with verbosity 2 and of
// getrawtransaction. The lists are empty, because there are no other pools.
type transactionView struct {
	Hex             string      `json:"hex"`
	TxID            bytes32     `json:"txid"`
	Size            int         `json:"size"`
	Overwintered    bool        `json:"overwintered"`
	Version         int         `json:"version"`
	VersionGroup    string      `json:"versiongroupid"`
	LockTime        uint64      `json:"locktime"`
	ExpiryHeight    uint64      `json:"expiryheight"`
	Inputs          [0]any      `json:"vin"`
	Outputs         [0]any      `json:"vout"`
	ShieldedSpends  [0]any      `json:"vShieldedSpend"`
	ShieldedOutputs [0]any      `json:"vShieldedOutput"`
	Orchard         orchardView `json:"orchard"`
}

// versionGroup is the group of transactions of version 5 (ZIP 225).
const versionGroup = "26a7270a"

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
	raw := t.encode()
	v := transactionView{Hex: hex.EncodeToString(raw), TxID: t.id(), Size: len(raw), Overwintered: true, Version: 5, VersionGroup: versionGroup, Orchard: orchardView{
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
