package account

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Account identifies the sender of transactions: an address on a chain. Any number
// of programs may submit requests for an account, but only one worker at a time
// signs and sends for it.
type Account struct {
	// ChainID is the id of the chain (EIP-155).
	ChainID uint64 `json:"chainId"`
	// Address is the account's address.
	Address common.Address `json:"address"`
}

// String returns the chain id and the address, separated by a colon.
func (a Account) String() string { return fmt.Sprintf("%d:%s", a.ChainID, a.Address.Hex()) }

// Kind is the transaction type in which a request is sent. Most requests use the
// default, DynamicFee.
type Kind uint8

const (
	// DynamicFee is an EIP-1559 transaction, with a limit for the whole price and a
	// tip. It is the default kind.
	DynamicFee Kind = iota
	// Legacy is a transaction of the oldest type, with a single price and with the
	// replay protection of EIP-155. Some chains accept no other type.
	Legacy
	// AccessList is an EIP-2930 transaction, with a single price and a list of the
	// storage that it uses.
	AccessList
	// SetCode is an EIP-7702 transaction. Its authorizations let accounts run the
	// code of a contract.
	SetCode
	// Blob is an EIP-4844 transaction, which carries blobs. The program must import
	// package eoa/blobs. The blobs are stored once, with the request, and are
	// attached whenever the signed transaction is sent, because a signature covers
	// only their hashes. They are deleted when the request has ended. A replacement
	// must at least double all three prices.
	//
	// Nodes keep blob transactions in a separate pool. That pool accepts at most 16
	// transactions of an account, none behind a missing nonce, and none while the
	// account has transactions in the other pool. Therefore:
	//
	//   - If a blob transaction had a nonce, only another blob transaction can fill
	//     that nonce. To cancel a request, the executor sends a transaction with
	//     one blob of zeros. [Client.Replace] cannot turn a blob request into
	//     another kind.
	//   - A blob request waits until no other kind of transaction is in flight, and
	//     vice versa. The requests behind it wait as well, so use a separate
	//     account for blobs.
	//   - If a reorg takes back both kinds, they are sent one kind after the other.
	//
	// From the Osaka fork on, networks expect cell proofs instead of one proof per
	// blob; see Config.CellProofs. The transaction hash does not depend on the
	// proofs.
	Blob

	numKinds
)

var kindNames = [numKinds]string{"dynamicFee", "legacy", "accessList", "setCode", "blob"}

// Limits of a request.
const (
	// maxKeySize is the maximum length of a key, in bytes.
	maxKeySize = 256
	// maxDataSize is the maximum length of the input, in bytes. go-ethereum's pool
	// refuses larger transactions.
	maxDataSize = 128 << 10
)

// ownKeys is the prefix of the keys of requests that the executor makes itself, to
// fill gaps in the nonces.
const ownKeys = "eoa/"

// Request describes a transaction that shall be executed once. The key makes it
// safe to submit the request again, even after a restart, because an equal request
// with the same key counts as the same request. A different request with the same
// key is refused with ErrKeyReused.
type Request struct {
	// Key identifies the request within its account. The caller chooses it, for
	// example from an order number: 1 to 256 bytes of UTF-8 that do not begin with
	// "eoa/".
	Key string `json:"key"`
	// Kind is the transaction type. The default is DynamicFee.
	Kind Kind `json:"kind,omitempty"`
	// To is the recipient; nil creates a contract. In that case Data is the init
	// code, which returns the contract's code.
	To *common.Address `json:"to,omitempty"`
	// Value is the amount to transfer, in wei; nil means 0.
	Value *uint256.Int `json:"value,omitempty"`
	// Data is the input of the call, at most 128 KiB.
	Data []byte `json:"data,omitempty"`
	// AccessList is the access list (EIP-2930). It must be empty for kind Legacy.
	AccessList types.AccessList `json:"accessList,omitempty"`
	// Authorizations are the authorizations of a SetCode transaction, at least one.
	// Other kinds must have none.
	Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
	// Blobs are the blobs of a Blob transaction: 1 to MaxBlobs, of BlobSize bytes
	// each. Other kinds must have none. They are removed from the record when the
	// request has ended.
	Blobs [][]byte `json:"blobs,omitempty"`
	// Gas is the gas limit; 0 means that the node estimates it. Values from 1 to 20,999 are
	// invalid, because every transaction needs 21,000.
	Gas uint64 `json:"gas,omitempty"`
	// MaxFee is the highest price per gas that this request may ever offer, in wei;
	// nil means no limit. The request waits while the base fee is above MaxFee.
	MaxFee *uint256.Int `json:"maxFee,omitempty"`
	// MaxBlobFee is the highest price per blob gas that this request may ever offer, in wei;
	// nil means no limit. Only requests of kind Blob may have it.
	MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
	// Priority decides which requests get nonces first: higher values before lower
	// ones. Requests of equal priority get them in the order in which the store
	// accepted the requests. The default is 0.
	Priority int32 `json:"priority,omitempty"`
	// Group names a sequence of requests that depend on each other; empty means
	// none. The requests of a group get their nonces in the order of acceptance, so
	// give all of them the same priority. A request whose gas must be estimated
	// waits until all earlier members of its group are mined, because their effects
	// may change the estimate.
	Group string `json:"group,omitempty"`
	// Deadline is the time after which a request without a nonce fails; zero means
	// never. A request that already has a nonce goes on. The year must be from 0 to
	// 9999, in UTC.
	Deadline time.Time `json:"deadline,omitzero"`
	// Metadata is free for the caller's use. It is stored with the request and
	// returned in the record.
	Metadata []byte `json:"metadata,omitempty"`
	// Noop makes the request a transfer of 0 wei from the account to itself. To,
	// Value and Data are then ignored.
	Noop bool `json:"noop,omitempty"`
}

// Validate returns an error that wraps ErrInvalidRequest if the request could never
// be executed, for example because its blobs are malformed. Submit calls it for
// every request.
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

// CheckPayload makes the checks of [Request.Validate] for the payload of a
// replacement. It does not check the key and the group, because a replacement keeps
// those of its request.
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

// Digest returns a hash of the key and the payload. With it, a store distinguishes
// a request that is submitted again from a different request with the same key.
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
