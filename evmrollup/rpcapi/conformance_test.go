package rpcapi

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"
)

// both are the node and a geth that have taken the same transactions.
type both struct {
	served      *served
	api         *api
	geth        *geth
	ours, geths *rpc.Client
	// A deployment, and one each of types 0, 1, 2 (which fails) and 4.
	txs     []*types.Transaction
	waiting *types.Transaction // behind a gap
	counter common.Address
}

func startBoth(t *testing.T) *both {
	s := serve(t, nil)
	g := startGeth(t, s.node)
	b := &both{served: s, api: &api{node: s.node, cfg: new(Config)}, geth: g, ours: s.dial(s.server.URL), geths: g.Client}
	b.counter = s.counter(0)
	deployed := s.node.Resolve(rpc.LatestBlockNumber).Transactions()[0]
	id, signer := s.node.ChainConfig().ChainID, types.LatestSigner(s.node.ChainConfig())
	me := s.node.Accounts()[1]
	price, uint := big.NewInt(10*params.GWei), func(v int64) *uint256.Int { return uint256.NewInt(uint64(v)) }
	authorization, err := types.SignSetCode(s.node.Accounts()[2].Key, types.SetCodeAuthorization{ChainID: *uint256.MustFromBig(id), Address: b.counter})
	require.NoError(t, err)
	b.txs = []*types.Transaction{deployed}
	for nonce, data := range []types.TxData{
		&types.LegacyTx{GasPrice: price, Gas: 100_000, To: &b.counter},
		&types.AccessListTx{
			ChainID: id, GasPrice: price, Gas: 100_000, To: &b.counter, AccessList: types.AccessList{{Address: b.counter, StorageKeys: []common.Hash{{}}}},
		},
		// This one fails.
		&types.DynamicFeeTx{ChainID: id, GasTipCap: big.NewInt(params.GWei), GasFeeCap: price, Gas: 100_000, To: &b.counter, Data: []byte{1, 2, 3}},
		&types.SetCodeTx{
			ChainID: uint256.MustFromBig(id), GasTipCap: uint(params.GWei), GasFeeCap: uint(10 * params.GWei), Gas: 200_000, To: b.counter,
			AuthList: []types.SetCodeAuthorization{authorization},
		},
	} {
		switch d := data.(type) {
		case *types.LegacyTx:
			d.Nonce = uint64(nonce)
		case *types.AccessListTx:
			d.Nonce = uint64(nonce)
		case *types.DynamicFeeTx:
			d.Nonce = uint64(nonce)
		case *types.SetCodeTx:
			d.Nonce = uint64(nonce)
		}
		tx := types.MustSignNewTx(me.Key, signer, data)
		require.NoError(t, s.node.SendTransaction(tx))
		s.mined(tx)
		b.txs = append(b.txs, tx)
	}
	for _, tx := range b.txs {
		raw, err := tx.MarshalBinary()
		require.NoError(t, err)
		require.NoError(t, g.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)))
		g.beacon.Commit()
	}
	s.nonces[3] = 7
	b.waiting = s.send(3, &b.counter, 1, []byte{1})
	raw, err := b.waiting.MarshalBinary()
	require.NoError(t, err)
	require.NoError(t, g.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw)))
	// After Drain all blocks are final, so that all tags are above genesis.
	require.NoError(t, s.node.Drain(t.Context()))
	return b
}

