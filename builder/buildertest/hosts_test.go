package buildertest_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/anchor/chainview"
	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/buildertest"
)

// TestFaultsOfHosts: a builder in a host with a mistake stops within ten seconds, and the error
// names the mistake.
func TestFaultsOfHosts(t *testing.T) {
	errs := map[buildertest.Fault]struct {
		err  error
		text string
	}{
		buildertest.NoReported:    {builder.ErrEvidence, "jamq.Block.Reported is probably not filled"},
		buildertest.NoAvailable:   {builder.ErrEvidence, "jamq.Block.Available is probably not filled"},
		buildertest.NoAccumulated: {builder.ErrEvidence, "jamq.Block.Accumulated is probably not filled"},
		buildertest.EmptyLog:      {builder.ErrServiceInUse, "restore the newest log"},
		buildertest.OtherChain:    {chainview.ErrMissingParent, "another chain than the log"},
		buildertest.OtherSpec:     {builder.ErrInvalidConfig, "DefaultConfig(network.Spec())"},
	}
	require.Len(t, errs, len(buildertest.Faults()))
	for _, fault := range buildertest.Faults() {
		for name, rollup := range rollups {
			t.Run(string(fault)+"/"+name, func(t *testing.T) {
				stopped := buildertest.Provoke(t, rules(rollup), fault)
				require.ErrorIs(t, stopped, errs[fault].err)
				require.ErrorContains(t, stopped, errs[fault].text)
			})
		}
	}
	require.NoError(t, buildertest.Provoke(t, rules(rollups["log"]), "none"), "the builder goes on")
}

// TestMissingFields: the fields that no block has are named.
func TestMissingFields(t *testing.T) {
	reported := jamq.Block{ParentStateRoot: common.Hash{1}, Reported: make([]jamq.Report, 1)}
	available := jamq.Block{ParentStateRoot: common.Hash{2}, Available: make([]jamq.CoreIndex, 1)}
	accumulated := jamq.Block{AccumulatedKnown: true, Accumulated: make([]jamq.PackageHash, 1)}
	for _, c := range []struct {
		blocks  []jamq.Block
		missing []string
	}{
		{[]jamq.Block{{}, reported, available}, nil},
		{[]jamq.Block{{}, reported, available, accumulated}, nil},
		{[]jamq.Block{{AccumulatedKnown: true}, reported, available}, []string{"Accumulated"}},
		{[]jamq.Block{{}, reported}, []string{"Available"}},
		{[]jamq.Block{accumulated}, []string{"ParentStateRoot", "Reported", "Available"}},
		{nil, []string{"ParentStateRoot", "Reported", "Available"}},
	} {
		require.Equal(t, c.missing, buildertest.MissingFields(c.blocks...))
	}
}
