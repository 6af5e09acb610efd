package codec

import (
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// OneItem returns a function that makes a work package with a single item from a
// payload.
//
//   - service refines the item, and also holds the code of the authorizer.
//   - code is the hash of the code that refines the item.
//   - authorizer is the hash of the authorizer's code; a signer may replace it.
//   - refineGas and accumulateGas are the gas limits of the item.
//
// The refine context is empty, so the caller must set it.
func OneItem(service jamq.ServiceID, code, authorizer common.Hash, refineGas, accumulateGas uint64) func(payload []byte) WorkPackage {
	return func(payload []byte) WorkPackage {
		return WorkPackage{
			AuthCodeHost: service, AuthCodeHash: authorizer,
			Items: []WorkItem{{Service: service, CodeHash: code, RefineGas: refineGas, AccumulateGas: accumulateGas, Payload: payload}},
		}
	}
}

// Authorizer returns the hash that identifies the package's authorizer: the hash over the hash of
// its code and its configuration (GP 14.3). The service receives it in accumulate with each result
// of the package.
func (x *WorkPackage) Authorizer() common.Hash {
	return blake2b.Sum256(append(x.AuthCodeHash[:], x.AuthorizerConfig...))
}
