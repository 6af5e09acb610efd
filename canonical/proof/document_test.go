package proof

import (
	"bytes"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
)

func TestDocuments(t *testing.T) {
	w := newWorld(t)
	for name, d := range map[string]*Document{"storage": w.storageDocument(t), "outputs": w.outputsDocument(t), "log": w.logDocument(t)} {
		r, err := d.Verify(w.trust)
		require.NoError(t, err, name)
		require.Equal(t, w.txs[5].Hash(), r.Transaction.Hash())
		require.Equal(t, w.commitment, r.Commitment)
		require.Len(t, r.Steps, 4)

		raw, err := json.MarshalIndent(d, "", " ")
		require.NoError(t, err)
		again, err := Parse(raw)
		require.NoError(t, err, name)
		require.Equal(t, d, again)
		_, err = again.Verify(w.trust)
		require.NoError(t, err)
	}
}

// forgery is a change to a document that proves, and the error of the link that must notice.
type forgery struct {
	name string
	do   func(d *Document)
	want error
}

func refuseAll(t *testing.T, w *world, honest func(testing.TB) *Document, forgeries []forgery) {
	t.Helper()
	for _, f := range forgeries {
		t.Run(f.name, func(t *testing.T) {
			d := honest(t)
			f.do(d)
			r, err := d.Verify(w.trust)
			require.ErrorIs(t, err, f.want)
			require.Nil(t, r.Transaction)
			require.Nil(t, r.Receipt)
			for _, other := range []error{ErrFinality, ErrState, ErrOutput, ErrCommitment, ErrTransaction, ErrReceipt, ErrMalformed, ErrTrust} {
				require.Equal(t, other == f.want, errors.Is(err, other), "one link answers: %v", err)
			}
		})
	}
}

func TestForgedFinality(t *testing.T) {
	w := newWorld(t)
	honest := Precommit{Target: w.target, Round: 12, Set: 3}
	stranger := newWorld(t)
	stranger.keys[5] = stranger.keys[0]
	refuseAll(t, w, w.storageDocument, []forgery{
		{"exactly two thirds", func(d *Document) { d.Finality = w.vote(honest, 0, 1, 2, 3) }, ErrFinality},
		{"nobody", func(d *Document) { d.Finality.Signatures = nil }, ErrFinality},
		{"a signer twice", func(d *Document) { d.Finality = w.vote(honest, 0, 1, 2, 3, 3) }, ErrFinality},
		{"not in order", func(d *Document) { d.Finality = w.vote(honest, 1, 0, 2, 3, 4) }, ErrFinality},
		{"outside the set", func(d *Document) { d.Finality.Signatures[4].Validator = worldValidators }, ErrFinality},
		{"another's key", func(d *Document) { d.Finality = stranger.vote(honest, 0, 1, 2, 3, 5) }, ErrFinality},
		{"another's signature", func(d *Document) { d.Finality.Signatures[3].Validator = 3 }, ErrFinality},
		{"a whole set of strangers", func(d *Document) {
			other := newWorld(t)
			for i := range other.keys {
				other.keys[i] = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{byte(i + 1)}, 32))
			}
			d.Finality = other.vote(honest, 0, 1, 2, 3, 4, 5)
		}, ErrFinality},
		{"one wrong among enough", func(d *Document) {
			d.Finality = w.vote(honest, 0, 1, 2, 3, 4, 5)
			d.Finality.Signatures[5].Signature[7] ^= 1
		}, ErrFinality},
		{"a short signature", func(d *Document) { d.Finality.Signatures[0].Signature = d.Finality.Signatures[0].Signature[:63] }, ErrFinality},
		{"another set", func(d *Document) {
			d.Finality = w.vote(Precommit{Target: w.target, Round: 12, Set: 4}, 0, 1, 2, 3, 4)
		}, ErrFinality},
		{"the set's number changed", func(d *Document) { d.Finality.Precommit.Set = 4 }, ErrFinality},
		{"another round", func(d *Document) { d.Finality.Precommit.Round++ }, ErrFinality},
		{"another slot", func(d *Document) { d.Finality.Precommit.Target.Slot++ }, ErrFinality},
		{"another header", func(d *Document) { d.Finality.Precommit.Target.Header[0] ^= 1 }, ErrFinality},
		{"another state", func(d *Document) { d.Finality.Precommit.Target.StateRoot[0] ^= 1 }, ErrFinality},
		{"another format", func(d *Document) { d.Finality.Format = "mine" }, ErrFinality},
		{"a final block with another state", func(d *Document) {
			p := honest
			p.Target.StateRoot = common.Hash{1}
			d.Finality = w.vote(p, 0, 1, 2, 3, 4)
		}, ErrState},
	})
}

