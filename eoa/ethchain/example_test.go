package ethchain_test

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
	"github.com/jamq/jamq/eoa/ethchain"
)

// quota is a node that takes nothing.
type quota struct{}

func (quota) SendRawTransaction(hexutil.Bytes) (common.Hash, error) {
	return common.Hash{}, fmt.Errorf("daily request count exceeded")
}

// A node's message decides the outcome only if it is a known one. After any
// other failure the transaction may have been sent, and the executor finds out.
func Example() {
	server := rpc.NewServer()
	defer server.Stop()
	if err := server.RegisterName("eth", quota{}); err != nil {
		fmt.Println(err)
		return
	}
	client := rpc.DialInProc(server) // rpc.DialContext for a node elsewhere
	defer client.Close()
	chain, err := ethchain.New(client, ethchain.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := chain.Send(context.Background(), [][]byte{{0x02}})[0]
	fmt.Println(sent.Result, sent.Result == eoa.Unknown)
	// Output: unknown true
}
