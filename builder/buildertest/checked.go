package buildertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/builder"
)

// checked wraps the rollup under test and checks the rules that a rollup must follow.
// At random, its calls also fail, take long, or are the last ones before the process
// dies.
type checked[B any] struct {
	life  *life[B]
	inner builder.Rollup[B]
	busy  atomic.Int32 // calls that must not overlap
	// A proposal can only be repeated if no operation arrived in between. admits counts the
	// calls of Admit, once when they begin and once when they end. proposedAt is that count at
	// the last proposal, and proposed is the number of the proposed block.
	admits     atomic.Int64
	proposed   uint64
	proposedAt int64
}

// wrap returns the wrapped rollup.
func (l *life[B]) wrap(c *checked[B]) builder.Rollup[B] {
	// The builder uses a type assertion to detect a Checkpointer. The wrapper may therefore
	// have the methods of a Checkpointer only if the rollup under test has them.
	if _, points := c.inner.(builder.Checkpointer); points {
		return struct {
			*checked[B]
			pointing[B]
		}{c, pointing[B]{c}}
	}
	return c
}

// call makes a call of the rollup under test, and may kill the process.
func (c *checked[B]) call(name string, mayFail bool, f func() error) error {
	// The test may kill the simulated process before and after this call. If mayFail is true,
	// it may also let the call take long, fail or panic.
	return c.life.moment(func() error {
		if !mayFail {
			return c.note(name, f)
		}
		if c.life.roll("slow "+name, 7) == 0 {
			time.Sleep(time.Duration(c.life.roll(name, 20_000)) * time.Millisecond)
		}
		return c.life.chance(name, func() error { return c.note(name, f) })
	})
}

// note makes a call and writes it to the diary. If the process is dead, it only returns
// errDied.
func (c *checked[B]) note(name string, f func() error) error {
	if c.life.isDead() {
		return errDied
	}
	err := f()
	if err != nil {
		c.life.diary.note("%s: %v", name, err)
	} else {
		c.life.diary.note("%s", name)
	}
	return err
}

// alone calls f, and reports a problem if another call of alone is still running.
func (c *checked[B]) alone(f func() error) error {
	if c.busy.Add(1) > 1 {
		c.life.fail(fmt.Errorf("buildertest: two calls of the rollup at a time"))
	}
	defer c.busy.Add(-1)
	return f()
}

// Admit implements builder.Operations. At random it waits first, so that calls overlap.
func (c *checked[B]) Admit(ctx context.Context, op []byte) error {
	if c.life.running() && c.life.roll("late", 3) == 0 {
		time.Sleep(time.Duration(c.life.roll("late", 3000)) * time.Millisecond)
	}
	c.admits.Add(1)
	defer c.admits.Add(1)
	return c.call(fmt.Sprintf("admit %s", short(op)), c.mayFail(), func() error { return c.inner.Admit(ctx, op) })
}

// TakeChanges implements builder.Operations.
func (c *checked[B]) TakeChanges() [][]byte { return c.inner.TakeChanges() }

// ReplayChange implements builder.Operations.
func (c *checked[B]) ReplayChange(ctx context.Context, change []byte) error {
	return c.inner.ReplayChange(ctx, change)
}

// Recovered implements builder.Operations.
func (c *checked[B]) Recovered(ctx context.Context, save func() error) error {
	return c.call("recovered", false, func() error { return c.inner.Recovered(ctx, save) })
}

// Propose implements builder.Rollup. It calls the inner Propose twice and discards
// the first proposal. If a rollup wrongly removes operations in Propose, it loses
// them here, and the run fails.
func (c *checked[B]) Propose(ctx context.Context, number uint64) (body B, root common.Hash, err error) {
	err = c.alone(func() error {
		return c.call(fmt.Sprintf("propose block %d", number), true, func() (err error) {
			if c.life.gathers() {
				return builder.ErrIdle
			}
			before := c.inner.Root()
			c.proposed, c.proposedAt = number, c.admits.Load()
			if _, _, err := c.inner.Propose(ctx, number); err != nil {
				return err
			}
			body, root, err = c.inner.Propose(ctx, number)
			if err == nil {
				c.checkCodec(body)
			}
			if after := c.inner.Root(); after != before {
				c.life.fail(fmt.Errorf("Propose changes the root from %s to %s", before, after))
			}
			return err
		})
	})
	return body, root, err
}