// methods returns the names of all methods of services, and of the subscriptions
// among them.
func methods(apis []rpc.API) (names []string) {
	for _, s := range apis {
		receiver := reflect.TypeOf(s.Service)
		for i := range receiver.NumMethod() {
			name := receiver.Method(i).Name
			names = append(names, s.Namespace+"_"+strings.ToLower(name[:1])+name[1:])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// served are the node's methods, and those that geth has too.
func (b *both) methods() (ours, shared []string) {
	var apis []rpc.API
	for _, s := range b.api.services(nil) {
		apis = append(apis, rpc.API{Namespace: s.namespace, Service: s.receiver})
	}
	ours = methods(apis)
	geths := methods(b.geth.apis)
	return ours, slices.DeleteFunc(slices.Clone(ours), func(name string) bool { return !slices.Contains(geths, name) })
}

// conformance is a table of the calls that are made to both nodes.
type conformance struct {
	*both
	t                    *testing.T
	me, waiter, stranger common.Address
	call, failing        map[string]any // messages to the counter
	tries                []try
}

// try is a call. Block hashes differ, so arguments may depend on the node. If
// why is not empty, it is the reason why the answers differ.
type try struct {
	method string
	args   func(*rpc.Client) []any
	why    string
}

func (c *conformance) add(method string, args func(*rpc.Client) []any) {
	c.tries = append(c.tries, try{method, args, ""})
}

func constant(args []any) func(*rpc.Client) []any {
	return func(*rpc.Client) []any { return args }
}

// same requires the same answer or error, apart from the fields in chainFields.
func (c *conformance) same(method string, args ...any) {
	c.add(method, constant(args))
}

// differs requires different answers, and gives the reason for the page.
func (c *conformance) differs(why, method string, args ...any) {
	c.tries = append(c.tries, try{method, constant(args), why})
}

// byHash are arguments that begin with the hash of a block.
func (c *conformance) byHash(number int, more ...any) func(*rpc.Client) []any {
	return func(client *rpc.Client) []any { return append([]any{blockHash(c.t, client, number)}, more...) }
}

func blockHash(t *testing.T, client *rpc.Client, number int) string {
	t.Helper()
	var header struct{ Hash string }
	require.NoError(t, client.CallContext(t.Context(), &header, "eth_getBlockByNumber", hexutil.Uint64(number), false))
	return header.Hash
}

// ask returns the answers of both, or their errors.
func (x *try) ask(t *testing.T, b *both) (ours, geths any, err, want error) {
	err = b.ours.CallContext(t.Context(), &ours, x.method, x.args(b.ours)...)
	want = b.geths.CallContext(t.Context(), &geths, x.method, x.args(b.geths)...)
	return ours, geths, err, want
}

// difference returns nil if both answer the same.
func (x *try) difference(t *testing.T, b *both) error {
	ours, geths, err, want := x.ask(t, b)
	if err == nil && want == nil {
		return same("the answer", ours, geths)
	}
	return sameError(err, want)
}

// sameError compares two errors: texts, codes and data.
func sameError(err, want error) error {
	switch {
	case err == nil && want == nil:
	case err == nil || want == nil || message(err) != message(want) || code(err) != code(want) || !reflect.DeepEqual(errorData(err), errorData(want)):
		return fmt.Errorf("the error is %d %v %v, and that of geth is %d %v %v", code(err), err, errorData(err), code(want), want, errorData(want))
	}
	return nil
}

// argument matches the part of an error about a parameter that both nodes have
// in common. The rest names a Go type.
var argument = regexp.MustCompile(`^invalid argument \d+: `)

func message(err error) string {
	text := err.Error()
	if about := argument.FindString(text); about != "" && strings.Contains(text, " into Go ") {
		return about
	}
	return text
}

func errorData(err error) any {
	if e, ok := err.(rpc.DataError); ok {
		return e.ErrorData()
	}
	return nil
}

// Every method that geth also has runs against both nodes, on the same
// transactions. The answers and errors are the same, apart from the differences
// that docs/refnode.md lists.
func TestConformance(t *testing.T) {
	c := &conformance{both: startBoth(t), t: t, stranger: common.Address{0xee}}
	for who, tx := range map[*common.Address]*types.Transaction{&c.me: c.txs[1], &c.waiter: c.waiting} {
		var err error
		*who, err = types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx)
		require.NoError(t, err)
	}
	c.call = map[string]any{"from": c.me, "to": c.counter}
	c.failing = map[string]any{"from": c.me, "to": c.counter, "data": "0x1234"}
	for _, fill := range []func(){c.blocks, c.transactions, c.states, c.calls, c.simulations, c.logs, c.node, c.pool, c.extremes, c.extremeOverrides, c.extremeLogs, c.differences} {
		fill()
	}
	tried := map[string]bool{}
	for i, x := range c.tries {
		tried[x.method] = true
		args, err := json.Marshal(x.args(c.ours))
		require.NoError(t, err)
		t.Run(fmt.Sprintf("%d %s%s", i, x.method, args), func(t *testing.T) {
			if err := x.difference(t, c.both); x.why == "" {
				require.NoError(t, err)
			} else {
				require.Error(t, err, "both answer the same, so the page need not explain why they do not")
			}
		})
	}
	_, shared := c.methods()
	for _, name := range shared {
		require.True(t, tried[name] || subscribed[name] != "", "%s is not compared with geth", name)
	}
	t.Run("the specification", c.checkSpecification)
	t.Run("the page", c.checkPage)
}
