package jamnps

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/submit/codec"
)

// assignmentVector has the part of a public vector of the reports state transition that concerns
// guarantors.
type assignmentVector struct {
	Input struct {
		Slot       jamq.Slot
		Guarantees []struct {
			Slot   jamq.Slot
			Report struct {
				Core jamq.CoreIndex `json:"core_index"`
			}
			Signatures []struct {
				Validator int `json:"validator_index"`
			}
		}
	}
	Pre struct {
		Validators []struct{ Bandersnatch, Ed25519, Bls, Metadata hexutil.Bytes } `json:"curr_validators"`
		Entropy    []hexutil.Bytes
	} `json:"pre_state"`
	Output map[string]json.RawMessage
}

// state returns C(6) and C(8) of the vector.
func (v *assignmentVector) state() (entropy, validators []byte) {
	for _, e := range v.Pre.Entropy {
		entropy = append(entropy, e...)
	}
	for _, k := range v.Pre.Validators {
		validators = append(append(append(append(validators, k.Bandersnatch...), k.Ed25519...), k.Bls...), k.Metadata...)
	}
	return entropy, validators
}

// The guarantors in the public vectors that a chain accepts are those of the assignment. In a
// vector that it refuses because of a wrong assignment, one is not.
func TestAssignmentVectors(t *testing.T) {
	dir := os.Getenv("JAMQ_VECTORS")
	if dir == "" {
		t.Skip("JAMQ_VECTORS is not set: the public vectors are not here")
	}
	files, err := filepath.Glob(filepath.Join(dir, "jam", "reports", "*.json"))
	require.NoError(t, err)
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	accepted, refused := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		var v assignmentVector
		require.NoError(t, json.Unmarshal(raw, &v), file)
		entropy, validators := v.state()
		a, err := newAssignment(c, v.Input.Slot, entropy, validators)
		require.NoError(t, err)
		_, ok := v.Output["ok"]
		wrong := filepath.Base(file) == "wrong_assignment-1.json"
		for _, g := range v.Input.Guarantees {
			if g.Slot/12 != v.Input.Slot/12 { // of the epoch before, with its own validators
				continue
			}
			serve := a.Guarantors(g.Report.Core, g.Slot)
			for _, s := range g.Signatures {
				switch {
				case ok:
					require.Contains(t, serve, s.Validator, file)
					accepted++
				case wrong && s.Validator == 2:
					require.NotContains(t, serve, s.Validator, file)
					refused++
				}
			}
		}
	}
	require.Greater(t, accepted, 50)
	require.Equal(t, 1, refused)
}

// someValidators returns C(8) with validators whose keys are known to the tests and whose endpoints
// are on the loopback interface.
func someValidators(n int) (raw []byte) {
	for i := range n {
		v := codec.Validator{Ed25519: [32]byte(privateKey(byte(i)).Public().(ed25519.PublicKey))}
		loopback := netip.MustParseAddr("127.0.0.1").As16()
		copy(v.Metadata[:], binary.LittleEndian.AppendUint16(loopback[:], uint16(4000+i)))
		raw = append(raw, codec.EncodeValidators([]codec.Validator{v})...)
	}
	return raw
}

func TestAssignment(t *testing.T) {
	c, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	entropy := make([]byte, entropySize)
	a, err := newAssignment(c, 25, entropy, someValidators(6))
	require.NoError(t, err)
	require.Equal(t, "127.0.0.1:4003", a.validators[3].Addr.String())
	for slot := jamq.Slot(24); slot < 36; slot++ {
		first, second := a.Guarantors(0, slot), a.Guarantors(1, slot)
		require.Len(t, first, 3)
		require.ElementsMatch(t, []int{0, 1, 2, 3, 4, 5}, append(slices.Clone(first), second...))
		if slot >= 28 {
			require.Equal(t, a.Guarantors(1, slot-4), first, "the cores change with each rotation")
		}
	}
	require.Empty(t, a.Guarantors(0, 23), "another epoch")
	require.Empty(t, a.Guarantors(0, 36), "another epoch")
	require.Empty(t, a.Guarantors(2, 25), "no such core")
	peers := []Peer{{Key: privateKey(77).Public().(ed25519.PublicKey)}}
	for i := range 6 {
		peers = append(peers, Peer{Key: a.validators[5-i].Key[:]})
	}
	for i, at := range a.Among(peers, 1, 25) {
		require.Equal(t, a.Guarantors(1, 25)[i], 6-at)
	}
	for _, bad := range [][2][]byte{{nil, someValidators(6)}, {entropy, nil}, {entropy, someValidators(5)}, {entropy, someValidators(7)}, {entropy, {1}}} {
		_, err := newAssignment(c, 25, bad[0], bad[1])
		require.ErrorIs(t, err, ErrMalformed)
	}

	newer, err := codec.New(codec.V080, jamq.Tiny())
	require.NoError(t, err)
	b, err := newAssignment(newer, 25, entropy, append([]byte{6}, someValidators(6)...))
	require.NoError(t, err)
	require.Equal(t, a.Guarantors(0, 25), b.Guarantors(0, 25))
	for _, bad := range [][]byte{nil, {0}, someValidators(6), append([]byte{2}, someValidators(2)...), make([]byte, 100)} {
		_, err := newAssignment(newer, 25, entropy, bad)
		require.ErrorIs(t, err, ErrMalformed)
	}
}

// The first attempts for a package go to the guarantors of its core, in whatever order the peers
// are configured, and later ones to the others. The feed reads the assignment of the new epoch.
func TestPackagesGoToGuarantors(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		w := newWorld(t)
		peers := []*guarantor{}
		for i := range byte(5) {
			peers = append(peers, startGuarantor(t, w, i+1)) // validators 1 to 5
		}
		c := openClient(t, w, nil, peers...)
		f, sink := openFeed(t, c, FeedConfig{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- f.Follow(ctx, sink) }()
		for range 3 { // epochs
			now := c.clock.SlotAt(time.Now())
			w.grow(w.best, now-w.best.header.Slot)
			w.grow(w.best, 1)
			time.Sleep(2 * w.spec.SlotDuration)
			now = c.clock.SlotAt(time.Now())
			a := c.assigned.Load()
			require.NotNil(t, a)
			require.Equal(t, now/w.spec.EpochLength, a.epoch)
			serving := a.Among(c.cfg.Peers, 1, now)
			require.NotEmpty(t, serving)
			seen := map[int]bool{}
			for attempt := 1; attempt <= len(peers); attempt++ {
				p := c.choose(1, attempt)
				require.Equal(t, attempt <= len(serving), slices.Contains(serving, p.index))
				seen[p.index] = true
			}
			require.Len(t, seen, len(peers), "each peer has its turn")
			time.Sleep(time.Duration(w.spec.EpochLength) * w.spec.SlotDuration)
		}
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
	})
}
