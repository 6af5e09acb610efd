package jamtest_test

import (
	"encoding/binary"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/service"
)

// begun returns a chain with a service whose last rollup block is 0, and a context for packages.
func begun(t *testing.T) (*jamtest.Chain, jamq.RefineContext) {
	t.Helper()
	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.Genesis = genesis(0, rollup)
	chain, err := jamtest.New(cfg)
	require.NoError(t, err)
	chain.Advance()
	context, err := chain.Context(1)
	require.NoError(t, err)
	return chain, context
}

// together sends packages to the cores of a chain, so that one block accumulates them, and returns
// that block.
func together(t *testing.T, chain *jamtest.Chain, packages ...jamtest.Package) jamq.Block {
	t.Helper()
	for i, p := range packages {
		require.NoError(t, chain.Submit(p, jamq.CoreIndex(i), 0))
	}
	for range 10 {
		if chain.Advance(); len(chain.Best().Accumulated) > 0 {
			require.Len(t, chain.Best().Accumulated, len(packages))
			return chain.Best()
		}
	}
	t.Fatal("not accumulated in ten slots")
	return jamq.Block{}
}

func valueOf(t *testing.T, chain *jamtest.Chain, key []byte) []byte {
	t.Helper()
	value, err := chain.Value(rollup, chain.Best().Hash, key)
	require.NoError(t, err)
	return value
}

// root returns the state root of the rollup at the best block.
func root(t *testing.T, chain *jamtest.Chain) common.Hash {
	t.Helper()
	last, err := service.Last(func(key string) []byte { return valueOf(t, chain, []byte(key)) })
	require.NoError(t, err)
	return last.PostRoot
}

// No forged package changes the root of the rollup, and the honest one does afterwards.
func TestForgedPayloadNeverChangesTheRoot(t *testing.T) {
	chain, context := begun(t)
	before := root(t, chain)
	require.Equal(t, blockOf(0).PostRoot, before)
	honest := payloadOf(1)
	stranger := jamtest.NewPackage(rollup, context, honest)
	stranger.Hash[0], stranger.Authorizer = stranger.Hash[0]+1, common.Hash{1}
	changed := func(change func(payload []byte)) jamtest.Package {
		payload := payloadOf(1)
		change(payload)
		return jamtest.NewPackage(rollup, context, payload)
	}
	for name, p := range map[string]jamtest.Package{
		"another authorizer": stranger,
		"no header":          jamtest.NewPackage(rollup, context, honest[:service.HeaderSize-1]),
		"block 0":            changed(func(p []byte) { clear(p[:8]) }),
		"a later block":      changed(func(p []byte) { p[0]++ }),
		"a far block":        changed(func(p []byte) { p[7]++ }),
		"another pre-root":   changed(func(p []byte) { p[8+32]++ }),
		"another service":    jamtest.NewPackage(rollup+1, context, honest),
	} {
		var err error
		p.Context, err = chain.Context(1) // the first one is too old soon
		require.NoError(t, err)
		together(t, chain, p)
		require.Equal(t, before, root(t, chain), name)
		require.Nil(t, valueOf(t, chain, service.CountKey()), name)
		require.Nil(t, valueOf(t, chain, service.MarkKey(p.Hash)), name)
	}
	context, err := chain.Context(1)
	require.NoError(t, err)
	p := jamtest.NewPackage(rollup, context, honest)
	together(t, chain, p)
	require.Equal(t, blockOf(1).PostRoot, root(t, chain))
	require.Len(t, valueOf(t, chain, service.MarkKey(p.Hash)), 4)
}

