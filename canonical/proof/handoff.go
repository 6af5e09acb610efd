package proof

import (
	"fmt"
	"math"
	"slices"

	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// Handoff proves the validator set that follows the trusted one, so that a
// verifier can replace its [Trust] without another source. It is about a final
// block of the trusted set: the state after that block names the active
// validators, C(8), and those of the next epoch, C(4). The Gray Paper fixes the
// latter for the whole epoch (GP 6.13), so every final block of the epoch will do.
//
// A verifier needs one handoff for each set, in their order. A handoff cannot lead
// a verifier
//
//   - over a set that made no block final, or of which no node has kept a final
//     block with its state;
//   - beyond a set of which a third or more cannot vote. The keys of validators
//     that JAM has punished are zero in the next set too, and stay in its size;
//   - from a set whose former members have sold or lost more than two thirds of
//     its keys: they can sign for any state. JAM does not prevent that once a
//     validator has left. A verifier must therefore follow the sets while the
//     members of its set are still accountable, or obtain a new trust;
//   - with signatures over the output log ([Beefy]) alone, because the log does
//     not contain the validators;
//   - to a set of another size, as Gray Paper 0.8.0 allows.
//
// The number of the next set, and that the validators of an epoch vote for its
// blocks, belong to the draft of JAM's finality; see [Draft].
type Handoff struct {
	// Version is [Version].
	Version int `json:"version"`
	// Finality makes the block final.
	Finality Finality `json:"finality"`
	// Active proves C(8) under the state root of that block. It shows that the
	// block belongs to the epoch of the trusted set.
	Active ChapterProof `json:"active"`
	// Pending proves C(4) under the same root.
	Pending ChapterProof `json:"pending"`
}

// ParseHandoff decodes a handoff of at most [MaxDocument] bytes, as strictly as
// [Parse]. The error wraps ErrMalformed.
func ParseHandoff(data []byte) (*Handoff, error) {
	h := new(Handoff)
	if err := parse(data, h); err != nil {
		return nil, err
	}
	return h, nil
}

// Verify returns the trust in the next set: with the number and the keys of that
// set, and with the service, the prefix and the format of the given trust. It has
// BLS keys if the given trust has some. The error wraps ErrFinality, ErrState,
// ErrHandoff, ErrTrust or ErrMalformed.
func (h *Handoff) Verify(trust *Trust) (*Trust, error) {
	if h.Version != Version {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrMalformed, h.Version, Version)
	}
	target, err := h.Finality.Verify(trust)
	if err != nil {
		return nil, err
	}
	if trust.Set == math.MaxUint64 {
		return nil, fmt.Errorf("%w: no set follows set %d", ErrHandoff, trust.Set)
	}
	if err := h.Active.prove(target.StateRoot, statetrie.ChapterValidators); err != nil {
		return nil, err
	}
	if err := h.Pending.prove(target.StateRoot, statetrie.ChapterSafrole); err != nil {
		return nil, err
	}
	size := len(trust.Validators) * codec.ValidatorSize
	if len(h.Active.Value) != size || len(h.Pending.Value) < size {
		return nil, fmt.Errorf("%w: C(8) has %d bytes and C(4) %d, want %d and at least as many for %d validators",
			ErrHandoff, len(h.Active.Value), len(h.Pending.Value), size, len(trust.Validators))
	}
	active, err := trust.withKeys(h.Active.Value)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(active.Validators, trust.Validators) || !slices.Equal(active.BLS, trust.BLS) {
		return nil, fmt.Errorf("%w: the active validators at slot %d are not those of the trusted set %d", ErrHandoff, target.Slot, trust.Set)
	}
	next, err := trust.withKeys(h.Pending.Value[:size])
	if err != nil {
		return nil, err
	}
	next.Set++
	if err := next.Validate(); err != nil {
		return nil, fmt.Errorf("set %d: %w", next.Set, err)
	}
	return next, nil
}

// withKeys returns a copy of the trust with the keys of an encoded set.
func (t *Trust) withKeys(set []byte) (*Trust, error) {
	validators, err := codec.DecodeValidators(set)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrHandoff, err)
	}
	out := *t
	out.Validators, out.BLS = nil, nil
	for _, v := range validators {
		out.Validators = append(out.Validators, v.Ed25519)
		if len(t.BLS) > 0 {
			// The key is in G1 (48 bytes), then in G2.
			out.BLS = append(out.BLS, BLSKey(v.BLS[len(v.BLS)-len(BLSKey{}):]))
		}
	}
	return &out, nil
}
