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

// remoteSigner signs with a JSON-RPC method like eth_signTransaction.
type remoteSigner struct {
	client Client
	method string
}

// NewRemoteSigner returns a signer that calls a JSON-RPC method. An empty method
// means eth_signTransaction; go-ethereum's clef uses account_signTransaction. The
// signer is safe for concurrent use. Its errors wrap eoa.ErrSigner if the answer is
// not a transaction.
//
// The remote side need not be trusted with the content: the executor checks
// that the result is the requested transaction, signed by the account.
func NewRemoteSigner(client Client, method string) eoa.Signer {
	if method == "" {
		method = "eth_signTransaction"
	}
	return &remoteSigner{client, method}
}

// Sign implements eoa.Signer.
func (s *remoteSigner) Sign(ctx context.Context, a common.Address, tx *types.Transaction) (*types.Transaction, error) {
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

// parseSigned decodes both forms of answer that signers use: the encoded
// transaction, or an object that has it as "raw".
func parseSigned(answer []byte) (*types.Transaction, error) {
	var raw hexutil.Bytes
	if err := json.Unmarshal(answer, &raw); err != nil {
		var object struct {
			Raw hexutil.Bytes `json:"raw"`
		}
		if err := json.Unmarshal(answer, &object); err != nil {
			return nil, fmt.Errorf("%w: answer is neither hex bytes nor an object with raw: %w", eoa.ErrSigner, err)
		}
		raw = object.Raw
	}
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: %w", eoa.ErrSigner, err)
	}
	return tx, nil
}

// arguments returns the fields of a transaction as arguments of the call.
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
		if tx.Type() == types.BlobTxType { // signed by hash: blobs stay here
			args["maxFeePerBlobGas"], args["blobVersionedHashes"] = (*hexutil.Big)(tx.BlobGasFeeCap()), tx.BlobHashes()
		}
	}
	return args
}