// Two packages in one block are one call of the service, which yields for the last rollup block
// only. Both are proved through the storage, in whatever order they came.
func TestOneYieldPerCall(t *testing.T) {
	for _, order := range [][]uint64{{1, 2}, {2, 1}} {
		chain, context := begun(t)
		in := together(t, chain, jamtest.NewPackage(rollup, context, payloadOf(order[0])), jamtest.NewPackage(rollup, context, payloadOf(order[1])))
		outputs, _, err := chain.OutputLog(in.Hash)
		require.NoError(t, err)
		require.Len(t, outputs, 1)
		for range 4 {
			chain.Advance()
		}
		trust, err := chain.Trust(rollup)
		require.NoError(t, err)
		for _, route := range []jamtest.Route{jamtest.ByStorage, jamtest.ByOutputs, jamtest.ByLog} {
			for _, number := range order {
				d, err := chain.Prove(rollup, number, route)
				if number == 1 && route != jamtest.ByStorage {
					require.ErrorIs(t, err, jamtest.ErrNotYielded)
					continue
				}
				require.NoError(t, err)
				require.NoError(t, d.AddTransaction(transactions(number), 0))
				_, err = d.Verify(trust)
				require.NoError(t, err)
			}
		}
		_, err = chain.Prove(rollup, 0, jamtest.ByStorage)
		require.ErrorIs(t, err, jamtest.ErrNotFinal, "no package had it")
	}
}

// On a chain with forks, storage and account of a service are those that the rules make of the
// packages which the chain has accumulated.
func TestServiceFollowsTheRules(t *testing.T) {
	chain := committed(t, 8)
	inbox, err := chain.Inbox(rollup, chain.Best().Hash)
	require.NoError(t, err)
	require.Greater(t, len(inbox), 7)
	before := service.Genesis{Block: blockOf(0)}.Storage()
	storage := service.Genesis{Block: blockOf(0)}.Storage()
	var slot jamq.Slot
	for len(inbox) > 0 {
		slot = inbox[0].In.Slot
		var operands []service.Operand
		for len(inbox) > 0 && inbox[0].In.Slot == slot {
			output, err := service.Refine(inbox[0].Payload, inbox[0].Hash)
			require.NoError(t, err)
			operands = append(operands, service.Operand{Package: inbox[0].Hash, Output: output})
			inbox = inbox[1:]
		}
		changes, _, err := service.Accumulate(storage.Get, slot, operands)
		require.NoError(t, err)
		storage.Write(changes)
	}
	octets := func(s service.Storage) (sum uint64) {
		for key, value := range s {
			sum += uint64(34 + len(key) + len(value))
		}
		return sum
	}
	for key, value := range storage {
		require.Equal(t, value, valueOf(t, chain, []byte(key)), "%q", key)
	}
	account, err := chain.Account(rollup, chain.Best().Hash)
	require.NoError(t, err)
	entries, err := service.Genesis{Service: rollup, Block: blockOf(0)}.Entries()
	require.NoError(t, err)
	first := entries[statetrie.ServiceKey(rollup)]
	le := binary.LittleEndian
	require.Equal(t, octets(storage)-octets(before), le.Uint64(account[57:])-le.Uint64(first[57:]))
	require.EqualValues(t, len(storage)-len(before), le.Uint32(account[73:])-le.Uint32(first[73:]))
	require.EqualValues(t, slot, le.Uint32(account[81:]))
}

func TestValueErrors(t *testing.T) {
	chain, _ := begun(t)
	_, err := chain.Value(rollup, jamq.HeaderHash{}, nil)
	require.ErrorIs(t, err, jamtest.ErrUnknownBlock)
	account, err := chain.Account(rollup+1, chain.Best().Hash)
	require.NoError(t, err)
	require.Nil(t, account)
	chain, err = jamtest.New(jamtest.DefaultConfig(jamq.Tiny(), 1))
	require.NoError(t, err)
	_, err = chain.Account(rollup, chain.Best().Hash)
	require.ErrorIs(t, err, jamtest.ErrNoServices)

	cfg := jamtest.DefaultConfig(jamq.Tiny(), 1)
	cfg.Genesis = service.State{{255}: make([]byte, 88)}
	require.ErrorIs(t, cfg.Validate(), jamtest.ErrInvalidConfig)
}
