package ethchain

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// narrow is a client of a node that refuses batches of more than most calls, as
// one of the kinds of nodes does.
type narrow struct {
	Client
	most    int
	kind    string
	sizes   []int
	refused int
}

func (c *narrow) BatchCallContext(ctx context.Context, calls []rpc.BatchElem) error {
	c.sizes = append(c.sizes, len(calls))
	if len(calls) <= c.most {
		return c.Client.BatchCallContext(ctx, calls)
	}
	c.refused++
	switch c.kind {
	case "status 413":
		return rpc.HTTPError{StatusCode: http.StatusRequestEntityTooLarge}
	case "status 400":
		return rpc.HTTPError{StatusCode: http.StatusBadRequest, Body: []byte(`{"error":"Batch size is limited"}`)}
	case "one object":
		return json.Unmarshal([]byte(`{"error":{}}`), new([]string))
	}
	for i := range calls { // as go-ethereum
		calls[i].Error = rpc.ErrMissingBatchResponse
	}
	calls[0].Error = coded{-32600, "batch too large"}
	return nil
}

// A node takes fewer calls in a batch than configured. The chain finds out how
// many, and remembers that. Every question is answered.
func TestBatchLimitIsFound(t *testing.T) {
	for _, kind := range []string{"status 413", "status 400", "one object", "go-ethereum"} {
		for _, most := range []int{1, 2, 5, 30} {
			s := newSetup(t, 1)
			client := &narrow{Client: s.client, most: most, kind: kind}
			chain, err := New(client, Options{})
			require.NoError(t, err)
			ctx := context.Background()
			ask := func() {
				look, err := chain.Look(ctx, s.account.Address)
				require.NoError(t, err, "%s of %d", kind, most)
				require.NotZero(t, look.BaseFee)
				q := eoa.Questions{Heights: []uint64{0}}
				for i := range 70 {
					q.Txs = append(q.Txs, common.Hash{byte(i)})
				}
				answers, err := chain.Ask(ctx, q)
				require.NoError(t, err)
				require.Len(t, answers.Missing, len(q.Txs))
				require.Len(t, answers.Blocks, 1)
				for _, gas := range chain.Estimate(ctx, s.account.Address, make70()) {
					require.NoError(t, gas.Err)
				}
			}
			ask()
			require.Positive(t, client.refused)
			before := client.refused
			ask()
			require.Equal(t, before, client.refused, "%s of %d: it is remembered", kind, most)
		}
	}
}

func make70() []*eoa.Request {
	out := make([]*eoa.Request, 70)
	for i := range out {
		out[i] = &eoa.Request{To: &common.Address{1}}
	}
	return out
}

// No batch has more calls than configured, also not the one more that asks for
// the head.
func TestMaxBatchIsNeverExceeded(t *testing.T) {
	for _, most := range []int{1, 2, 3, 100} {
		s := newSetup(t, 1)
		client := &narrow{Client: s.client, most: most, kind: "status 413"}
		chain, err := New(client, Options{MaxBatch: most})
		require.NoError(t, err)
		s.land(t, Options{MaxBatch: most}, s.node.signer, 3)
		q := eoa.Questions{}
		for i := range 250 {
			q.Txs = append(q.Txs, common.Hash{byte(i), byte(i >> 8)})
		}
		_, err = chain.Look(context.Background(), s.account.Address)
		require.NoError(t, err)
		_, err = chain.Ask(context.Background(), q)
		require.NoError(t, err)
		require.Zero(t, client.refused, "%v", client.sizes)
	}
}
