package fields_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/bundlequeue/told"
	"github.com/jamq/jamq/internal/fields"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/ratelimit"
	"github.com/jamq/jamq/submit/jip2"
	"github.com/jamq/jamq/txpool"
)

func TestErrors(t *testing.T) {
	sentinel, part := errors.New("invalid"), errors.New("part")
	var e fields.Errors
	fields.Range(&e, "Low", 1, 1, 3)
	fields.Range(&e, "High", 3, 1, 3)
	fields.Positive(&e, "Tiny", time.Nanosecond)
	e.Want(true, "Fine", 0, "anything")
	e.Add(nil)
	e.AddPart("Queue", nil)
	require.NoError(t, e.Wrap(sentinel))

	fields.Range(&e, "Depth", 4, 1, 3)
	fields.Range(&e, "Share", math.NaN(), 0, 1)
	fields.Positive(&e, "Wait", time.Duration(0))
	e.Want(false, "Peers", []int{}, "at least one")
	e.Add(part)
	e.AddPart("Queue", part)
	err := e.Wrap(sentinel)
	require.EqualError(t, err, "invalid: Depth is 4, want 1 to 3; Share is NaN, want 0 to 1; Wait is 0s, want positive; Peers is [], want at least one; part; Queue: part")
	require.ErrorIs(t, err, sentinel)
	require.ErrorIs(t, err, part)
}

// TestEachFieldIsListed: a configuration that was forgotten names more than its first field.
func TestEachFieldIsListed(t *testing.T) {
	spec := jamq.Tiny()
	for name, c := range map[string]struct {
		err         error
		first, last string
	}{
		"jamq":        {jamq.ChainSpec{}.Validate(), "Validators is 0, want 1 to", "MaxRefineGas"},
		"builder":     {(&builder.Config{}).Validate(), "Window.Opens", "Queue.FirstNumber"},
		"bundlequeue": {(&bundlequeue.Config{}).Validate(), "Cores", "SubmitRetryInterval is 0s, want 1ns to"},
		"told":        {(&told.Config{}).Validate(&spec), "BlockTime", "Finality"},
		"jamtest":     {(&jamtest.Config{}).Validate(), "Validators", "FinalityLag"},
		"feed":        {(&jamtest.FeedFaults{Late: -1, Miss: 2}).Validate(), "Late", "Miss"},
		"ratelimit":   {(&ratelimit.Config{}).Validate(), "MaxSources", "MaxBans"},
		"jip2":        {(&jip2.Config{}).Validate(), "URL", "MaxAnswer"},
		"jip2 feed":   {(&jip2.FeedConfig{MaxGap: -1}).Validate(), "Service.Key", "MaxGap"},
		"txpool":      {(&txpool.Config{}).Validate(), "ChainID", "Lifetime"},
	} {
		require.ErrorContains(t, c.err, c.first, name)
		require.ErrorContains(t, c.err, c.last, name)
	}
}
