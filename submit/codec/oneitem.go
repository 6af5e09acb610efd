package codec

import (
	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

// OneItem returns a function that makes packages with one item, whose payload it gets. The
// service holds the authorizer's code too, whose hash is authorizer unless a signer sets it.
// Gas limits are those of the item. The refine context is left out.
func OneItem(service jamq.ServiceID, code, authorizer common.Hash, refineGas, accumulateGas uint64) func(payload []byte) WorkPackage {
	return func(payload []byte) WorkPackage {
		return WorkPackage{
			AuthCodeHost: service, AuthCodeHash: authorizer,
			Items: []WorkItem{{Service: service, CodeHash: code, RefineGas: refineGas, AccumulateGas: accumulateGas, Payload: payload}},
		}
	}
}

// Authorizer returns the hash of the package's authorizer, of its code hash and its
// configuration (GP 14.3). Accumulate receives it with each result of the package.
func (x *WorkPackage) Authorizer() common.Hash {
	return blake2b.Sum256(append(x.AuthCodeHash[:], x.AuthorizerConfig...))
}
