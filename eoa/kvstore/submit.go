package kvstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/jamq/jamq/eoa"
)

// Submit implements eoa.Store.
func (s *store) Submit(ctx context.Context, a eoa.Account, now time.Time, requests ...eoa.Request) (out []eoa.Record, err error) {
	err = s.do(ctx, a, func(st *step) error {
		var accepted bool
		out, accepted, err = st.accept(now, requests, false)
		if accepted {
			st.woken(now)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// accept stores the requests whose keys are new.
func (st *step) accept(now time.Time, requests []eoa.Request, lenient bool) (out []eoa.Record, accepted bool, err error) {
	if len(requests) == 0 {
		return nil, false, nil
	}
	there, err := st.find(requests)
	if err != nil {
		return nil, false, err
	}
	for i := range requests {
		q := &requests[i]
		digest := q.Digest()
		old, has := there[q.Key]
		// A key that is known already must come with the same payload as before. A request that
		// the executor adds itself (lenient) is skipped instead.
		if has && !lenient && !bytes.Equal(old.digest, digest[:len(old.digest)]) {
			return nil, false, fmt.Errorf("%w: %q is the key of record %d with another payload", eoa.ErrKeyReused, q.Key, old.record.ID)
		}
		if !has {
			st.m.IDs++
			old = known{eoa.Record{Request: *q, ID: st.m.IDs, QueuedAt: now}, digest[:]}
			st.write(&old.record)
			st.set(named(st.a, kindKey, q.Key), binary.BigEndian.AppendUint64(nil, old.record.ID))
			st.set(numbered(st.a, kindDigest, old.record.ID), old.digest)
			there[q.Key] = old
			accepted = true
		}
		out = append(out, old.record)
	}
	return out, accepted, nil
}

// known is an accepted request with the digest of its original payload. If the
// record was dropped, only the beginning of the digest is left.
type known struct {
	record eoa.Record
	digest []byte
}

// find returns the stored records of requests, by key, with at most two reads.
func (st *step) find(requests []eoa.Request) (map[string]known, error) {
	keys := make([][]byte, len(requests))
	for i := range requests {
		keys[i] = named(st.a, kindKey, requests[i].Key)
	}
	ids, err := st.s.kv.Get(st.ctx, keys...)
	if err != nil {
		return nil, err
	}
	out := map[string]known{}
	var wanted [][]byte
	for i, id := range ids {
		if r, digest, dropped := parseDropped(id); dropped {
			r.Request = requests[i]
			out[r.Key] = known{r, digest}
		} else if len(id) == 8 {
			n := binary.BigEndian.Uint64(id)
			wanted = append(wanted, numbered(st.a, kindRecord, n), numbered(st.a, kindDigest, n))
		}
	}
	if len(wanted) == 0 {
		return out, nil
	}
	values, err := st.s.kv.Get(st.ctx, wanted...)
	if err != nil {
		return nil, err
	}
	for i := 0; i < len(values); i += 2 {
		r, err := eoa.DecodeRecord(values[i])
		if err != nil {
			return nil, err
		}
		out[r.Key] = known{r, values[i+1]}
	}
	return out, nil
}
