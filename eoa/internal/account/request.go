package account

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Account identifies a sender on a chain. At most one worker at a time acts for
// it.
type Account struct {
	// ChainID is the id of the chain (EIP-155).
	ChainID uint64 `json:"chainId"`
	// Address is the account's address.
	Address common.Address `json:"address"`
}

// String returns the chain id and the address, separated by a colon.
func (a Account) String() string { return fmt.Sprintf("%d:%s", a.ChainID, a.Address.Hex()) }

// Kind is the transaction type that a request is sent as.
type Kind uint8

const (
	// DynamicFee is an EIP-1559 transaction, the default.
	DynamicFee Kind = iota
	// Legacy is a transaction with one price, replay-protected by EIP-155.
	Legacy
	// AccessList is an EIP-2930 transaction, with one price.
	AccessList
	// SetCode is an EIP-7702 transaction.
	SetCode
	// Blob is an EIP-4844 transaction, for programs that import eoa/blobs. A signed
	// attempt has only the hashes of its
	// blobs. The blobs are stored once, with the request, and are attached each time
	// the bytes are sent. A replacement must at least double all three prices. The
	// blobs of a finished record are dropped; submitting its key again still finds
	// the same request. At most MaxPendingBlobs blobs wait for a nonce; Submit
	// returns ErrTooManyBlobs beyond that.
	//
	// Nodes keep blob transactions in a separate pool. It takes at most 16 of an
	// account, none ahead of a missing nonce, and no account that has transactions
	// in the other pool. Therefore:
	//
	//   - Only a blob transaction ever fills a nonce that a blob transaction had.
	//     The noop has one blob of zeros, and Client.Replace keeps the kind.
	//   - A blob request waits until no other transaction is in flight, and the
	//     reverse. The requests behind it wait as well, so use a separate account
	//     for blobs.
	//   - If a reorg takes back both kinds, they are sent one kind after the other.
	//
	// From the Osaka fork on, networks expect cell proofs instead of one proof per
	// blob: see Config.CellProofs. The transaction hash does not depend on it.
	Blob

	numKinds
)

var kindNames = [numKinds]string{"dynamicFee", "legacy", "accessList", "setCode", "blob"}

// String returns the name, for example "dynamicFee".
func (k Kind) String() string { return nameOf("Kind", kindNames[:], uint8(k)) }

// Limits of a request.
const (
	// maxKeySize is the maximum length of a key, in bytes.
	maxKeySize = 256
	// maxDataSize is the maximum length of the input, in bytes. go-ethereum's
	// pool refuses larger transactions.
	maxDataSize = 128 << 10
)

// ownKeys is the prefix of the keys of requests that the executor creates.
const ownKeys = "eoa/"

// Request is a transaction to be sent. A request is idempotent by its key: the
// same key with the same payload is the same request, and with another payload
// it is an error.
type Request struct {
	// Key identifies the request. It is chosen by the caller, unique per
	// account, 1 to 256 bytes of UTF-8, and must not begin with "eoa/".
	Key string `json:"key"`
	// Kind is the transaction type. The default is DynamicFee.
	Kind Kind `json:"kind,omitempty"`
	// To is the recipient; nil creates a contract, whose code Data returns.
	To *common.Address `json:"to,omitempty"`
	// Value is the amount, in wei; nil means 0.
	Value *uint256.Int `json:"value,omitempty"`
	// Data is the input, at most 128 KiB.
	Data []byte `json:"data,omitempty"`
	// AccessList is the access list (EIP-2930). Kind Legacy must have none.
	AccessList types.AccessList `json:"accessList,omitempty"`
	// Authorizations are the authorizations of a SetCode transaction, at least
	// one. Other kinds must have none.
	Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
	// Blobs are the blobs of a Blob transaction: 1 to MaxBlobs, of BlobSize
	// bytes each. Other kinds must have none. They are dropped from the record
	// when it has ended.
	Blobs [][]byte `json:"blobs,omitempty"`
	// Gas is the gas limit; 0 means that it is estimated. Values from 1 to
	// 20,999 are invalid.
	Gas uint64 `json:"gas,omitempty"`
	// MaxFee is the highest price per gas that may ever be paid, in wei; nil
	// means no limit.
	MaxFee *uint256.Int `json:"maxFee,omitempty"`
	// MaxBlobFee is the highest price per blob gas that may ever be paid, in
	// wei; nil means no limit. Only for kind Blob.
	MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
	// Priority orders pending requests: higher goes first, and equal priorities
	// go in order of acceptance.
	Priority int32 `json:"priority,omitempty"`
	// Group names a sequence of requests; empty means none. Members get their
	// nonces in order of acceptance, so they should have one priority. A member
	// whose gas must be estimated waits until all members before it are mined.
	Group string `json:"group,omitempty"`
	// Deadline is when the request fails if it has no nonce yet, in the years 0 to
	// 9999 in UTC; zero means never.
	Deadline time.Time `json:"deadline,omitzero"`
	// Metadata is stored with the request and returned in the record.
	Metadata []byte `json:"metadata,omitempty"`
	// Noop sends a transaction without value and data from the account to
	// itself, and ignores the payload.
	Noop bool `json:"noop,omitempty"`
}

