package proof

import (
	"fmt"
	"math"
	"slices"

	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/submit/codec"
)

// Handoff proves which validator set follows the trusted one, so that a verifier
// can update its [Trust] without asking another source. It proves two parts of the
// state after a final block of the trusted set: C(8) has the active validators, and
// C(4) has those of the next epoch. The validators of the next epoch stay the same
// during a whole epoch (GP 6.13), so any final block of the epoch will do.
//
// A verifier needs one handoff for each set, in the order of the sets. There are
// gaps that no handoff can cross:
//
//   - a set that made no block final, or for which no node has kept a final block
//     with its state
//   - a set of which a third or more cannot vote, because the keys of punished
//     validators are zero in the next set too and still count in its size
//   - a set whose former members have sold or lost more than two thirds of their
//     keys, because the new owners can sign for any state. JAM does not prevent
//     this once a validator has left, so a verifier must follow the sets while
//     their members are still accountable, or obtain a new trust
//   - a set for which only signatures over the output log ([Beefy]) exist, because
//     the log does not contain the validators
//   - a change of the size of the set, as Gray Paper 0.8.0 allows
//
// Two assumptions belong to the draft of JAM's finality (see [Draft]): that the
// next set has the next number, and that the validators of an epoch vote for the
// blocks of that epoch.
type Handoff struct {
	// Version is [Version].
	Version int `json:"version"`
	// Finality proves that a block of the trusted set is final.
	Finality Finality `json:"finality"`
	// Active proves C(8), the active validators, in the state after that block. It shows that
	// the block belongs to the epoch of the trusted set.
	Active ChapterProof `json:"active"`
	// Pending proves C(4), which contains the validators of the next epoch, in the same state.
	Pending ChapterProof `json:"pending"`
}

// ParseHandoff decodes a handoff of at most [MaxDocument] bytes and is as strict as
// [Parse]. It verifies nothing. The error wraps ErrMalformed.
func ParseHandoff(data []byte) (*Handoff, error) {
	h := new(Handoff)
	if err := parse(data, h); err != nil {
		return nil, err
	}
	return h, nil
}

// Verify returns the trust in the next validator set. The result has the number and
// the keys of that set, and it takes the service, the prefix and the format from
// the given trust. It has BLS keys only if the given trust has some. The error
// wraps ErrFinality, ErrState, ErrHandoff, ErrTrust or ErrMalformed.
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

// withKeys returns a copy of the trust in which the keys are replaced by those of
// an encoded validator set.
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
