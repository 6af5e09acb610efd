package jip2proof

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/proof"
	"github.com/jamq/jamq/jamtest"
	"github.com/jamq/jamq/jamtest/jip2server"
	"github.com/jamq/jamq/service"
	"github.com/jamq/jamq/submit/codec"
	"github.com/jamq/jamq/submit/jip2"
)

const (
	firstService = jamq.ServiceID(40)
	services     = 5 // in one block, so that the output tree has siblings of both sizes
)

// transactions are those of the rollup block with a number.
func transactions(number uint64) types.Transactions {
	return types.Transactions{types.NewTx(&types.LegacyTx{Nonce: number}), types.NewTx(&types.LegacyTx{Nonce: number + 1})}
}

// blockOf returns the commitment to a rollup block, without its package.
func blockOf(number uint64) proof.Commitment {
	return proof.Commitment{Number: number, Hash: common.Hash{byte(number)}, TransactionsRoot: types.DeriveSha(transactions(number), trie.NewStackTrie(nil))}
}

// node is a JAM node on whose chain each service has yielded in one block, in, which is final. The
// block of each service has the next number.
type node struct {
	*jip2.Client
	server *jip2server.Server
	in     jamtest.Point
	pkgs   []jamq.PackageHash
}

func startNode(t *testing.T) *node {
	cfg := jip2server.DefaultConfig(jamtest.DefaultConfig(jamq.Tiny(), 7))
	cfg.Chain.Spec.Cores, cfg.Chain.Genesis = services, service.State{}
	for i := range uint64(services) {
		g := service.Genesis{Service: firstService + jamq.ServiceID(i), Authorizer: new(codec.WorkPackage).Authorizer(), Block: blockOf(i)}
		entries, err := g.Entries()
		require.NoError(t, err)
		maps.Copy(cfg.Chain.Genesis, entries)
	}
	server, err := jip2server.New(cfg)
	require.NoError(t, err)
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	t.Cleanup(server.Cut)
	client, err := jip2.Open(jip2.DefaultConfig(strings.Replace(web.URL, "http", "ws", 1)))
	require.NoError(t, err)
	t.Cleanup(client.Close)
	n := &node{Client: client, server: server}

	n.step(t, 9)
	encoder, err := codec.New(codec.V072, cfg.Chain.Spec)
	require.NoError(t, err)
	var context jamq.RefineContext
	server.View(func(c *jamtest.Chain) { context, err = c.Context(1) })
	require.NoError(t, err)
	for i := range services {
		p := codec.WorkPackage{Context: context, Items: []codec.WorkItem{{Service: firstService + jamq.ServiceID(i), Payload: service.EncodeHeader(blockOf(uint64(i) + 1))}}}
		raw, err := encoder.Encode(&p)
		require.NoError(t, err)
		hash, err := encoder.PackageHash(&p)
		require.NoError(t, err)
		n.pkgs = append(n.pkgs, hash)
		require.NoError(t, client.SubmitWorkPackage(t.Context(), jamq.CoreIndex(i), raw, nil))
	}
	for n.in.Height == 0 {
		n.step(t, 1)
		server.View(func(c *jamtest.Chain) {
			done, err := c.Accumulated(c.Finalized().Hash)
			require.NoError(t, err)
			for _, a := range done {
				n.in = a.In
			}
		})
	}
	return n
}

func (n *node) step(t *testing.T, slots int) {
	t.Helper()
	for range slots {
		_, err := n.server.Step()
		require.NoError(t, err)
	}
}

func (n *node) trust(t *testing.T, service jamq.ServiceID) (trust *proof.Trust) {
	t.Helper()
	n.server.View(func(c *jamtest.Chain) {
		var err error
		trust, err = c.Trust(service)
		require.NoError(t, err)
	})
	return trust
}