// Validate returns an error that wraps ErrInvalidRequest if the request can
// never be sent.
func (r *Request) Validate() error {
	switch {
	case r.Key == "" || len(r.Key) > maxKeySize:
		return fmt.Errorf("%w: key of %d bytes, want 1 to %d", ErrInvalidRequest, len(r.Key), maxKeySize)
	case !utf8.ValidString(r.Key) || !utf8.ValidString(r.Group):
		return fmt.Errorf("%w: key %q or group %q is not UTF-8", ErrInvalidRequest, r.Key, r.Group)
	case strings.HasPrefix(r.Key, ownKeys):
		return fmt.Errorf("%w: key %q begins with %q, which is reserved", ErrInvalidRequest, r.Key, ownKeys)
	}
	if r.Kind == Blob && kzg.Commit == nil {
		return fmt.Errorf("%w: kind Blob: %w", ErrInvalidRequest, errNoKZG)
	}
	return CheckPayload(r)
}

// CheckPayload is [Request.Validate] without the key and the group.
func CheckPayload(r *Request) error {
	const leastGas, lastYear = 21_000, 9999 // RFC 3339 has no later year
	switch year := r.Deadline.UTC().Year(); {
	case year < 0 || year > lastYear:
		return fmt.Errorf("%w: deadline in the year %d, want 0 to %d", ErrInvalidRequest, year, lastYear)
	case r.Kind >= numKinds:
		return fmt.Errorf("%w: kind %d, want 0 to %d", ErrInvalidRequest, r.Kind, numKinds-1)
	case len(r.Data) > maxDataSize:
		return fmt.Errorf("%w: data of %d bytes, want at most %d", ErrInvalidRequest, len(r.Data), maxDataSize)
	case r.Gas > 0 && r.Gas < leastGas:
		return fmt.Errorf("%w: gas %d, want 0 or at least %d", ErrInvalidRequest, r.Gas, leastGas)
	case r.Kind == Legacy && len(r.AccessList) > 0:
		return fmt.Errorf("%w: a legacy transaction cannot have an access list", ErrInvalidRequest)
	case (r.Kind == SetCode) != (len(r.Authorizations) > 0):
		return fmt.Errorf("%w: %d authorizations, want at least 1 for kind SetCode and 0 for other kinds", ErrInvalidRequest, len(r.Authorizations))
	case r.To == nil && len(r.Data) == 0 && !r.Noop:
		return fmt.Errorf("%w: neither To nor Data: the creation of a contract without code", ErrInvalidRequest)
	case r.Kind == SetCode && r.To == nil:
		return fmt.Errorf("%w: a SetCode transaction cannot create a contract: To is nil", ErrInvalidRequest)
	}
	return r.validateBlobs()
}

func (r *Request) limits() limits { return limits{Fee: r.MaxFee, BlobFee: r.MaxBlobFee} }

// Digest returns a hash of the key and payload. It is equal for equal requests;
// stores keep it to distinguish a repeated request from a reused key.
func (r *Request) Digest() [sha256.Size]byte {
	c := *r
	c.Deadline = c.Deadline.UTC()
	if c.Value != nil && c.Value.IsZero() {
		c.Value = nil
	}
	raw, err := json.Marshal(c)
	if err != nil { // impossible for these fields
		panic(err)
	}
	return sha256.Sum256(raw)
}

// Rank is the position of a pending request: the lowest rank goes first.
type Rank struct {
	// Priority is math.MaxInt32 minus Request.Priority.
	Priority uint32
	// ID is the record's id.
	ID uint64
}

// RankOf returns the rank of a request with the given record id.
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
