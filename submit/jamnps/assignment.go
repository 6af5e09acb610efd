package jamnps

import (
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// assignment tells the client which validators guarantee the packages of each core
// (Gray Paper 11.3), so that the client can send a package to the right peers. A feed
// reads it from the state after a block. It is valid for all slots of that block's
// epoch. An assignment is immutable and safe for concurrent use.
type assignment struct {
	// Validators are the active validators, in the order of their indices.
	validators []validator

	spec    jamq.ChainSpec
	cores   int
	entropy common.Hash // η₂, which shuffles the validators
	epoch   jamq.Slot   // the number of the epoch
}

// validator is a member of the active set.
type validator struct {
	// Key is the validator's Ed25519 key, or zero if the validator is punished.
	Key [ed25519.PublicKeySize]byte
	// Addr is the IP address and port that the validator has published in its metadata.
	Addr netip.AddrPort
}

// entropyChapter is the number of the entropy in the JAM state, which the Gray Paper
// calls C(6) (D.2). entropySize is its size in bytes.
const (
	entropyChapter = 6
	entropySize    = 4 * 32
)

// newAssignment computes the assignment from the entropy and the active validators.
func newAssignment(c *codec.Codec, slot jamq.Slot, entropy, validators []byte) (*assignment, error) {
	// Both arguments are parts of the state after the block of the slot: entropy is C(6), and
	// validators is C(8). The assignment holds for the epoch of the slot.
	spec := c.Spec()
	if len(entropy) != entropySize {
		return nil, fmt.Errorf("%w: entropy of %d bytes, want %d", ErrMalformed, len(entropy), entropySize)
	}
	cores, n := spec.Cores, spec.Validators
	if c.Version() >= codec.V080 {
		// From Gray Paper 0.8.0 on, the set of validators begins with their number. A third of
		// that number, at most Spec.Cores, is the number of active cores.
		count, _, err := countValidators(validators)
		if err != nil {
			return nil, fmt.Errorf("active validators: %w", err)
		}
		validators = validators[len(codec.AppendNatural(nil, uint64(count))):]
		n, cores = count, min(cores, count/3)
	}
	if len(validators) != n*codec.ValidatorSize || n == 0 || cores == 0 {
		return nil, fmt.Errorf("%w: %d bytes for %d validators, want %d each", ErrMalformed, len(validators), n, codec.ValidatorSize)
	}
	a := &assignment{spec: spec, cores: cores, entropy: common.Hash(entropy[2*32 : 3*32]), epoch: slot / spec.EpochLength}
	set, err := codec.DecodeValidators(validators)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	for _, v := range set {
		addr := netip.AddrFrom16([16]byte(v.Metadata[:])).Unmap()
		a.validators = append(a.validators, validator{
			Key: v.Ed25519, Addr: netip.AddrPortFrom(addr, binary.LittleEndian.Uint16(v.Metadata[16:])),
		})
	}
	return a, nil
}

// Guarantors returns the indices of the validators that guarantee packages of a core in
// the given slot, in ascending order. It returns nil if the slot is in another epoch or
// the core does not exist.
func (a *assignment) Guarantors(core jamq.CoreIndex, slot jamq.Slot) (indices []int) {
	if slot/a.spec.EpochLength != a.epoch || int(core) >= a.cores {
		return nil
	}
	rotation := int(slot % a.spec.EpochLength / a.spec.RotationPeriod)
	for i, at := range shuffledCores(a.cores, len(a.validators), a.entropy) {
		if (at+rotation)%a.cores == int(core) {
			indices = append(indices, i)
		}
	}
	return indices
}

// Among returns which of the given peers guarantee packages of a core in the given
// slot, as indices in peers.
func (a *assignment) Among(peers []Peer, core jamq.CoreIndex, slot jamq.Slot) (indices []int) {
	for _, v := range a.Guarantors(core, slot) {
		key := a.validators[v].Key
		i := slices.IndexFunc(peers, func(p Peer) bool { return [32]byte(p.Key) == key })
		if i >= 0 {
			indices = append(indices, i)
		}
	}
	return indices
}

// shuffledCores returns the core of each validator before the first rotation of an
// epoch (Gray Paper 11.19).
func shuffledCores(cores, validators int, entropy common.Hash) []int {
	// Each core gets an equal share of the validators.
	rest := make([]int, validators)
	for i := range rest {
		rest[i] = cores * i / validators
	}
	out := make([]int, 0, validators)
	// The entropy determines which validators a core gets (F.1 to F.3).
	var numbers [32]byte // eight random numbers of 4 bytes
	for i := range validators {
		if i%8 == 0 {
			numbers = blake2b.Sum256(binary.LittleEndian.AppendUint32(entropy[:], uint32(i/8)))
		}
		drawn := int(uint64(binary.LittleEndian.Uint32(numbers[4*(i%8):])) % uint64(len(rest)))
		out = append(out, rest[drawn])
		rest[drawn] = rest[len(rest)-1]
		rest = rest[:len(rest)-1]
	}
	return out
}

// readAssignment reads the assignment from the state before the best block.
func (f *Feed) readAssignment(ctx context.Context) (*assignment, error) {
	f.mu.Lock()
	newest := *f.tree.Best() // a copy, because its parent may be added later
	f.mu.Unlock()
	if newest.Parent == nil {
		return nil, fmt.Errorf("%w: no block after %s was delivered", ErrNoState, newest.Hash)
	}
	// The state root in the header of the best block is that after its parent, so the feed can
	// verify what peers answer about the parent. Peers that do not know the request for state
	// (CE 129) are skipped.
	at := newest.Parent
	entropy, err := f.chapter(ctx, at.Hash, newest.Note.root, entropyChapter, sparing)
	if err != nil {
		return nil, err
	}
	validators, err := f.chapter(ctx, at.Hash, newest.Note.root, statetrie.ChapterValidators, sparing)
	if err != nil {
		return nil, err
	}
	return newAssignment(f.client.cfg.Codec, at.Slot, entropy, validators)
}

// keepAssignment reads the assignment once in each epoch, until ctx ends.
func (f *Feed) keepAssignment(ctx context.Context) {
	spec := f.client.cfg.Codec.Spec()
	again := time.NewTicker(spec.SlotDuration)
	defer again.Stop()
	for {
		best, _ := f.heads()
		if a := f.client.assigned.Load(); a == nil || a.epoch != best.Slot/spec.EpochLength {
			// Before the first assignment, the client sends packages to all peers in
			// turn.
			if a, err := f.readAssignment(ctx); err == nil {
				f.client.assigned.Store(a)
			} else {
				f.log.Debug("the guarantors of the epoch are not known", "err", err)
			}
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

// sparing and insisting are the two values of the parameter drops of Feed.chapter: how
// often in a row a peer may close the connection at a request for state before it is
// skipped. With sparing, this is maxStateDrops. With insisting, a peer is never
// skipped, because a builder cannot do without the requested state.
const sparing, insisting = maxStateDrops, math.MaxInt

// maxStateDrops is how many times in a row a peer may close the connection at a request
// for state before it gets no such requests any more. It is more than 1, because a
// connection may once be lost for another reason.
const maxStateDrops = 2

// chapter returns a numbered part of the state after a block, verified against the
// state root.
func (f *Feed) chapter(ctx context.Context, block jamq.HeaderHash, root common.Hash, chapter uint8, drops int) ([]byte, error) {
	key := statetrie.ChapterKey(chapter)
	return anyPeer(f.client, nil, func(peer int) ([]byte, error) {
		p := f.client.peers[peer]
		// Some nodes do not know the request for state and close the connection instead of
		// refusing it. After some tries they are no longer asked.
		if int(p.stateDrops.Load()) >= drops {
			return nil, fmt.Errorf("%w: %s closes the connection at requests of the state", ErrRefused, p.Addr)
		}
		connected := p.rank() != away
		state, err := f.client.fetchState(ctx, peer, block, key, key, f.client.cfg.MaxState)
		switch {
		case err == nil:
			p.stateDrops.Store(0)
		case connected && errors.Is(err, ErrDisconnected):
			p.stateDrops.Add(1)
		}
		if err == nil {
			err = state.Verify(root, key, key)
		}
		if err != nil {
			return nil, err
		}
		if len(state.Entries) != 1 {
			return nil, fmt.Errorf("%w: no chapter %d after %s", ErrNoState, chapter, block)
		}
		return state.Entries[0].Value, nil
	})
}