// document returns the parts of a document that a rollup makes, for the block of a service.
func (n *node) document(t *testing.T, service int) *proof.Document {
	t.Helper()
	c := blockOf(uint64(service) + 1)
	c.Package = n.pkgs[service]
	d := &proof.Document{Version: proof.Version, Claim: proof.Claim{Number: c.Number, Block: c.Hash, Package: c.Package}, Commitment: c.Encode()}
	require.NoError(t, d.AddTransaction(transactions(c.Number), 1))
	return d
}

// Every service's output is proved with the answers of a node about the block that accumulated the
// package, and with signatures over a later one.
func TestLinks(t *testing.T) {
	n, ctx := startNode(t), t.Context()
	in := jamq.HeaderHash(n.in.Hash)
	for i := range services {
		service := firstService + jamq.ServiceID(i)
		output, err := n.AccumulationOutputProof(ctx, in, service)
		require.NoError(t, err)
		signed, err := n.BeefyCommitments(ctx, in)
		require.NoError(t, err)
		verify := func() {
			t.Helper()
			d := n.document(t, i)
			d.Beefy, d.Log, err = Links(service, output, signed)
			require.NoError(t, err)
			raw, err := json.Marshal(d)
			require.NoError(t, err)
			d, err = proof.Parse(raw)
			require.NoError(t, err)
			result, err := d.Verify(n.trust(t, service))
			require.NoError(t, err)
			require.Equal(t, transactions(uint64(i) + 1)[1].Hash(), result.Transaction.Hash())
		}
		verify()
		_, _, err = Links(service+1, output, signed)
		require.ErrorIs(t, err, ErrContradiction, "of another service")

		for range 9 { // the leaf comes into trees of other heights
			n.step(t, 1)
			final, err := n.FinalizedBlock(ctx)
			require.NoError(t, err)
			later, err := n.BeefyMMRProof(ctx, jamq.HeaderHash(final.HeaderHash), output.LeafIndex)
			require.NoError(t, err)
			require.Equal(t, output.BlockOutputRoot, later.Leaf)
			output.BeefyRoot, output.Outer = later.BeefyRoot, later.Proof
			signed, err = n.BeefyCommitments(ctx, jamq.HeaderHash(final.HeaderHash))
			require.NoError(t, err)
			verify()
		}
	}
}

// Answers that do not fit together are refused before any signature is verified.
func TestContradictions(t *testing.T) {
	n, ctx := startNode(t), t.Context()
	in := jamq.HeaderHash(n.in.Hash)
	for name, spoil := range map[string]func(*jip2.AccumulationOutputProof, *jip2.BeefyCommitments){
		"another BEEFY root of the output":     func(o *jip2.AccumulationOutputProof, _ *jip2.BeefyCommitments) { o.BeefyRoot[3] ^= 1 },
		"another BEEFY root of the signatures": func(_ *jip2.AccumulationOutputProof, s *jip2.BeefyCommitments) { s.BeefyRoot[3] ^= 1 },
		"another BEEFY root of both": func(o *jip2.AccumulationOutputProof, s *jip2.BeefyCommitments) {
			o.BeefyRoot[3] ^= 1
			s.BeefyRoot = o.BeefyRoot
		},
		"no peaks": func(o *jip2.AccumulationOutputProof, _ *jip2.BeefyCommitments) { o.Outer.Peaks = nil },
		"a leaf behind the log": func(o *jip2.AccumulationOutputProof, _ *jip2.BeefyCommitments) {
			o.LeafIndex, o.Outer.LeafIndex = 99, 99
		},
		"another leaf":           func(o *jip2.AccumulationOutputProof, _ *jip2.BeefyCommitments) { o.LeafIndex-- },
		"a validator twice":      func(_ *jip2.AccumulationOutputProof, s *jip2.BeefyCommitments) { s.Commitments[1] = s.Commitments[0] },
		"validators not in turn": func(_ *jip2.AccumulationOutputProof, s *jip2.BeefyCommitments) { slices.Reverse(s.Commitments) },
	} {
		output, err := n.AccumulationOutputProof(ctx, in, firstService)
		require.NoError(t, err)
		signed, err := n.BeefyCommitments(ctx, in)
		require.NoError(t, err)
		spoil(&output, &signed)
		_, _, err = Links(firstService, output, signed)
		require.ErrorIs(t, err, ErrContradiction, name)
		if name == "another BEEFY root of the signatures" {
			require.ErrorContains(t, err, "for the signatures", "as if they are from another block")
		}
	}
}