// checkCodec checks that a block's body is the same after encoding and decoding.
func (c *checked[B]) checkCodec(body B) {
	// Without this check, a faulty codec would be noticed only after a restart, which
	// decodes the bodies in the log.
	raw, err := c.Encode(body)
	var decoded B
	if err == nil {
		decoded, err = c.Decode(raw)
	}
	if err == nil {
		var again []byte
		if again, err = c.Encode(decoded); err == nil && !bytes.Equal(again, raw) {
			err = fmt.Errorf("%w: have %.80q after decoding, want %.80q", builder.ErrCodec, again, raw)
		}
	}
	if err != nil {
		c.life.fail(fmt.Errorf("the codec of bodies: %w", err))
	}
}

// Encode implements builder.Codec with the codec of the inner rollup. If there is none, it encodes
// the body as JSON, as the builder does.
func (c *checked[B]) Encode(body B) ([]byte, error) {
	if codec, ok := c.inner.(builder.Codec[B]); ok {
		return codec.Encode(body)
	}
	return json.Marshal(body)
}

// Decode implements builder.Codec.
func (c *checked[B]) Decode(raw []byte) (body B, err error) {
	if codec, ok := c.inner.(builder.Codec[B]); ok {
		return codec.Decode(raw)
	}
	err = json.Unmarshal(raw, &body)
	return body, err
}

// Apply implements builder.Rollup. It applies the block, undoes it and applies it again, to check
// that Undo restores the state before the block.
func (c *checked[B]) Apply(ctx context.Context, b builder.Block[B]) error {
	return c.alone(func() error {
		return c.call(fmt.Sprintf("apply block %d", b.Number), c.mayFail(), func() error {
			if err := c.step(ctx, b, c.inner.Apply, "Apply", b.Root); err != nil {
				return err
			}
			if err := c.step(ctx, b, c.inner.Undo, "Undo", b.PreRoot); err != nil {
				return err
			}
			c.checkOrder(ctx, b)
			return c.step(ctx, b, c.inner.Apply, "Apply after Undo", b.Root)
		})
	})
}

// checkOrder checks that the operations of an undone block wait before all others.
func (c *checked[B]) checkOrder(ctx context.Context, b builder.Block[B]) {
	if c.life.rules.OwnOrder || !c.life.running() || c.proposed != b.Number || c.life.isDead() {
		return
	}
	want, err := c.operations(ctx, b)
	if err != nil {
		return
	}
	again := builder.Block[B]{Number: b.Number, PreRoot: b.PreRoot}
	// The block was undone, so its operations wait again, before all others. Let the rollup
	// propose a block: the proposal must begin with these operations.
	if again.Body, again.Root, err = c.inner.Propose(ctx, b.Number); err != nil {
		return // it is not time for a block
	}
	have, err := c.operations(ctx, again)
	if err != nil || c.admits.Load() != c.proposedAt {
		return
	}
	// The proposal may contain more operations than the undone block, because an operation
	// that could not run before may run now.
	if len(have) < len(want) || !slices.EqualFunc(have[:len(want)], want, bytes.Equal) {
		c.life.fail(fmt.Errorf("after Undo of block %d its operations must wait before all others: the next proposal has %s, want %s", b.Number, list(have), list(want)))
	}
}

// operations returns the operations that the rollup's service would execute for a block.
func (c *checked[B]) operations(ctx context.Context, b builder.Block[B]) ([][]byte, error) {
	var payload []byte
	err := c.unchanged(b, "Payload", func() (err error) { payload, err = c.inner.Payload(ctx, b); return err })
	if err != nil {
		return nil, err
	}
	return c.life.rules.Executed(payload), nil
}

