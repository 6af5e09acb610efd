// go test ./internal/tidy -update writes this file from eoa/internal/account/request.go.

package eoa

import "github.com/jamq/jamq/eoa/internal/account"

// Account identifies a sender on a chain. At most one worker at a time acts for
// it.
//
//	type Account struct {
//		// ChainID is the id of the chain (EIP-155).
//		ChainID uint64 `json:"chainId"`
//		// Address is the account's address.
//		Address common.Address `json:"address"`
//	}
//
//	// String returns the chain id and the address, separated by a colon.
//	func (a Account) String() string
type Account = account.Account

// Kind is the transaction type that a request is sent as.
//
//	// String returns the name, for example "dynamicFee".
//	func (k Kind) String() string
type Kind = account.Kind

const (
	// DynamicFee is an EIP-1559 transaction, the default.
	DynamicFee = account.DynamicFee
	// Legacy is a transaction with one price, replay-protected by EIP-155.
	Legacy = account.Legacy
	// AccessList is an EIP-2930 transaction, with one price.
	AccessList = account.AccessList
	// SetCode is an EIP-7702 transaction.
	SetCode = account.SetCode
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
	Blob = account.Blob
)

// Request is a transaction to be sent. A request is idempotent by its key: the
// same key with the same payload is the same request, and with another payload
// it is an error.
//
//	type Request struct {
//		// Key identifies the request. It is chosen by the caller, unique per
//		// account, 1 to 256 bytes of UTF-8, and must not begin with "eoa/".
//		Key string `json:"key"`
//		// Kind is the transaction type. The default is DynamicFee.
//		Kind Kind `json:"kind,omitempty"`
//		// To is the recipient; nil creates a contract, whose code Data returns.
//		To *common.Address `json:"to,omitempty"`
//		// Value is the amount, in wei; nil means 0.
//		Value *uint256.Int `json:"value,omitempty"`
//		// Data is the input, at most 128 KiB.
//		Data []byte `json:"data,omitempty"`
//		// AccessList is the access list (EIP-2930). Kind Legacy must have none.
//		AccessList types.AccessList `json:"accessList,omitempty"`
//		// Authorizations are the authorizations of a SetCode transaction, at least
//		// one. Other kinds must have none.
//		Authorizations []types.SetCodeAuthorization `json:"authorizations,omitempty"`
//		// Blobs are the blobs of a Blob transaction: 1 to MaxBlobs, of BlobSize
//		// bytes each. Other kinds must have none. They are dropped from the record
//		// when it has ended.
//		Blobs [][]byte `json:"blobs,omitempty"`
//		// Gas is the gas limit; 0 means that it is estimated. Values from 1 to
//		// 20,999 are invalid.
//		Gas uint64 `json:"gas,omitempty"`
//		// MaxFee is the highest price per gas that may ever be paid, in wei; nil
//		// means no limit.
//		MaxFee *uint256.Int `json:"maxFee,omitempty"`
//		// MaxBlobFee is the highest price per blob gas that may ever be paid, in
//		// wei; nil means no limit. Only for kind Blob.
//		MaxBlobFee *uint256.Int `json:"maxBlobFee,omitempty"`
//		// Priority orders pending requests: higher goes first, and equal priorities
//		// go in order of acceptance.
//		Priority int32 `json:"priority,omitempty"`
//		// Group names a sequence of requests; empty means none. Members get their
//		// nonces in order of acceptance, so they should have one priority. A member
//		// whose gas must be estimated waits until all members before it are mined.
//		Group string `json:"group,omitempty"`
//		// Deadline is when the request fails if it has no nonce yet, in the years 0 to
//		// 9999 in UTC; zero means never.
//		Deadline time.Time `json:"deadline,omitzero"`
//		// Metadata is stored with the request and returned in the record.
//		Metadata []byte `json:"metadata,omitempty"`
//		// Noop sends a transaction without value and data from the account to
//		// itself, and ignores the payload.
//		Noop bool `json:"noop,omitempty"`
//	}
//
//	// BlobHashes returns the versioned hashes of the request's blobs, in order; nil
//	// if it has none. It returns an error that wraps ErrInvalidRequest if the blobs
//	// are invalid.
//	func (r *Request) BlobHashes() ([]common.Hash, error)
//
//	// Validate returns an error that wraps ErrInvalidRequest if the request can
//	// never be sent.
//	func (r *Request) Validate() error
//
//	// Digest returns a hash of the key and payload. It is equal for equal requests;
//	// stores keep it to distinguish a repeated request from a reused key.
//	func (r *Request) Digest() [sha256.Size]byte
type Request = account.Request

// Rank is the position of a pending request: the lowest rank goes first.
//
//	type Rank struct {
//		// Priority is math.MaxInt32 minus Request.Priority.
//		Priority uint32
//		// ID is the record's id.
//		ID uint64
//	}
//
//	// Less reports whether a goes before b.
//	func (a Rank) Less(b Rank) bool
type Rank = account.Rank

// RankOf returns the rank of a request with the given record id.
func RankOf(r *Request, id uint64) Rank { return account.RankOf(r, id) }
