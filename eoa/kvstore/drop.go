package kvstore

import (
	"encoding/binary"

	"github.com/jamq/jamq/eoa"
)

// When a record is deleted, a small value stays under the caller's key: the id, the
// state, and the beginning of the digest of the payload as it was submitted.
// Sixteen bytes of a SHA-256 are enough to distinguish payloads.
const (
	keptDigest  = 16
	droppedSize = 8 + 1 + keptDigest
)

// drop deletes the records of ended requests.
func (st *step) drop(records []eoa.Record) error {
	if len(records) == 0 {
		return nil
	}
	keys := make([][]byte, len(records))
	for i := range records {
		keys[i] = numbered(st.a, kindDigest, records[i].ID)
	}
	digests, err := st.s.kv.Get(st.ctx, keys...)
	if err != nil {
		return err
	}
	for i := range records {
		r := &records[i]
		if !r.State.Terminal() || len(digests[i]) < keptDigest {
			continue // dropped before, or not ended
		}
		// The id, the state and the beginning of the digest stay, so that the store
		// recognizes the request if it is submitted again.
		kept := append(binary.BigEndian.AppendUint64(make([]byte, 0, droppedSize), r.ID), byte(r.State))
		st.set(named(st.a, kindKey, r.Key), append(kept, digests[i][:keptDigest]...))
		st.set(numbered(st.a, kindRecord, r.ID), nil)
		st.set(keys[i], nil)
		for k := range r.Attempts {
			st.set(hashed(st.a, kindHash, r.Attempts[k].Hash), nil)
		}
	}
	return nil
}

// parseDropped decodes the value that drop has left under a request's key.
func parseDropped(value []byte) (r eoa.Record, digest []byte, ok bool) {
	// A value of another size means that the record still exists.
	if len(value) != droppedSize {
		return r, nil, false
	}
	r.ID, r.State = binary.BigEndian.Uint64(value), eoa.State(value[8])
	return r, value[9:], true
}
