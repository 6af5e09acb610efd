package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// wallet is a light wallet with a viewing key and a node's RPC. It scans all
// blocks for its notes and for their nullifiers, and follows them to finality.
// A real wallet decrypts each note by trial. Here the first 32 bytes of the
// ciphertext are a keyed hash of the commitment.
type wallet struct {
	url   string
	key   []byte
	notes []*note
	next  uint64 // next height to scan
}

// note is a note that the wallet owns or has spent.
type note struct {
	cmx       bytes32
	height    uint64
	headerAt  string // accumulating JAM block
	spentAt   uint64 // height; 0: not spent
	finalized bool   // its last change is final
}

func newWallet(url, name string) *wallet { return &wallet{url: url, key: []byte(name), next: 1} }

func (w *wallet) tag(cmx bytes32) []byte {
	h := hmac.New(sha256.New, w.key)
	h.Write(cmx[:])
	return h.Sum(nil)
}

// nullifier returns the value that reveals that a note is spent. Before that,
// only the owner of the note can compute it.
func (w *wallet) nullifier(cmx bytes32) (nf bytes32) {
	h := hmac.New(sha256.New, w.key)
	h.Write([]byte("nullifier"))
	h.Write(cmx[:])
	h.Sum(nf[:0])
	return nf
}

// pay sends a transaction with one action. It spends a note of the wallet, or a
// dummy if spend is nil, and creates a note for another wallet.
func (w *wallet) pay(ctx context.Context, to *wallet, spend *note) (txid string, err error) {
	a := action{}
	for _, field := range [][]byte{a.CV[:], a.RK[:], a.CMX[:], a.EphemeralKey[:], a.EncCiphertext[:], a.OutCiphertext[:], a.SpendAuthSig[:], a.Nullifier[:]} {
		_, _ = rand.Read(field) // never fails
	}
	if spend != nil {
		a.Nullifier = w.nullifier(spend.cmx)
	}
	copy(a.EncCiphertext[:], to.tag(a.CMX))
	t := transaction{Actions: []action{a}, Flags: flagSpends | flagOutputs, Proof: make([]byte, proofSize+proofPerAction)}
	return txid, w.ask(ctx, &txid, "sendrawtransaction", hex.EncodeToString(t.encode()))
}

// scan reads the new blocks, and updates the state of older ones.
func (w *wallet) scan(ctx context.Context) error {
	var tip uint64
	if err := w.ask(ctx, &tip, "getblockcount"); err != nil {
		return err
	}
	var unsettled uint64 = w.next
	// A reorg may remove a note until its last block is final.
	for _, n := range w.notes {
		if !n.finalized {
			unsettled = min(unsettled, n.height)
		}
	}
	w.forget(unsettled)
	for height := unsettled; height <= tip; height++ {
		if err := w.scanBlock(ctx, height); err != nil {
			return err
		}
		w.next = height + 1
	}
	return nil
}

// forget drops all notes and spends from a height on. The wallet scans those
// blocks again.
func (w *wallet) forget(height uint64) {
	var kept []*note
	for _, n := range w.notes {
		if n.height >= height {
			continue
		}
		if n.spentAt >= height {
			n.spentAt = 0
		}
		kept = append(kept, n)
	}
	w.notes = kept
}

func (w *wallet) scanBlock(ctx context.Context, height uint64) error {
	var b struct {
		HeaderHash string
		Finalized  bool
		Tx         []struct {
			Orchard struct {
				Actions []struct{ CMX, Nullifier, EncCiphertext string }
			}
		}
	}
	if err := w.ask(ctx, &b, "getblock", fmt.Sprint(height), 2); err != nil {
		return err
	}
	for _, t := range b.Tx {
		for _, a := range t.Orchard.Actions {
			for _, n := range w.notes {
				if w.nullifier(n.cmx).String() == a.Nullifier {
					n.spentAt, n.headerAt, n.finalized = height, b.HeaderHash, b.Finalized
				}
			}
			raw, err := hex.DecodeString(a.CMX)
			if err != nil || len(raw) != 32 {
				return fmt.Errorf("block %d: a commitment of %d bytes: %w", height, len(raw), err)
			}
			if cmx := bytes32(raw); strings.HasPrefix(a.EncCiphertext, hex.EncodeToString(w.tag(cmx))) {
				w.notes = append(w.notes, &note{cmx: cmx, height: height, headerAt: b.HeaderHash, finalized: b.Finalized})
			}
		}
	}
	return nil
}

// unspent returns the notes that can be spent.
func (w *wallet) unspent() (notes []*note) {
	for _, n := range w.notes {
		if n.spentAt == 0 {
			notes = append(notes, n)
		}
	}
	return notes
}

// ask calls the node's RPC.
func (w *wallet) ask(ctx context.Context, into any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "1.0", "id": "wallet", "method": method, "params": params})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var reply struct {
		Result json.RawMessage
		Error  *fault
	}
	if err := json.NewDecoder(response.Body).Decode(&reply); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if reply.Error != nil {
		return fmt.Errorf("%s: %w", method, reply.Error)
	}
	return json.Unmarshal(reply.Result, into)
}
