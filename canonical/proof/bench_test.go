package proof

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/canonical/statetrie"
)

// full returns the trust in a full JAM validator set, and just enough signatures of both kinds over
// a target and a peak.
func full(b *testing.B) (*Trust, *Finality, *Beefy) {
	const validators = 1023
	trust := &Trust{}
	p := Precommit{Target: Target{Slot: 1}}
	f, beefy := &Finality{Format: Draft{}.Name(), Precommit: p}, &Beefy{Peak: common.Hash{1}}
	for i := range validators {
		seed := make([]byte, 32)
		binary.LittleEndian.PutUint32(seed, uint32(i+1))
		key := ed25519.NewKeyFromSeed(seed)
		secret, err := NewBLSSecret(seed)
		if err != nil {
			b.Fatal(err)
		}
		trust.Validators = append(trust.Validators, ValidatorKey(key.Public().(ed25519.PublicKey)))
		trust.BLS = append(trust.BLS, secret.Public())
		if i < Quorum(validators) {
			f.Signatures = append(f.Signatures, p.Sign(Draft{}, uint16(i), key))
			s, err := secret.SignPeak(beefy.Peak, uint16(i))
			if err != nil {
				b.Fatal(err)
			}
			beefy.Signatures = append(beefy.Signatures, s)
		}
	}
	return trust, f, beefy
}

// The cost for a light client on the full chain: 683 of 1023 signatures.
func BenchmarkFinalityFull(b *testing.B) {
	trust, f, beefy := full(b)
	b.Run("ed25519", func(b *testing.B) {
		for b.Loop() {
			if _, err := f.Verify(trust); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bls", func(b *testing.B) {
		for b.Loop() {
			if err := beefy.Verify(trust); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkVerifyTiny(b *testing.B) {
	w := newWorld(b)
	d := w.storageDocument(b)
	for b.Loop() {
		if _, err := d.Verify(w.trust); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	raw, err := json.Marshal(newWorld(b).storageDocument(b))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(raw)))
	for b.Loop() {
		if _, err := Parse(raw); err != nil {
			b.Fatal(err)
		}
	}
}

// One more key in a state of 100,000.
func BenchmarkStateTrieSet(b *testing.B) {
	var t *statetrie.Trie
	key := func(i int) statetrie.Key {
		return statetrie.StorageKey(7, binary.LittleEndian.AppendUint64(nil, uint64(i)))
	}
	for i := range 100_000 {
		t = t.Set(key(i), []byte{1})
	}
	i := 0
	for b.Loop() {
		t.Set(key(100_000+i), []byte{1})
		i++
	}
}
