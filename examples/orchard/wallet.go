package main

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/ethereum/go-ethereum/rpc"
)

// wallet is a light wallet with a viewing key and a node's RPC. It scans all
// blocks for its notes and for their nullifiers, and follows them to finality.
// A real wallet decrypts each note by trial. Here the first 32 bytes of the
// ciphertext are a keyed hash of the commitment.
type wallet struct {
	*rpc.Client
	key   []byte
	notes []*note
}

// note is a note that the wallet owns or has spent.
type note struct {
	cmx       bytes32
	headerAt  string // accumulating JAM block
	spent     bool
	finalized bool // its last change is final
}

func newWallet(c *rpc.Client, name string) *wallet { return &wallet{Client: c, key: []byte(name)} }

// secret returns a value that only the wallet can compute: the tag in the ciphertext of a
// note, or the nullifier that reveals that the note is spent.
func (w *wallet) secret(purpose string, cmx bytes32) bytes32 {
	h := hmac.New(sha256.New, w.key)
	h.Write(append([]byte(purpose), cmx[:]...))
	return bytes32(h.Sum(nil))
}

// pay sends a transaction with one action. It spends a note of the wallet, or a
// dummy if spend is nil, and creates a note for another wallet.
func (w *wallet) pay(ctx context.Context, to *wallet, spend *note) error {
	var a action
	if err := binary.Read(rand.Reader, binary.LittleEndian, &a); err != nil {
		return err
	}
	if spend != nil {
		a.Nullifier = w.secret("nullifier", spend.cmx)
	}
	tag := to.secret("tag", a.CMX)
	copy(a.EncCiphertext[:], tag[:])
	t := transaction{Actions: []action{a}, Proof: make([]byte, proofSize+proofPerAction)}
	return w.CallContext(ctx, nil, "sendrawtransaction", hex.EncodeToString(t.encode()))
}

// scan reads the chain from its first block on, because a reorg may have changed it. A
// wallet for a long chain begins after the last block that it knows to be final.
func (w *wallet) scan(ctx context.Context) error {
	var info struct{ Blocks uint64 }
	if err := w.CallContext(ctx, &info, "getblockchaininfo"); err != nil {
		return err
	}
	w.notes = nil
	for height := uint64(1); height <= info.Blocks; height++ {
		if err := w.scanBlock(ctx, height); err != nil {
			return err
		}
	}
	return nil
}

func (w *wallet) scanBlock(ctx context.Context, height uint64) error {
	var b struct {
		HeaderHash string
		Finalized  bool
		Tx         []struct{ Hex string }
	}
	if err := w.CallContext(ctx, &b, "getblock", fmt.Sprint(height), 2); err != nil {
		return err
	}
	for _, tx := range b.Tx {
		raw, err := hex.DecodeString(tx.Hex)
		if err != nil {
			return err
		}
		t, err := decodeTransaction(raw)
		if err != nil {
			return err
		}
		for _, a := range t.Actions {
			for _, n := range w.notes {
				if w.secret("nullifier", n.cmx) == a.Nullifier {
					n.spent, n.headerAt, n.finalized = true, b.HeaderHash, b.Finalized
				}
			}
			if bytes32(a.EncCiphertext[:32]) == w.secret("tag", a.CMX) {
				w.notes = append(w.notes, &note{cmx: a.CMX, headerAt: b.HeaderHash, finalized: b.Finalized})
			}
		}
	}
	return nil
}

// unspent returns the notes that can be spent.
func (w *wallet) unspent() (notes []*note) {
	for _, n := range w.notes {
		if !n.spent {
			notes = append(notes, n)
		}
	}
	return notes
}
