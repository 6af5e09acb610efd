package builder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/internal/bubble"
	"github.com/jamq/jamq/internal/words"
)

// picky is a rollup that encodes every body, and does not decode some of them.
type picky struct {
	*words.Saving
	decode func(raw []byte) error
}

func (p picky) Encode(b words.Body) ([]byte, error) { return json.Marshal(b) }

func (p picky) Decode(raw []byte) (body words.Body, err error) {
	if err := p.decode(raw); err != nil {
		return nil, err
	}
	err = json.Unmarshal(raw, &body)
	return body, err
}

// TestBodyIsNotDecoded: a block whose body a restart could not read is not made. The operation
// waits, and is executed when the codec is repaired.
func TestBodyIsNotDecoded(t *testing.T) {
	for name, decode := range map[string]func() error{
		"error": func() error { return errors.New("cannot decode") },
		"panic": func() error { panic("cannot decode") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Run(t, func(t *testing.T) {
				m := newMachine(t)
				refuses := func(raw []byte) error {
					if strings.Contains(string(raw), "bad") {
						return decode()
					}
					return nil
				}
				m.run(picky{new(words.Saving), refuses}, func(ctx context.Context, b *builder.Builder[words.Body]) {
					submit(ctx, t, b, 1, "good")
					require.NoError(t, b.Submit(ctx, []byte("bad")))
					time.Sleep(time.Hour)
					require.EqualValues(t, 1, b.Heads().Pending.Number)
				})
				again := new(words.Saving)
				m.run(picky{again, refuses}, func(context.Context, *builder.Builder[words.Body]) {
					require.Equal(t, []string{"good"}, again.State())
				})
				again = new(words.Saving)
				m.run(again, func(ctx context.Context, b *builder.Builder[words.Body]) {
					require.NoError(t, b.Await(ctx, final(2)))
					require.Equal(t, []string{"good", "bad"}, again.State())
				})
			})
		})
	}
}

// TestCheckpointDecodesNothing: a checkpoint calls the codec for no block, so that a Decode that
// panics or hangs cannot stop the queue.
func TestCheckpointDecodesNothing(t *testing.T) {
	bubble.Run(t, func(t *testing.T) {
		m, proposed := newMachine(t), new(atomic.Int64)
		m.cfg.CheckpointEvery = 10
		log := &counted{Log: &m.log}
		b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](picky{new(words.Saving), func([]byte) error { proposed.Add(1); return nil }}), m.network)
		require.NoError(t, err)
		m.during(b, func(ctx context.Context) {
			for i := range uint64(5) {
				submit(ctx, t, b, i+1, fmt.Sprint(i))
			}
		})
		require.Greater(t, log.replaced.Load(), int64(2))
		require.EqualValues(t, 5, proposed.Load(), "one call for each block")
		again := new(words.Saving)
		m.run(again, func(context.Context, *builder.Builder[words.Body]) {
			require.Equal(t, []string{"0", "1", "2", "3", "4"}, again.State())
		})
	})
}

// TestLargeRecordsCountMore: large operations make checkpoints more frequent, so that the log
// stays small.
func TestLargeRecordsCountMore(t *testing.T) {
	checkpoints := func(size int) (n int64) {
		bubble.Run(t, func(t *testing.T) {
			m := newMachine(t)
			m.cfg.CheckpointEvery = 50
			log := &counted{Log: &m.log}
			b, err := builder.Open(t.Context(), m.cfg, log, builder.Rollup[words.Body](new(words.Saving)), m.network)
			require.NoError(t, err)
			m.during(b, func(ctx context.Context) {
				for i := range uint64(5) {
					submit(ctx, t, b, i+1, fmt.Sprintf("%0*d", size, i))
				}
			})
			n = log.replaced.Load()
		})
		return n
	}
	small, large := checkpoints(10), checkpoints(200<<10)
	require.Greater(t, large, small)
}

// counted counts what is written to a log.
type counted struct {
	builder.Log
	records, bytes, replaced atomic.Int64
}

func (c *counted) Append(records ...[]byte) error {
	c.records.Add(int64(len(records)))
	for _, r := range records {
		c.bytes.Add(int64(len(r)))
	}
	return c.Log.Append(records...)
}

func (c *counted) Replace(records ...[]byte) error {
	c.replaced.Add(1)
	return c.Log.Replace(records...)
}