func TestForgedState(t *testing.T) {
	w := newWorld(t)
	proveKey := func(service jamq.ServiceID, prefix string, number uint64) func(*Document) {
		return func(d *Document) {
			d.Storage.Nodes = w.state.Prove(statetrie.StorageKey(service, CommitmentKey([]byte(prefix), number)))
		}
	}
	refuseAll(t, w, w.storageDocument, []forgery{
		{"truncated", func(d *Document) { d.Storage.Nodes = d.Storage.Nodes[:len(d.Storage.Nodes)-1] }, ErrState},
		{"without the root", func(d *Document) { d.Storage.Nodes = d.Storage.Nodes[1:] }, ErrState},
		{"empty", func(d *Document) { d.Storage.Nodes = nil }, ErrState},
		{"a node more", func(d *Document) { d.Storage.Nodes = append(d.Storage.Nodes, statetrie.Node{}) }, ErrState},
		{"a forged leaf", func(d *Document) { d.Storage.Nodes[len(d.Storage.Nodes)-1][40] ^= 1 }, ErrState},
		{"a forged branch", func(d *Document) { d.Storage.Nodes[0][40] ^= 1 }, ErrState},
		{"another service's storage", proveKey(worldService+1, "block", 9), ErrState},
		{"another key", proveKey(worldService, "other", 9), ErrState},
		{"another block's commitment", proveKey(worldService, "block", 8), ErrState},
		{"a commitment that is not stored", func(d *Document) { d.Commitment[50] ^= 1 }, ErrState},
		{"too short a commitment", func(d *Document) { d.Commitment = d.Commitment[:100] }, ErrState},
	})
	w.trust.Service++
	_, err := w.storageDocument(t).Verify(w.trust)
	require.ErrorIs(t, err, ErrState, "the user trusts another service")
}

func TestForgedOutputs(t *testing.T) {
	w := newWorld(t)
	refuseAll(t, w, w.outputsDocument, []forgery{
		{"a forged value", func(d *Document) { d.Outputs.Value[6] ^= 1 }, ErrState},
		{"truncated", func(d *Document) { d.Outputs.Nodes = d.Outputs.Nodes[:1] }, ErrState},
		{"another chapter", func(d *Document) { d.Outputs.Nodes = w.state.Prove(statetrie.ChapterKey(statetrie.ChapterSlot)) }, ErrState},
		{"a commitment that was not yielded", func(d *Document) { d.Commitment[50] ^= 1 }, ErrOutput},
	})
	w.trust.Service += 5
	_, err := w.outputsDocument(t).Verify(w.trust)
	require.ErrorIs(t, err, ErrOutput, "the same yield of another service")
}

