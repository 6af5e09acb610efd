package eoa

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Account names a sender: one logical worker each.
type Account struct {
	// ChainID is the chain, Address the account on it.
	ChainID uint64         `json:"chainId"`
	Address common.Address `json:"address"`
}

// String returns chain and address.
func (a Account) String() string { return fmt.Sprintf("%d:%s", a.ChainID, a.Address.Hex()) }

func (a Account) chainID() *big.Int { return new(big.Int).SetUint64(a.ChainID) }

// Kind is the form of transaction that a request becomes.
type Kind uint8

const (
	// DynamicFee is an EIP-1559 transaction, the default.
	DynamicFee Kind = iota
	// Legacy has one price, and is bound to its chain by EIP-155.
	Legacy
	// AccessList is an EIP-2930 transaction, with one price.
	AccessList
	// SetCode is an EIP-7702 transaction.
	SetCode
	// Blob is an EIP-4844 transaction. See the package's doc for its rules.
	Blob

	numKinds
)

// Limits of a request. Data of more than 128 KiB is refused by go-ethereum's pool.
const (
	MaxKeySize  = 256
	MaxDataSize = 128 << 10
)

// ownKeys begin the keys of requests that the executor makes itself.
const ownKeys = "eoa/"

// Request is what a user wants sent. Key and payload together are idempotent: the same key with another payload is an error.
type Request struct {
	// Key is the caller's, unique per account: 1 to MaxKeySize bytes of UTF-8 that do not begin with "eoa/".
	Key string `json:"key"`
	// Kind is the form of the transaction.
	Kind Kind `json:"kind,omitempty"`
	// To is nil for a contract creation.
	To *common.Address `json:"to,omitempty"`
	// Value is in wei; nil means 0.
	Value *uint256.Int `json:"value,omitempty"`
	// Data is the input, at most MaxDataSize bytes.
	Data []byte `json:"data,omitempty"`
	// AccessList is for all kinds but Legacy; Authorizations are for SetCode, which needs at least one.
	AccessList     types.AccessList             `json:"accessList,omitempty"`
	Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
	// Blobs are for kind Blob, which needs 1 to MaxBlobs of them, each of BlobSize bytes; see there for what is in them. A
	// record that is over has none any more.
	Blobs [][]byte `json:"blobs,omitempty"`
	// Gas is the gas limit; 0 means that it is estimated.
	Gas uint64 `json:"gas,omitempty"`
	// MaxFee is the greatest price per gas that may ever be paid, in wei; nil means no limit.
	MaxFee *uint256.Int `json:"maxFee,omitempty"`
	// MaxBlobFee is the greatest price per blob gas that may ever be paid, in wei, for kind Blob; nil means no limit.
	MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
	// Priority: the higher, the earlier; equal ones go in order of acceptance.
	Priority int32 `json:"priority,omitempty"`
	// Group names a sequence. Its members get their nonces in order of acceptance and should have one priority; a member whose gas must be
	// estimated waits until all before it are mined. Empty means none.
	Group string `json:"group,omitempty"`
	// Deadline is when a request that has no nonce yet fails; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Metadata is the caller's, and comes back in the record.
	Metadata []byte `json:"metadata,omitempty"`
	// Noop asks for a transaction without value and data from the account to itself, whatever the payload says.
	Noop bool `json:"noop,omitempty"`
}

// Validate reports what can never be sent. The error wraps ErrInvalidRequest.
func (r *Request) Validate() error {
	switch {
	case r.Key == "" || len(r.Key) > MaxKeySize:
		return fmt.Errorf("%w: key of %d bytes, want 1 to %d", ErrInvalidRequest, len(r.Key), MaxKeySize)
	case !utf8.ValidString(r.Key) || !utf8.ValidString(r.Group):
		return fmt.Errorf("%w: key %q or group %q is not UTF-8", ErrInvalidRequest, r.Key, r.Group)
	case strings.HasPrefix(r.Key, ownKeys):
		return fmt.Errorf("%w: key %q begins with %q, which is the executor's", ErrInvalidRequest, r.Key, ownKeys)
	}
	return r.validatePayload()
}

func (r *Request) validatePayload() error {
	const leastGas = 21_000
	switch {
	case r.Kind >= numKinds:
		return fmt.Errorf("%w: kind %d, want 0 to %d", ErrInvalidRequest, r.Kind, numKinds-1)
	case len(r.Data) > MaxDataSize:
		return fmt.Errorf("%w: data of %d bytes, want at most %d", ErrInvalidRequest, len(r.Data), MaxDataSize)
	case r.Gas > 0 && r.Gas < leastGas:
		return fmt.Errorf("%w: gas %d, want 0 or at least %d", ErrInvalidRequest, r.Gas, leastGas)
	case r.Kind == Legacy && len(r.AccessList) > 0:
		return fmt.Errorf("%w: a legacy transaction has no access list", ErrInvalidRequest)
	case (r.Kind == SetCode) != (len(r.Authorizations) > 0):
		return fmt.Errorf("%w: %d authorizations, want some for kind SetCode and none for others", ErrInvalidRequest, len(r.Authorizations))
	case r.Kind == SetCode && r.To == nil:
		return fmt.Errorf("%w: a SetCode transaction creates no contract, want To", ErrInvalidRequest)
	}
	return r.validateBlobs()
}

func (r *Request) limits() Limits { return Limits{Fee: r.MaxFee, BlobFee: r.MaxBlobFee} }

// Digest is equal for requests with equal payload. Stores keep it to tell a repeated request from a key that is used twice.
func (r *Request) Digest() [sha256.Size]byte {
	c := *r
	c.Deadline = c.Deadline.UTC()
	if c.Value != nil && c.Value.IsZero() {
		c.Value = nil
	}
	raw, err := json.Marshal(c)
	if err != nil { // no field of a Request can fail
		panic(err)
	}
	return sha256.Sum256(raw)
}

// Rank orders pending requests: the least goes first.
type Rank struct {
	// Priority falls as Request.Priority rises; ID is the record's.
	Priority uint32
	ID       uint64
}

// RankOf returns the rank of a request with an id.
func RankOf(r *Request, id uint64) Rank {
	return Rank{Priority: uint32(math.MaxInt32 - int64(r.Priority)), ID: id}
}

// Less reports whether a goes before b.
func (a Rank) Less(b Rank) bool {
	if a.Priority != b.Priority {
		return a.Priority < b.Priority
	}
	return a.ID < b.ID
}
