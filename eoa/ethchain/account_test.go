package ethchain

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/holiman/uint256"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// edited is a client whose node gives another answer to some calls: the error, or
// the JSON text.
type edited struct {
	Client
	edit func(method string, block any) (text string, err error)
}

func (e edited) BatchCallContext(ctx context.Context, calls []rpc.BatchElem) error {
	err := e.Client.BatchCallContext(ctx, calls)
	for i := range calls {
		var block any
		if n := len(calls[i].Args); n > 0 {
			block = calls[i].Args[n-1]
		}
		if text, failed := e.edit(calls[i].Method, block); failed != nil {
			calls[i].Error = failed
		} else if text != "" {
			calls[i].Error = json.Unmarshal([]byte(text), calls[i].Result)
		}
	}
	return err
}

// A node without a pool refuses the tag "pending", or answers null or less than
// the latest count. Requests are sent nevertheless. If it asks to wait, that is
// no such answer.
func TestWithoutThePendingTag(t *testing.T) {
	for name, answer := range map[string]struct {
		text string
		err  error
	}{
		"refused": {err: coded{-32602, "invalid block tag: pending"}}, "no method": {err: coded{-32601, "unsupported"}}, "null": {text: "null"},
		"less": {text: `"0x0"`}, "no number": {text: `{}`},
	} {
		for _, o := range []Options{{FinalityDepth: 2}, {FinalityDepth: 2, Preconfirmed: true}} {
			s := newSetup(t, 1)
			client := edited{s.client, func(method string, block any) (string, error) {
				if method == "eth_getTransactionCount" && block == "pending" {
					return answer.text, answer.err
				}
				return "", nil
			}}
			s.landThrough(t, client, o, s.node.signer, 20)
			chain, err := New(client, o)
			require.NoError(t, err)
			look, err := chain.Look(context.Background(), s.account.Address)
			require.NoError(t, err, name)
			require.Equal(t, look.Latest, look.Pending, name)
			require.Equal(t, look.Latest, look.Preconfirmed, name)
		}
	}
	s := newSetup(t, 1)
	busy, err := New(edited{s.client, func(_ string, block any) (string, error) {
		if block == "pending" {
			return "", coded{-32005, "limit exceeded"}
		}
		return "", nil
	}}, Options{})
	require.NoError(t, err)
	_, err = busy.Look(context.Background(), s.account.Address)
	var wait *eoa.BusyError
	require.ErrorAs(t, err, &wait)
}

// An answer null to a needed question is no number 0.
func TestNullIsNoNumber(t *testing.T) {
	s := newSetup(t, 1)
	for range 20 {
		s.node.chain.Mine()
	}
	for _, o := range []Options{{}, {FinalityDepth: 3}} {
		for _, tag := range []any{"latest", "finalized", nil} {
			chain, err := New(edited{s.client, func(method string, block any) (string, error) {
				_, height := block.(string)
				if method == "eth_getTransactionCount" && (block == tag || tag == nil && !height) {
					return "null", nil
				}
				return "", nil
			}}, o)
			require.NoError(t, err)
			look, err := chain.Look(context.Background(), s.account.Address)
			asks := tag == "latest" || (tag == "finalized") == (o.FinalityDepth == 0)
			if asks {
				require.ErrorIs(t, err, ErrNode, "%+v %v", o, tag)
			} else {
				require.NoError(t, err, "%+v %v", o, tag)
				require.Positive(t, look.Finalized)
			}
		}
	}
	chain, err := New(edited{s.client, func(method string, _ any) (string, error) {
		if method == "eth_getBalance" {
			return "null", nil
		}
		return "", nil
	}}, Options{})
	require.NoError(t, err)
	look, err := chain.Look(context.Background(), s.account.Address)
	require.NoError(t, err)
	require.Nil(t, look.Balance, "unknown")
}

// A look shows whether the account has code.
func TestLookShowsCode(t *testing.T) {
	for text, want := range map[string]bool{`"0x"`: false, `"0xef0100aa"`: true, "null": false} {
		s := newSetup(t, 1)
		chain, err := New(edited{s.client, func(method string, _ any) (string, error) {
			if method == "eth_getCode" {
				return text, nil
			}
			return "", nil
		}}, Options{})
		require.NoError(t, err)
		look, err := chain.Look(context.Background(), s.account.Address)
		require.NoError(t, err)
		require.Equal(t, want, look.Delegated, text)
	}
}

// A node that suggests no tip has a gas price, of which the base fee is a part. If it has
// neither, there is no look.
func TestTip(t *testing.T) {
	s := newSetup(t, 1)
	fee := s.node.look(common.Address{}).BaseFee
	base := fee.Uint64()
	price := func(wei uint64) string { return fmt.Sprintf("%q", hexutil.EncodeUint64(wei)) }
	for _, c := range []struct {
		suggested, price string // empty: the node does not have the method
		want             uint64
		fails            bool
	}{
		{suggested: `"0x3"`, price: price(base + 8), want: 3},
		{suggested: `"0x0"`, price: price(base + 8), want: 0},
		{price: price(base + 8), want: 8},
		{price: price(base - 8), want: 0},
		{fails: true},
		{suggested: `"-0x3"`, fails: true},
		{price: `"0x1` + strings.Repeat("0", 64) + `"`, fails: true},
	} {
		chain, err := New(edited{s.client, func(method string, _ any) (string, error) {
			text := map[string]string{"eth_maxPriorityFeePerGas": c.suggested, "eth_gasPrice": c.price}[method]
			if text == "" && method != "eth_gasPrice" && method != "eth_maxPriorityFeePerGas" {
				return "", nil
			} else if text == "" {
				return "", coded{-32601, "no such method"}
			}
			return text, nil
		}}, Options{})
		require.NoError(t, err)
		look, err := chain.Look(context.Background(), s.account.Address)
		if c.fails {
			require.Error(t, err, "%+v", c)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, look.Tip.Uint64(), "%+v", c)
	}
}

// A receipt has the price, the contract and the logs, also if the node gives one
// of them in a form that cannot be read.
func TestReceiptDetails(t *testing.T) {
	const log = `[{"address":"0x0000000000000000000000000000000000000001","topics":["0x0000000000000000000000000000000000000000000000000000000000000002"],"data":"0x03","removed":false}]`
	for text, want := range map[string]eoa.Receipt{
		`{"effectiveGasPrice":"0x7","contractAddress":null,"logs":` + log + `}`: {
			GasPrice: uint256.NewInt(7), Logs: []eoa.Log{{Address: common.Address{19: 1}, Topics: []common.Hash{{31: 2}}, Data: []byte{3}}},
		},
		`{"effectiveGasPrice":7,"contractAddress":"0x0000000000000000000000000000000000000005","logs":[]}`: {Contract: &common.Address{19: 5}},
		`{"effectiveGasPrice":"0x1` + strings.Repeat("0", 64) + `","contractAddress":"5","logs":{}}`:       {},
		`{}`: {},
	} {
		var r receipt
		require.NoError(t, json.Unmarshal([]byte(text), &r))
		var got eoa.Receipt
		r.details(&got)
		require.Equal(t, want, got, text)
	}
}