func TestForgedLog(t *testing.T) {
	w := newWorld(t)
	refuseAll(t, w, w.logDocument, []forgery{
		{"exactly two thirds", func(d *Document) { d.Beefy = w.beefy(t, 0, 1, 2, 3) }, ErrFinality},
		{"a signer twice", func(d *Document) { d.Beefy = w.beefy(t, 0, 1, 2, 2, 3) }, ErrFinality},
		{"a stranger", func(d *Document) { d.Beefy.Signatures[4].Validator = 6 }, ErrFinality},
		{"another's signature", func(d *Document) { d.Beefy.Signatures[4].Validator = 4 }, ErrFinality},
		{"another peak", func(d *Document) { d.Beefy.Peak[0] ^= 1 }, ErrFinality},
		{"no point", func(d *Document) { d.Beefy.Signatures[0].Signature = make([]byte, 48) }, ErrFinality},
		{"the point at infinity", func(d *Document) {
			d.Beefy.Signatures[0].Signature = append([]byte{0xc0}, make([]byte, 47)...)
		}, ErrFinality},
		{"a long signature", func(d *Document) {
			d.Beefy.Signatures[0].Signature = append(d.Beefy.Signatures[0].Signature, 0)
		}, ErrFinality},
		{"another leaf", func(d *Document) { d.Log.Log, _ = ProveLog(w.leaves, 5) }, ErrOutput},
		{"another index", func(d *Document) { d.Log.Log.Index-- }, ErrOutput},
		{"a shorter log", func(d *Document) { d.Log.Log, _ = ProveLog(w.leaves[:8], 6) }, ErrOutput},
		{"truncated", func(d *Document) { d.Log.Log.Siblings = d.Log.Log.Siblings[1:] }, ErrOutput},
		{"another output", func(d *Document) { d.Log.Output.Index = 2 }, ErrOutput},
		{"a commitment that was not yielded", func(d *Document) { d.Commitment[50] ^= 1 }, ErrOutput},
	})
	// The key at infinity signs everything, with the signature at infinity.
	infinity := func(size int) []byte { return append([]byte{0xc0}, make([]byte, size-1)...) }
	honest := w.trust.BLS[5]
	w.trust.BLS[5] = BLSKey(infinity(len(BLSKey{})))
	d := w.logDocument(t)
	d.Beefy.Signatures[4].Signature = infinity(48)
	_, err := d.Verify(w.trust)
	require.ErrorIs(t, err, ErrFinality)
	w.trust.BLS[5] = honest
	_, err = w.logDocument(t).Verify(w.trust)
	require.NoError(t, err)

	w.trust.BLS = nil
	_, err = w.logDocument(t).Verify(w.trust)
	require.ErrorIs(t, err, ErrFinality, "no BLS keys are trusted")
}

func TestForgedClaim(t *testing.T) {
	w := newWorld(t)
	other, err := ProveTransaction(w.txs, 6)
	require.NoError(t, err)
	refuseAll(t, w, w.outputsDocument, []forgery{
		{"another block number", func(d *Document) { d.Claim.Number = 10 }, ErrCommitment},
		{"another block", func(d *Document) { d.Claim.Block[0] ^= 1 }, ErrCommitment},
		{"another package", func(d *Document) { d.Claim.Package[0] ^= 1 }, ErrCommitment},
		{"another transaction", func(d *Document) { d.Claim.Transaction = w.txs[6].Hash() }, ErrTransaction},
		{"another place", func(d *Document) { d.Transaction.Index = 6 }, ErrTransaction},
		{"a place that does not exist", func(d *Document) { d.Transaction.Index = 20 }, ErrTransaction},
		{"a place before the first", func(d *Document) { d.Transaction.Index = -1 }, ErrTransaction},
		{"another transaction's nodes", func(d *Document) {
			for i := range d.Transaction.Nodes {
				d.Transaction.Nodes[i] = other[i]
			}
		}, ErrTransaction},
		{"truncated", func(d *Document) { d.Transaction.Nodes = d.Transaction.Nodes[:1] }, ErrTransaction},
		{"no link to the transaction", func(d *Document) { d.Transaction = nil }, ErrMalformed},
		{"no transaction in the claim", func(d *Document) { d.Claim.Transaction = common.Hash{} }, ErrMalformed},
		{"no way", func(d *Document) { d.Outputs = nil }, ErrMalformed},
		{"two ways", func(d *Document) { d.Storage = &StorageProof{} }, ErrMalformed},
		{"another version", func(d *Document) { d.Version = 2 }, ErrMalformed},
	})
	refuseAll(t, w, w.storageDocument, []forgery{
		{"another block number, stored", func(d *Document) { d.Claim.Number = 10 }, ErrState},
		{"another package, stored", func(d *Document) { d.Claim.Package[0] ^= 1 }, ErrCommitment},
	})
}