func list(ops [][]byte) string {
	all := make([]string, len(ops))
	for i, op := range ops {
		all[i] = short(op)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// step calls Apply or Undo of the inner rollup, and checks the root afterwards.
func (c *checked[B]) step(ctx context.Context, b builder.Block[B], f func(context.Context, builder.Block[B]) error, name string, want common.Hash) error {
	if err := c.unchanged(b, name, func() error { return f(ctx, b) }); err != nil {
		if c.life.isDead() || c.life.logHasFailed() {
			return err // its record could not be written
		}
		c.life.fail(fmt.Errorf("%s of block %d: %w", name, b.Number, err))
		return err
	}
	if have := c.inner.Root(); have != want {
		c.life.fail(fmt.Errorf("%s of block %d: the root is %s, want %s", name, b.Number, have, want))
	}
	return nil
}

// Undo implements builder.Rollup. At random, it then submits the operations of the undone
// block again, as users do if they notice that the block is gone.
func (c *checked[B]) Undo(ctx context.Context, b builder.Block[B]) error {
	return c.alone(func() error {
		return c.call(fmt.Sprintf("undo block %d", b.Number), c.mayFail(), func() error {
			if err := c.step(ctx, b, c.inner.Undo, "Undo", b.PreRoot); err != nil || !c.life.running() {
				return err
			}
			if c.life.roll("again after undo", 2) == 0 {
				c.admitAgain(ctx, b)
			}
			return nil
		})
	})
}

// admitAgain submits the operations of an undone block again, like users.
func (c *checked[B]) admitAgain(ctx context.Context, b builder.Block[B]) {
	note := func(op string, f func() error) {
		defer func() {
			if p := recover(); p != nil { // which must not look like a failure of Undo
				c.life.diary.note("%s: panic: %v", op, p)
			}
		}()
		c.life.diary.note("%s: %v", op, f())
	}
	note("the operations of the undone block", func() error {
		payload, err := c.inner.Payload(ctx, b)
		if err != nil {
			return err
		}
		// These operations already wait, so Admit must change nothing.
		for _, op := range c.life.rules.Executed(payload) {
			note(fmt.Sprintf("admit %s again", short(op)), func() error { return c.inner.Admit(ctx, op) })
		}
		return nil
	})
}

// unchanged makes a call, and checks that it leaves the block's body alone.
func (c *checked[B]) unchanged(b builder.Block[B], name string, call func() error) error {
	before, _ := c.Encode(b.Body) // checkCodec reports the error
	err := call()
	// The builder shares this body with the rollup, so neither may change it.
	if after, _ := c.Encode(b.Body); !bytes.Equal(after, before) {
		c.life.fail(fmt.Errorf("%s changes the body of block %d: it was %.80q, and now %.80q", name, b.Number, before, after))
	}
	return err
}

// mayFail reports whether calls may fail at random. They may not fail while the
// builder recovers, because a failure would end the process.
func (c *checked[B]) mayFail() bool { return c.life.running() }

// Root implements builder.Rollup. At random it panics.
func (c *checked[B]) Root() common.Hash {
	if c.mayFail() && c.life.roll("root", 40) == 0 {
		c.life.diary.note("root panics")
		panic("by chance")
	}
	return c.inner.Root()
}

// Payload implements builder.Rollup.
func (c *checked[B]) Payload(ctx context.Context, b builder.Block[B]) (raw []byte, err error) {
	err = c.call(fmt.Sprintf("payload of block %d", b.Number), true, func() error {
		body, _ := c.Encode(b.Body) // checkCodec reports the error
		var inner []byte
		err := c.unchanged(b, "Payload", func() (err error) { inner, err = c.inner.Payload(ctx, b); return err })
		if err == nil {
			c.life.samePayload(fmt.Sprintf("block %d from %s to %s of %q", b.Number, b.PreRoot, b.Root, body), inner)
		}
		p := payload{number: b.Number, pre: b.PreRoot, post: b.Root, inner: inner}
		raw = p.encode()
		return err
	})
	return raw, err
}

// pointing adds the methods of a builder.Checkpointer to a wrapped rollup.
type pointing[B any] struct{ c *checked[B] }

// Checkpoint implements builder.Checkpointer.
func (p pointing[B]) Checkpoint(ctx context.Context) (records [][]byte, err error) {
	err = p.c.alone(func() error {
		return p.c.call("checkpoint", p.c.mayFail(), func() (err error) {
			records, err = p.c.inner.(builder.Checkpointer).Checkpoint(ctx)
			return err
		})
	})
	return records, err
}

// Restore implements builder.Checkpointer.
func (p pointing[B]) Restore(ctx context.Context, records [][]byte) error {
	return p.c.call("restore", false, func() error { return p.c.inner.(builder.Checkpointer).Restore(ctx, records) })
}

// Prune implements builder.Pruner. It has no effect if the inner rollup is not a
// Pruner.
func (p pointing[B]) Prune(ctx context.Context) error {
	pruner, ok := p.c.inner.(builder.Pruner)
	if !ok {
		return nil
	}
	return p.c.alone(func() error {
		return p.c.call("prune", p.c.mayFail(), func() error { return pruner.Prune(ctx) })
	})
}

// Final implements builder.Finalizer.
func (c *checked[B]) Final(ctx context.Context, b builder.Block[B]) error {
	f, ok := c.inner.(builder.Finalizer[B])
	if !ok {
		return nil
	}
	return c.alone(func() error {
		return c.call(fmt.Sprintf("block %d is final", b.Number), c.mayFail(), func() error {
			return c.unchanged(b, "Final", func() error { return f.Final(ctx, b) })
		})
	})
}
