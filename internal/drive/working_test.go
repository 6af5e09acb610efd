package drive

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/submit"
)

// failing is a host whose builds fail.
type failing struct{}

func (failing) Build(context.Context, bundlequeue.Build) (Package, error) {
	return Package{}, errors.New("not now")
}

func (failing) Submit(context.Context, bundlequeue.Send) error { return errors.New("not now") }

// The runner forgets a ticket with its outcome, so that its memory is bounded.
func TestTicketsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(jamq.CommonEra()))
		root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
		r, err := NewRunner(submit.DefaultConfig(jamq.Tiny()), root, failing{}, failing{})
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context()))
		defer r.Stop()
		block := jamq.Block{Hash: jamq.HeaderHash{1}, Parent: root.Hash, Slot: 1}
		require.NoError(t, r.Import(t.Context(), block, block.Hash))
		require.NoError(t, r.Enqueue(t.Context(), bundlequeue.Enqueue{Number: 1}))
		time.Sleep(time.Hour)
		synctest.Wait()
		require.Greater(t, r.Health().BuildFailures, 10)
		require.NoError(t, r.do(t.Context(), func() error {
			require.Empty(t, r.working)
			return nil
		}))
	})
}

// A runner that has failed begins nothing, even within the loop over the queue's
// open requests that its failure interrupts.
func TestFailedRunnerBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := jamq.Block{Hash: jamq.HeaderHash{'r'}}
		r, err := NewRunner(submit.DefaultConfig(jamq.Tiny()), root, failing{}, failing{})
		require.NoError(t, err)
		require.NoError(t, r.Start(t.Context()))
		defer r.Stop()
		require.NoError(t, r.do(t.Context(), func() error {
			r.fail(errors.New("the journal failed"))
			r.act(bundlequeue.Build{Number: 1, Ticket: 1})
			r.act(bundlequeue.Send{Number: 1, Ticket: 2})
			require.Empty(t, r.working)
			return nil
		}))
	})
}