// No byte and no field of the answers is without weight, except the number of the block's outputs:
// trees over 5 and over 6 outputs have the same path to output 1.
func TestEveryByteMatters(t *testing.T) {
	n, ctx := startNode(t), t.Context()
	in := jip2.Hash(n.in.Hash)
	const number = 1
	service := firstService + number
	trust, document := n.trust(t, service), n.document(t, number)
	answers := map[string]any{}
	for method, params := range map[string][]any{"accumulationOutputProof": {in, service}, "beefyCommitments": {in}} {
		var raw json.RawMessage
		require.NoError(t, n.Call(ctx, &raw, method, params...))
		var v any
		require.NoError(t, json.Unmarshal(raw, &v))
		answers[method] = v
	}
	outer := answers["accumulationOutputProof"].(map[string]any)["outer"].(map[string]any)
	require.Contains(t, outer["peaks"], nil)
	require.NotEmpty(t, outer["mountain_path"])
	verify := func() error {
		raw, err := json.Marshal(answers)
		require.NoError(t, err)
		var a struct {
			Output jip2.AccumulationOutputProof `json:"accumulationOutputProof"`
			Signed jip2.BeefyCommitments        `json:"beefyCommitments"`
		}
		if err := json.Unmarshal(raw, &a); err != nil {
			require.ErrorIs(t, err, jip2.ErrMalformed)
			return err
		}
		d := *document
		if d.Beefy, d.Log, err = Links(service, a.Output, a.Signed); err != nil {
			require.ErrorIs(t, err, ErrContradiction)
			return err
		}
		if _, err = d.Verify(trust); err != nil {
			require.True(t, errors.Is(err, proof.ErrFinality) || errors.Is(err, proof.ErrOutput), "%v", err)
		}
		return err
	}
	require.NoError(t, verify())
	changes := 0
	spoil(answers, "", func(v any) { answers = v.(map[string]any) }, func(label string) {
		changes++
		if err := verify(); !strings.HasSuffix(label, "inner.leaf_count: one more") {
			require.Error(t, err, label)
		}
	})
	require.Greater(t, changes, 500)
	require.NoError(t, verify(), "all is as before")
}

// spoil makes every change of one byte, number, element or field of a JSON value, calls then after
// each, and undoes it.
func spoil(v any, at string, set func(any), then func(label string)) {
	change := func(to any, label string) {
		set(to)
		then(at + ": " + label)
		set(v)
	}
	switch x := v.(type) {
	case nil:
		change(base64.StdEncoding.EncodeToString(make([]byte, 32)), "a hash for null")
	case float64:
		change(x+1, "one more")
		change(x-1, "one less")
	case string:
		raw, err := base64.StdEncoding.DecodeString(x)
		if err != nil {
			panic(err)
		}
		for i := range raw {
			raw[i] ^= 1
			change(base64.StdEncoding.EncodeToString(raw), fmt.Sprintf("byte %d", i))
			raw[i] ^= 1
		}
		change(nil, "null")
		change(base64.StdEncoding.EncodeToString(raw[1:]), "a byte less")
		change(base64.StdEncoding.EncodeToString(append(raw, 0)), "a byte more")
	case []any:
		for i, element := range x {
			change(slices.Delete(slices.Clone(x), i, i+1), fmt.Sprintf("without element %d", i))
			change(slices.Insert(slices.Clone(x), i, element), fmt.Sprintf("element %d twice", i))
			spoil(element, fmt.Sprintf("%s[%d]", at, i), func(to any) { x[i] = to }, then)
		}
		change(nil, "null")
	case map[string]any:
		for name, field := range x {
			delete(x, name)
			then(at + ": without " + name)
			x[name] = field
			spoil(field, at+"."+name, func(to any) { x[name] = to }, then)
		}
	}
}
