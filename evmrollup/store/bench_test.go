package store

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/pglog"
	"github.com/jamq/jamq/builder/simnet"
	"github.com/jamq/jamq/internal/postgres"
)

// list is a rollup that only accepts operations.
type list struct{ builder.List }

var errNever = errors.New("never called")

func (*list) Propose(context.Context, uint64) ([]byte, common.Hash, error) {
	return nil, common.Hash{}, builder.ErrIdle
}
func (*list) Apply(context.Context, builder.Block[[]byte]) error             { return errNever }
func (*list) Undo(context.Context, builder.Block[[]byte]) error              { return errNever }
func (*list) Root() common.Hash                                              { return common.Hash{1} }
func (*list) Payload(context.Context, builder.Block[[]byte]) ([]byte, error) { return nil, errNever }

// BenchmarkSubmit compares the logs on Pebble and on PostgreSQL, both on the disk: 256 users at a
// time submit operations of 110 bytes, as large as a transfer, and wait until each is durable.
func BenchmarkSubmit(b *testing.B) {
	for name, open := range map[string]func(*testing.B) builder.Log{
		"Pebble": func(b *testing.B) builder.Log {
			s, err := Open(b.TempDir(), slog.New(slog.DiscardHandler))
			require.NoError(b, err)
			b.Cleanup(func() { _ = s.Close() })
			return s.Log
		},
		"PostgreSQL": func(b *testing.B) builder.Log {
			s, err := postgres.Start("fsync=on")
			if s != nil {
				b.Cleanup(s.Remove)
			}
			postgres.Require(b, err)
			log, err := pglog.Open(b.Context(), pglog.DefaultConfig(s.URL(), "bench"))
			require.NoError(b, err)
			b.Cleanup(func() { _ = log.Close() })
			return log
		},
	} {
		b.Run(name, func(b *testing.B) {
			network, err := simnet.Tiny(jamq.Tiny().SlotDuration, 1, nil)
			require.NoError(b, err)
			on, err := builder.Open(b.Context(), builder.DefaultConfig(network.Spec()), open(b), builder.Rollup[[]byte](new(list)), network)
			require.NoError(b, err)
			var last atomic.Uint64
			const users = 256
			b.SetParallelism(users)
			b.ResetTimer()
			b.RunParallel(func(all *testing.PB) {
				for all.Next() {
					op := make([]byte, 110)
					binary.BigEndian.PutUint64(op, last.Add(1))
					if err := on.Submit(b.Context(), op); err != nil {
						b.Error(err)
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "operations/s")
		})
	}
}