func TestTrust(t *testing.T) {
	w := newWorld(t)
	raw, err := json.Marshal(w.trust)
	require.NoError(t, err)
	again, err := ParseTrust(raw)
	require.NoError(t, err)
	require.Equal(t, w.trust, again)
	print1, err := w.trust.Fingerprint()
	require.NoError(t, err)
	again.Service++
	print2, err := again.Fingerprint()
	require.NoError(t, err)
	require.NotEqual(t, print1, print2)

	for name, spoil := range map[string]func(*Trust){
		"nobody":          func(t *Trust) { t.Validators = nil },
		"a key twice":     func(t *Trust) { t.Validators[3] = t.Validators[0] },
		"too few BLS":     func(t *Trust) { t.BLS = t.BLS[:3] },
		"a BLS key twice": func(t *Trust) { t.BLS[3] = t.BLS[0] },
	} {
		w := newWorld(t)
		spoil(w.trust)
		require.ErrorIs(t, w.trust.Validate(), ErrTrust, name)
		_, err := w.storageDocument(t).Verify(w.trust)
		require.ErrorIs(t, err, ErrTrust, name)
		_, err = w.vote(Precommit{Target: w.target, Round: 12, Set: 3}, 0, 1, 2, 3, 4).Verify(w.trust)
		require.ErrorIs(t, err, ErrTrust, "%s: each link asks by itself", name)
		require.ErrorIs(t, w.beefy(t, 0, 1, 2, 3, 4).Verify(w.trust), ErrTrust, name)
	}
	_, err = newWorld(t).storageDocument(t).Verify(nil)
	require.ErrorIs(t, err, ErrTrust)
	for _, text := range []string{``, `{}`, `{"set":1}`, string(raw) + "1", strings.Replace(string(raw), "set", "SET", 1)} {
		_, err := ParseTrust([]byte(text))
		require.ErrorIs(t, err, ErrTrust, "%.40s", text)
	}
}

func TestParseIsStrict(t *testing.T) {
	w := newWorld(t)
	raw, err := json.Marshal(w.storageDocument(t))
	require.NoError(t, err)
	text := string(raw)
	replace := func(old, with string) string {
		require.Contains(t, text, old)
		return strings.Replace(text, old, with, 1)
	}
	for name, bad := range map[string]string{
		"nothing":              ``,
		"null":                 `null`,
		"a list":               `[]`,
		"no version":           replace(`"version":1,`, ``),
		"another version":      replace(`"version":1,`, `"version":2,`),
		"an unknown name":      replace(`"version":1,`, `"version":1,"extra":0,`),
		"a name in capitals":   replace(`"claim"`, `"Claim"`),
		"a name twice":         replace(`"version":1,`, `"version":1,"commitment":"0x12",`),
		"an equal name twice":  replace(`"version":1,`, `"version":1,"version":1,`),
		"an escaped digit":     replace(`"commitment":"0x0`, `"commitment":"0\u00780`),
		"a missing name":       replace(`"index":5,`, ``),
		"a claim about zeros":  replace(`"transaction":"`+w.txs[5].Hash().Hex()+`"`, `"transaction":"`+common.Hash{}.Hex()+`"`),
		"null for a number":    replace(`"index":5`, `"index":null`),
		"a fraction":           replace(`"index":5`, `"index":5.0`),
		"a way that is null":   replace(`"commitment"`, `"log":null,"commitment"`),
		"another way":          replace(`"commitment"`, `"log":{"output":{"index":0,"count":0,"siblings":null},"log":{"index":0,"count":0,"siblings":null,"peaks":null}},"commitment"`),
		"capital digits":       replace(`"commitment":"0x0900`, `"commitment":"0X0900`),
		"a short hash":         replace(`"package":"0x03`, `"package":"0x`),
		"half a byte":          replace(`"commitment":"0x0`, `"commitment":"0x`),
		"something after it":   text + `{}`,
		"too many signers":     replace(`"validator":0`, `"validator":65536`),
		"a negative validator": replace(`"validator":0`, `"validator":-1`),
		"too large":            text + strings.Repeat(" ", MaxDocument),
	} {
		_, err := Parse([]byte(bad))
		require.ErrorIs(t, err, ErrMalformed, name)
	}
	_, err = Parse([]byte(" " + strings.ReplaceAll(text, ",", ",\n")))
	require.NoError(t, err, "white space is free")
}

