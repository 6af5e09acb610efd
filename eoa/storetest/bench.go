package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// Benchmark measures how long the store takes to commit 50 records, and compares that with
// the least that its database needs. For the comparison, raw must write the bytes of the
// same records, with their indices as keys, by the cheapest write of the database. The
// store must be empty.
func Benchmark(b *testing.B, s eoa.Store, raw func(records [][]byte) error) {
	const batch = 50
	ctx, now := context.Background(), time.Now()
	l, err := s.Acquire(ctx, eoa.Account{ChainID: 1, Address: common.Address{1}}, "w", now, time.Hour)
	require.NoError(b, err)
	var q []eoa.Request
	for i := range batch {
		q = append(q, eoa.Request{Key: fmt.Sprint(i), Data: make([]byte, 100)})
	}
	records, err := s.Submit(ctx, l.Account, now, q...)
	require.NoError(b, err)
	var encoded [][]byte
	for i := range records {
		records[i].State = eoa.Broadcast
		records[i].Attempts = []eoa.Attempt{{Hash: common.Hash{byte(i)}, Raw: make([]byte, 220), SentAt: now, Result: eoa.Accepted}}
		encoded = append(encoded, eoa.EncodeRecord(&records[i]))
	}
	transitions := func(b *testing.B) {
		b.ReportMetric(float64(batch*b.N)/b.Elapsed().Seconds(), "transitions/s")
	}
	b.Run("store", func(b *testing.B) {
		loaded, err := s.Load(ctx, l)
		require.NoError(b, err)
		head := loaded.Head
		for b.Loop() {
			_, err := s.Commit(ctx, l, now, eoa.Batch{Head: head, Records: records})
			require.NoError(b, err)
			head.Version++
		}
		transitions(b)
	})
	b.Run("raw", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, raw(encoded))
		}
		transitions(b)
	})
}
