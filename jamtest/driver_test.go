package jamtest_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// newDriver returns a driver whose chain begins in the current slot.
func newDriver(t *testing.T) *jamtest.Driver {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 3)
	cfg.Spec.Cores = 8
	cfg.StartSlot = jamq.NewSlotClock(cfg.Spec).SlotAt(time.Now())
	c, err := jamtest.New(cfg)
	require.NoError(t, err)
	return jamtest.NewDriver(c)
}

// inVirtualTime runs f in a bubble whose clock stands somewhere in the middle of a slot after the
// common era: the bubble's own time begins before it.
func inVirtualTime(t *testing.T, f func(t *testing.T)) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra().Add(100*6*time.Second + 2*time.Second)))
		f(t)
	})
}

func TestDriverTicksWithTheSlots(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		d := newDriver(t)
		clock := jamq.NewSlotClock(jamq.Tiny())
		ctx, cancel := context.WithCancel(t.Context())
		var slots []jamq.Slot
		ended := make(chan error)
		go func() {
			ended <- d.Run(ctx, func(u jamtest.Update) {
				require.Equal(t, clock.Start(u.Slot), time.Now().UTC(), "a slot begins on time")
				slots = append(slots, u.Slot)
			})
		}()
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.ErrorIs(t, d.Run(ctx, nil), jamtest.ErrRunning)
		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		require.Equal(t, []jamq.Slot{101, 102, 103}, slots)

		time.Sleep(time.Minute)
		ctx, cancel = context.WithTimeout(t.Context(), 7*time.Second)
		defer cancel()
		require.ErrorIs(t, d.Run(ctx, func(u jamtest.Update) { slots = append(slots, u.Slot) }), context.DeadlineExceeded)
		require.Equal(t, []jamq.Slot{101, 102, 103, 113, 114}, slots, "it can be run again; what passed meanwhile was skipped")
	})
}

func TestDriverSlowDeliveryLosesNothing(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		d := newDriver(t)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		parent, _ := d.Heads()
		require.ErrorIs(t, d.Run(ctx, func(u jamtest.Update) {
			for _, b := range u.Imported {
				require.Equal(t, parent.Hash, b.Parent)
				parent = b
			}
			time.Sleep(20 * time.Second)
		}), context.DeadlineExceeded)
		best, _ := d.Heads()
		require.Equal(t, best.Hash, parent.Hash)
	})
}

func TestDriverIsSafeForConcurrentUse(t *testing.T) {
	inVirtualTime(t, func(t *testing.T) {
		d := newDriver(t)
		ctx, cancel := context.WithTimeout(t.Context(), 15*6*time.Second)
		defer cancel()
		var final []jamtest.Accumulation
		var wait sync.WaitGroup
		for i := range 8 {
			wait.Go(func() {
				time.Sleep(time.Duration(13+i) * time.Second)
				recent, lookup := d.Anchors()
				anchor := recent[len(recent)-2]
				p := jamtest.NewPackage(rollup, jamq.RefineContext{
					Anchor: anchor.Hash, StateRoot: anchor.StateRoot, BeefyRoot: anchor.BeefyRoot,
					LookupAnchor: lookup.Hash, LookupAnchorSlot: lookup.Slot,
				}, fmt.Append(nil, i))
				require.NoError(t, d.Submit(p, jamq.CoreIndex(i), 0))
			})
		}
		require.ErrorIs(t, d.Run(ctx, func(u jamtest.Update) {
			final = append(final, u.Final...)
			d.View(func(c *jamtest.Chain) { require.Equal(t, u.Slot, c.Slot()) })
		}), context.DeadlineExceeded)
		wait.Wait()
		require.Len(t, final, 8)
	})
}