// Whatever comes in, it is refused or it is a document that is written as it was read; and nothing
// proves but what was honest.
func FuzzParse(f *testing.F) {
	w := newWorld(f)
	for _, d := range []*Document{w.storageDocument(f), w.outputsDocument(f), w.logDocument(f), w.receiptDocument(f), w.blockDocument(f)} {
		raw, err := json.Marshal(d)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		d, err := Parse(raw)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Fatal(err)
			}
			return
		}
		once, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(once)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := json.Marshal(again); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("written %s and %s: %v", once, twice, err)
		}
		if r, err := d.VerifyBlock(w.trust); err == nil && !w.has(r, d) {
			t.Fatal("proved what is not so")
		}
	})
}

// has reports whether a result is true in the world.
func (w *world) has(r Result, d *Document) bool {
	if r.Commitment != w.commitment || r.Transaction == nil {
		return r.Commitment == w.commitment && r.Receipt == nil
	}
	i := slices.IndexFunc(w.txs, func(tx *types.Transaction) bool { return tx.Hash() == r.Transaction.Hash() })
	return i >= 0 && i == d.Transaction.Index && (r.Receipt == nil || equalReceipts(w.receipts[i], r.Receipt))
}

func FuzzDecodeOutputs(f *testing.F) {
	f.Add(EncodeOutputs(nil))
	f.Add(EncodeOutputs([]Output{{Service: 1, Yield: common.Hash{2}}}))
	f.Fuzz(func(t *testing.T, raw []byte) {
		outputs, err := DecodeOutputs(raw)
		if err == nil && !bytes.Equal(EncodeOutputs(outputs), raw) {
			t.Fatalf("%x reads as %v", raw, outputs)
		}
		if err != nil && !errors.Is(err, ErrOutput) {
			t.Fatal(err)
		}
	})
}

// No digit of a document is without weight: change one and some link does not hold. Each seventh is
// tried.
func TestDigitsMatter(t *testing.T) {
	w := newWorld(t)
	honest, err := json.Marshal(w.receiptDocument(t))
	require.NoError(t, err)
	for i, c := range honest {
		if i%7 != 0 || !strings.ContainsRune("0123456789abcdef", rune(c)) {
			continue
		}
		raw := bytes.Clone(honest)
		if raw[i] = '1'; c == '1' {
			raw[i] = '2'
		}
		forged, err := Parse(raw)
		if err == nil {
			_, err = forged.Verify(w.trust)
		}
		require.Error(t, err, "digit %d of %s", i, raw[max(0, i-20):i+1])
	}
}

func FuzzParseTrust(f *testing.F) {
	raw, err := json.Marshal(newWorld(f).trust)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Fuzz(func(t *testing.T, raw []byte) {
		trust, err := ParseTrust(raw)
		if err != nil {
			if !errors.Is(err, ErrTrust) {
				t.Fatal(err)
			}
			return
		}
		if err := trust.Validate(); err != nil {
			t.Fatal(err)
		}
		once, err := json.Marshal(trust)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ParseTrust(once); err != nil {
			t.Fatal(err)
		}
	})
}
