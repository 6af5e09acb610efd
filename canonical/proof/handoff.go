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
//   - an upgrade of the chain to another version of the Gray Paper. The host then
//     sets [Trust].GrayPaper
//
// Two assumptions belong to the draft of JAM's finality (see [Draft]): that the
// next set has the next number, and that the validators of an epoch vote for the
// blocks of that epoch.
type Handoff struct {
	// Version is [Version].
	Version int `json:"version"`
	// Finality proves that a block of the trusted set is final.
	Finality Finality `json:"finality"`
	// Active proves the active validators in the state after the final block; the Gray Paper
	// calls this part of the state C(8). It shows that the block belongs to the epoch of the
	// trusted set.
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

// Verify checks the handoff and returns the trust in the next validator set. The service,
// the prefix and the format are those of the given trust; the number and the keys are
// those of the next set. The result has BLS keys only if the given trust has some. The
// error wraps ErrFinality, ErrState, ErrHandoff, ErrTrust or ErrMalformed.
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
	active, rest, err := trust.withKeys(h.Active.Value)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after the validators", ErrHandoff, len(rest))
	}
	if err != nil {
		return nil, fmt.Errorf("C(8): %w", err)
	}
	if !slices.Equal(active.Validators, trust.Validators) || !slices.Equal(active.BLS, trust.BLS) {
		return nil, fmt.Errorf("%w: the active validators at slot %d are not those of the trusted set %d", ErrHandoff, target.Slot, trust.Set)
	}
	next, _, err := trust.withKeys(h.Pending.Value)
	if err != nil {
		return nil, fmt.Errorf("C(4): %w", err)
	}
	next.Set++
	if err := next.Validate(); err != nil {
		return nil, fmt.Errorf("set %d: %w", next.Set, err)
	}
	return next, nil
}

// withKeys decodes a validator set at the beginning of raw. It returns a copy of the trust
// with the keys of that set, and the bytes after the set.
func (t *Trust) withKeys(raw []byte) (out *Trust, rest []byte, err error) {
	size := uint64(len(t.Validators))
	// Before Gray Paper 0.8.0, an encoded set does not begin with its size, because all sets
	// of a chain have the same size.
	if t.GrayPaper >= codec.V080 {
		if size, raw, err = codec.DecodeNatural(raw); err != nil {
			return nil, nil, fmt.Errorf("%w: the number of validators: %w", ErrHandoff, err)
		}
	}
	if most := uint64(len(raw) / codec.ValidatorSize); size > most {
		return nil, nil, fmt.Errorf("%w: %d bytes for %d validators, want %d for each", ErrHandoff, len(raw), size, codec.ValidatorSize)
	}
	end := int(size) * codec.ValidatorSize
	validators, err := codec.DecodeValidators(raw[:end])
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrHandoff, err)
	}
	next := *t
	next.Validators, next.BLS = nil, nil
	for _, v := range validators {
		next.Validators = append(next.Validators, v.Ed25519)
		if len(t.BLS) > 0 {
			// The key is in G1 (48 bytes), then in G2.
			next.BLS = append(next.BLS, BLSKey(v.BLS[len(v.BLS)-len(BLSKey{}):]))
		}
	}
	return &next, raw[end:], nil
}
