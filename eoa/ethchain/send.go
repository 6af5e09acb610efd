package ethchain

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/eoa"
)

// Send implements [eoa.Chain]. A transaction is accepted or rejected only if the
// node answers with the transaction's hash or with a JSON-RPC error whose message
// is recognized. After any other answer, the result is unknown.
func (c *Chain) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	out := make([]eoa.Sent, 0, len(raws))
	for len(raws) > 0 {
		part := raws[:c.fits(raws)]
		raws = raws[len(part):]
		hashes := make([]common.Hash, len(part))
		var calls []rpc.BatchElem
		for i, raw := range part {
			calls = append(calls, call(&hashes[i], "eth_sendRawTransaction", hexutil.Bytes(raw)))
		}
		if err := c.batch(ctx, calls); err != nil {
			for range part {
				out = append(out, unanswered(err))
			}
			continue
		}
		for i := range calls {
			out = append(out, sent(calls[i].Error, hashes[i], part[i]))
		}
	}
	return out
}

// maxSendSize limits the size of the transactions in one batch, in bytes. Their hex
// encoding is twice as long, and go-ethereum reads at most 5 MiB.
const maxSendSize = 2 << 20

// fits returns how many of the transactions go into one batch; at least one.
func (c *Chain) fits(raws [][]byte) (n int) {
	for size := 0; n < min(len(raws), c.limit()); n++ {
		if size += len(raws[n]); n > 0 && size > maxSendSize {
			break
		}
	}
	return n
}

// unanswered returns the result of a send whose HTTP request or connection failed.
func unanswered(err error) eoa.Sent {
	s := eoa.Sent{Text: err.Error()}
	var busy *eoa.BusyError
	if errors.As(err, &busy) {
		s.Reason, s.RetryAfter = eoa.ReasonBusy, busy.RetryAfter
	}
	return s
}

// isRateLimit reports whether an error asks the caller to wait.
func isRateLimit(err rpc.Error) bool {
	const limitExceeded = -32005
	// The code is that of EIP-1474 or, from some gateways, HTTP status 429.
	return err.ErrorCode() == limitExceeded || err.ErrorCode() == http.StatusTooManyRequests
}

// refused wraps an error in an eoa.BusyError if it asks the caller to wait.
func refused(err error) error {
	var verdict rpc.Error
	if errors.As(err, &verdict) && isRateLimit(verdict) {
		return &eoa.BusyError{Err: err}
	}
	return err
}

// sent returns the result of a send from the node's answer.
func sent(err error, hash common.Hash, raw []byte) eoa.Sent {
	var verdict rpc.Error
	switch {
	case err == nil && hash == hashOf(raw):
		return eoa.Sent{Result: eoa.Accepted}
	case err == nil:
		return eoa.Sent{Text: "unexpected transaction hash: " + hash.Hex()}
	case !errors.As(err, &verdict):
		return eoa.Sent{Text: err.Error()}
	case isRateLimit(verdict):
		return eoa.Sent{Reason: eoa.ReasonBusy, Text: err.Error()}
	}
	reason := eoa.Classify(err.Error())
	return eoa.Sent{Result: reason.Result(), Reason: reason, Text: err.Error()}
}

// hashOf returns the hash of an encoded transaction.
func hashOf(raw []byte) common.Hash {
	// A blob transaction is sent as a list of the transaction and its blobs
	// (EIP-4844), and the hash covers only the transaction.
	if len(raw) > 0 && raw[0] == types.BlobTxType {
		body, _, _ := rlp.SplitList(raw[1:])
		if _, blobs, err := rlp.SplitList(body); err == nil {
			return crypto.Keccak256Hash(raw[:1], body[:len(body)-len(blobs)])
		}
	}
	return crypto.Keccak256Hash(raw)
}

// reverted reports whether the node has executed a call and the call failed.
func reverted(err error) bool {
	const executionReverted = 3
	var verdict rpc.Error
	// After any other error, the node could not execute the call.
	return errors.As(err, &verdict) && (verdict.ErrorCode() == executionReverted || strings.Contains(strings.ToLower(err.Error()), "execution reverted"))
}
