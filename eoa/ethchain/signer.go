package ethchain

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

// RemoteSigner signs by a JSON-RPC call of the shape of eth_signTransaction. Make one with [NewRemoteSigner]. It is safe for concurrent use.
//
// It trusts nobody: the executor checks that what comes back is the transaction that was asked for, signed by the account.
type RemoteSigner struct {
	client Client
	method string
}

var _ eoa.Signer = (*RemoteSigner)(nil)

// NewRemoteSigner returns a signer behind a client. An empty method means eth_signTransaction; go-ethereum's clef has account_signTransaction.
func NewRemoteSigner(client Client, method string) *RemoteSigner {
	if method == "" {
		method = "eth_signTransaction"
	}
	return &RemoteSigner{client, method}
}

// Sign implements eoa.Signer. An answer that is no transaction is an error that wraps eoa.ErrSigner.
func (s *RemoteSigner) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
	var answer json.RawMessage
	calls := []rpc.BatchElem{call(&answer, s.method, arguments(a, tx))}
	if err := s.client.BatchCallContext(ctx, calls); err != nil {
		return nil, fmt.Errorf("ethchain: %s: %w", s.method, err)
	}
	if calls[0].Error != nil {
		return nil, fmt.Errorf("ethchain: %s: %w", s.method, calls[0].Error)
	}
	return parseSigned(answer)
}

// parseSigned reads both shapes that signers answer with: the bytes, or an object that has them as "raw".
func parseSigned(answer []byte) (*types.Transaction, error) {
	var raw hexutil.Bytes
	if err := json.Unmarshal(answer, &raw); err != nil {
		var object struct {
			Raw hexutil.Bytes `json:"raw"`
		}
		if err := json.Unmarshal(answer, &object); err != nil {
			return nil, fmt.Errorf("%w: neither bytes nor an object with raw: %w", eoa.ErrSigner, err)
		}
		raw = object.Raw
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", eoa.ErrSigner, err)
	}
	return tx, nil
}

// arguments are the fields of a transaction as the call has them.
func arguments(a common.Address, tx *types.Transaction) map[string]any {
	args := map[string]any{
		"from": a, "nonce": hexutil.Uint64(tx.Nonce()), "gas": hexutil.Uint64(tx.Gas()), "value": (*hexutil.Big)(tx.Value()),
		"input": hexutil.Bytes(tx.Data()), "chainId": (*hexutil.Big)(tx.ChainId()),
	}
	if tx.To() != nil {
		args["to"] = tx.To()
	}
	switch tx.Type() {
	case types.LegacyTxType:
		args["gasPrice"] = (*hexutil.Big)(tx.GasPrice())
		delete(args, "chainId")
	case types.AccessListTxType:
		args["gasPrice"], args["accessList"] = (*hexutil.Big)(tx.GasPrice()), tx.AccessList()
	default:
		args["maxFeePerGas"], args["maxPriorityFeePerGas"] = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
		if len(tx.AccessList()) > 0 {
			args["accessList"] = tx.AccessList()
		}
		if auths := tx.SetCodeAuthorizations(); len(auths) > 0 {
			args["authorizationList"] = auths
		}
		if tx.Type() == types.BlobTxType { // the signature is over the hashes: the blobs stay here
			args["maxFeePerBlobGas"], args["blobVersionedHashes"] = (*hexutil.Big)(tx.BlobGasFeeCap()), tx.BlobHashes()
		}
	}
	return args
}
