package kvstore

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/jamq/jamq/eoa"
)

// List implements eoa.Store.
func (s *store) List(ctx context.Context, a eoa.Account, above uint64, limit int) (out []eoa.Record, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 || above == math.MaxUint64 {
		return nil, err
	}
	var bad error
	err = s.kv.Scan(ctx, numbered(a, kindRecord, above+1), after(prefix(a, kindRecord)), limit, func(_, value []byte) bool {
		var r eoa.Record
		if r, bad = eoa.DecodeRecord(value); bad != nil {
			return false
		}
		out = append(out, r)
		return true
	})
	return out, cmp.Or(err, bad)
}

// Backlog implements eoa.Store.
func (s *store) Backlog(ctx context.Context, a eoa.Account, limit int) (out eoa.Backlog, err error) {
	if err := ctx.Err(); err != nil {
		return out, err
	}
	st, err := s.begin(ctx, a, nil)
	if err != nil || limit <= 0 {
		return out, err
	}
	out.InFlight = st.m.Head.InFlight
	mark := prefix(a, kindPending)
	err = s.kv.Scan(ctx, mark, after(mark), limit, func(_, _ []byte) bool {
		out.Pending++
		return true
	})
	return out, err
}

// Events implements eoa.Store.
func (s *store) Events(ctx context.Context, a eoa.Account, above uint64, limit int) (out []eoa.Event, err error) {
	if err := ctx.Err(); err != nil || limit <= 0 || above == math.MaxUint64 {
		return nil, err
	}
	err = scanJSON(ctx, s.kv, numbered(a, kindEvent, above+1), after(prefix(a, kindEvent)), limit, &out)
	return out, err
}

// scanJSON appends the decoded values of up to limit keys in [from, to) to out.
func scanJSON[T any](ctx context.Context, kv KV, from, to []byte, limit int, out *[]T) error {
	var bad error
	err := kv.Scan(ctx, from, to, limit, func(key, value []byte) bool {
		var x T
		if bad = json.Unmarshal(value, &x); bad != nil {
			bad = fmt.Errorf("%w: %x: %w", eoa.ErrMalformed, key, bad)
			return false
		}
		*out = append(*out, x)
		return true
	})
	return cmp.Or(err, bad)
}

// Undelivered implements eoa.Store.
func (s *store) Undelivered(ctx context.Context, above eoa.Account, limit int) ([]eoa.Account, error) {
	return s.indexed(ctx, after(undeliveredKey(above, math.MaxUint64)), after([]byte(undelivered)), limit)
}

// Acknowledge implements eoa.Store.
func (s *store) Acknowledge(ctx context.Context, a eoa.Account, through uint64) error {
	return s.do(ctx, a, func(st *step) error {
		if through >= st.m.Seqs {
			st.undelivered(false)
		}
		from, to := prefix(a, kindEvent), after(prefix(a, kindEvent))
		if through < math.MaxUint64 {
			to = numbered(a, kindEvent, through+1)
		}
		return s.kv.Scan(ctx, from, to, math.MaxInt, func(key, _ []byte) bool {
			st.set(append([]byte(nil), key...), nil)
			return true
		})
	})
}

// Load implements eoa.Store.
func (s *store) Load(ctx context.Context, l eoa.Lease) (out eoa.Loaded, err error) {
	err = s.read(ctx, l.Account, func(st *step) error {
		if err := st.fenced(l); err != nil {
			return err
		}
		out.Head = st.m.Head
		lossy, is := s.kv.(Lossy)
		out.MayLose = is && lossy.MayLose()
		var ids []uint64
		mark := prefix(l.Account, kindOpen)
		if err := s.kv.Scan(ctx, mark, after(mark), math.MaxInt, func(key, _ []byte) bool {
			ids = append(ids, numberOf(key))
			return true
		}); err != nil {
			return err
		}
		out.Open, err = s.records(ctx, l.Account, ids)
		return err
	})
	return out, err
}

// Inbox implements eoa.Store.
func (s *store) Inbox(ctx context.Context, a eoa.Account, limit int) (out eoa.Inbox, err error) {
	err = s.read(ctx, a, func(st *step) error {
		out = eoa.Inbox{Wake: st.m.Wake, Head: st.m.Head}
		if err := scanJSON(ctx, s.kv, prefix(a, kindOrder), after(prefix(a, kindOrder)), math.MaxInt, &out.Orders); err != nil || limit <= 0 {
			return err
		}
		var ids []uint64
		mark := prefix(a, kindPending)
		room := eoa.MaxInboxBytes
		if err := s.kv.Scan(ctx, mark, after(mark), limit, func(key, value []byte) bool {
			size, _ := binary.Uvarint(value)
			if room -= int(size); room < 0 && len(ids) > 0 {
				return false
			}
			ids = append(ids, numberOf(key))
			return true
		}); err != nil {
			return err
		}
		out.More = len(ids) == limit || room < 0
		out.Pending, err = s.records(ctx, a, ids)
		return err
	})
	return out, err
}
