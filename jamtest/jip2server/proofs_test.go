package jip2server_test

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/submit/codec"
)

// startCommitted returns a node on whose chain several services have yielded in one final block,
// that block, and the services.
func startCommitted(t *testing.T, services jamq.ServiceID) (*jip2server.Server, *socket, jamtest.Point) {
	s, c := start(t, func(cfg *jip2server.Config) {
		cfg.Chain.Spec.Cores = int(services)
		var all []jamq.ServiceID
		for i := range services {
			all = append(all, 9+i)
		}
		cfg.Chain.Genesis = genesis(t, all...)
	})
	step(t, s, 3)
	encoder, err := codec.New(codec.V072, jamq.Tiny())
	require.NoError(t, err)
	_, context := workPackage(t, s, "")
	for i := range services {
		raw, err := encoder.Encode(&codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: 9 + i, Payload: header}}})
		require.NoError(t, err)
		require.Nil(t, c.result("submitWorkPackage", i, base(raw), []string{}))
	}
	var in jamtest.Point
	for in.Height == 0 {
		step(t, s, 1)
		s.View(func(chain *jamtest.Chain) {
			done, err := chain.Accumulated(chain.Finalized().Hash)
			require.NoError(t, err)
			if len(done) > 0 {
				require.Len(t, done, int(services))
				in = done[0].In
			}
		})
	}
	return s, c, in
}

func unbase(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(v.(string))
	require.NoError(t, err)
	return raw
}

// climb returns the node over count leaves of a well-balanced tree (GP E.1.1). path begins at the
// leaf, as in JIP-2.
func climb(t *testing.T, leaf []byte, index, count int, path []any) []byte {
	t.Helper()
	if count == 1 {
		require.Empty(t, path)
		return leaf
	}
	half, rest, sibling := (count+1)/2, path[:len(path)-1], unbase(t, path[len(path)-1])
	if index < half {
		return crypto.Keccak256([]byte("node"), climb(t, leaf, index, half, rest), sibling)
	}
	return crypto.Keccak256([]byte("node"), sibling, climb(t, leaf, index-half, count-half, rest))
}

// mountain checks the path of a leaf to its peak, and that the peaks have the super-peak.
func mountain(t *testing.T, leaf []byte, superPeak any, outer map[string]any) {
	t.Helper()
	index, path, peaks := int(outer["leaf_index"].(float64)), outer["mountain_path"].([]any), outer["peaks"].([]any)
	for i, sibling := range path {
		pair := [][]byte{leaf, unbase(t, sibling)}
		if index>>i&1 == 1 {
			slices.Reverse(pair)
		}
		leaf = crypto.Keccak256(pair...)
	}
	require.Equal(t, base(leaf), peaks[len(path)])
	log := make([]*common.Hash, len(peaks))
	for i, peak := range peaks {
		if peak != nil {
			h := common.Hash(unbase(t, peak))
			log[i] = &h
		}
	}
	root := proof.NewLog(log).SuperPeak()
	require.Equal(t, base(root[:]), superPeak)
}

// Every output of a block has a proof as JIP-2 and the Gray Paper define it.
func TestProofs(t *testing.T) {
	s, c, in := startCommitted(t, 5)
	head := base(in.Hash[:])
	root := c.result("beefyRoot", head)
	outputs, err := proof.DecodeOutputs(unbase(t, c.result("accumulationOutputs", head)))
	require.NoError(t, err)
	require.Len(t, outputs, 5)
	blockRoot := proof.OutputRoot(outputs)
	for i, o := range outputs {
		p := c.result("accumulationOutputProof", head, o.Service).(map[string]any)
		require.Equal(t, base(o.Yield[:]), p["yield_hash"])
		require.Equal(t, base(blockRoot[:]), p["block_output_root"])
		require.Equal(t, root, p["beefy_root"])
		require.EqualValues(t, in.Height, p["leaf_index"], "one leaf per block")
		inner, outer := p["inner"].(map[string]any), p["outer"].(map[string]any)
		require.EqualValues(t, i, inner["leaf_index"])
		require.EqualValues(t, len(outputs), inner["leaf_count"])
		leaf := append(binary.LittleEndian.AppendUint32(nil, uint32(o.Service)), o.Yield[:]...)
		require.Equal(t, blockRoot[:], climb(t, leaf, i, len(outputs), inner["path"].([]any)))
		require.Equal(t, p["leaf_index"], outer["leaf_index"])
		mountain(t, blockRoot[:], root, outer)
	}
	var final jamq.Block
	s.View(func(chain *jamtest.Chain) { final = chain.Finalized() })
	later := base(final.Hash[:])
	p := c.result("beefyMmrProof", later, in.Height).(map[string]any)
	require.Equal(t, base(blockRoot[:]), p["leaf"])
	require.Equal(t, c.result("beefyRoot", later), p["beefy_root"])
	mountain(t, blockRoot[:], p["beefy_root"], p["proof"].(map[string]any))

	signed := c.result("beefyCommitments", head).(map[string]any)
	require.Equal(t, root, signed["beefy_root"])
	require.Len(t, signed["commitments"], proof.Quorum(6))
}

func TestProofErrors(t *testing.T) {
	_, c, in := startCommitted(t, 1)
	best := c.result("bestBlock").(map[string]any)["header_hash"]
	head, nowhere := base(in.Hash[:]), base(make([]byte, 32))
	plain, p := start(t, func(cfg *jip2server.Config) { cfg.Chain.Genesis = nil })
	step(t, plain, 9)
	final := p.result("finalizedBlock").(map[string]any)["header_hash"]
	for _, x := range []struct {
		node   *socket
		method string
		params []any
		code   float64
		data   any
	}{
		{c, "accumulationOutputs", []any{nowhere}, 1, nowhere},
		{c, "accumulationOutputProof", []any{nowhere, 9}, 1, nowhere},
		{c, "accumulationOutputProof", []any{head, 10}, 5, 10.0},
		{c, "accumulationOutputProof", []any{head}, -32602, nil},
		{c, "beefyMmrProof", []any{head, in.Height + 1}, 5, float64(in.Height + 1)},
		{c, "beefyCommitments", []any{best}, 7, best},
		{c, "beefyCommitments", []any{nowhere}, 1, nowhere},
		{p, "accumulationOutputs", []any{final}, 4, final},
		{p, "accumulationOutputProof", []any{final, 9}, 4, final},
		{p, "beefyMmrProof", []any{final, 0}, 4, final},
		{p, "beefyCommitments", []any{final}, 6, final},
	} {
		e := x.node.ask(x.method, x.params...)["error"].(map[string]any)
		require.Equal(t, x.code, e["code"], "%s %v: %v", x.method, x.params, e)
		require.Equal(t, x.data, e["data"], x.method)
	}
}

// The other implementations do not have these methods yet.
func TestProfilesWithoutProofs(t *testing.T) {
	for _, profile := range jip2server.Profiles()[1:] {
		_, c := start(t, func(cfg *jip2server.Config) { cfg.Deviations = profile.Deviations })
		best := c.result("bestBlock").(map[string]any)["header_hash"]
		for _, method := range []string{"accumulationOutputs", "accumulationOutputProof", "beefyMmrProof", "beefyCommitments"} {
			e := c.ask(method, best)["error"].(map[string]any)
			require.Equal(t, fmt.Sprint("method not found: ", method), e["message"], profile.Name)
			require.EqualValues(t, profile.Deviations.UnknownCode, e["code"], profile.Name)
		}
	}
}
