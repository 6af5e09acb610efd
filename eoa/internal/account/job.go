package account

import (
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Job is a transaction that must be signed: a request together with its nonce, gas
// and prices.
type Job struct {
	// Record is the current record of the request.
	Record Record
	// Gas is the gas limit; 0 means that it must be estimated first.
	Gas uint64
	// Nonce is the transaction's nonce.
	Nonce uint64
	// Fees are the transaction's prices.
	Fees Fees
	// Noop means that the transaction does nothing, except that it uses the nonce.
	Noop bool
}

// Transaction returns the unsigned transaction. A blob transaction contains the
// hashes of its blobs but not the blobs, because a signature covers only the
// hashes. The error wraps ErrInvalidRequest if the blobs are invalid.
func (j *Job) Transaction(a Account) (*types.Transaction, error) {
	to, value, data, kind := j.Record.To, new(uint256.Int), j.Record.Data, j.Record.Kind
	if j.Record.Value != nil {
		value = j.Record.Value
	}
	accessList := j.Record.AccessList
	if j.Noop {
		to, value, data, accessList = &a.Address, new(uint256.Int), nil, nil
		if kind == SetCode {
			kind = DynamicFee
		}
	}
	chain := new(uint256.Int).SetUint64(a.ChainID)
	switch kind {
	case Legacy:
		return types.NewTx(&types.LegacyTx{Nonce: j.Nonce, GasPrice: j.Fees.Cap.ToBig(), Gas: j.Gas, To: to, Value: value.ToBig(), Data: data}), nil
	case AccessList:
		return types.NewTx(&types.AccessListTx{ChainID: chain.ToBig(), Nonce: j.Nonce, GasPrice: j.Fees.Cap.ToBig(), Gas: j.Gas, To: to,
			Value: value.ToBig(), Data: data, AccessList: accessList}), nil
	case Blob:
		return j.blobTransaction(&types.BlobTx{ChainID: chain, Nonce: j.Nonce, GasTipCap: &j.Fees.Tip, GasFeeCap: &j.Fees.Cap, Gas: j.Gas, To: *to,
			Value: value, Data: data, AccessList: accessList})
	case SetCode:
		return types.NewTx(&types.SetCodeTx{ChainID: chain, Nonce: j.Nonce, GasTipCap: &j.Fees.Tip, GasFeeCap: &j.Fees.Cap, Gas: j.Gas, To: *to,
			Value: value, Data: data, AccessList: accessList, AuthList: j.Record.Authorizations}), nil
	}
	return types.NewTx(&types.DynamicFeeTx{ChainID: chain.ToBig(), Nonce: j.Nonce, GasTipCap: j.Fees.Tip.ToBig(), GasFeeCap: j.Fees.Cap.ToBig(), Gas: j.Gas,
		To: to, Value: value.ToBig(), Data: data, AccessList: accessList}), nil
}

// cost returns the most that the transaction can cost, in wei.
func (j *Job) cost() uint256.Int {
	sum, over := new(uint256.Int).MulOverflow(&j.Fees.Cap, uint256.NewInt(j.Gas))
	add := func(x *uint256.Int, overflow bool) {
		_, more := sum.AddOverflow(sum, x)
		over = over || overflow || more
	}
	if n := len(j.Blobs()); n > 0 {
		add(new(uint256.Int).MulOverflow(&j.Fees.Blob, uint256.NewInt(uint64(n)*gasPerBlob)))
	}
	if j.Record.Value != nil && !j.Noop {
		add(j.Record.Value, false)
	}
	// A sum above 256 bits counts as the largest number.
	if over {
		sum.SetAllOne()
	}
	return *sum
}

// Blobs returns the blobs of the job's transaction; a no-op of kind Blob has one
// blob of zeros.
func (j *Job) Blobs() [][]byte {
	if j.Record.Kind == Blob && j.Noop {
		return noopBlobs
	}
	return j.Record.Blobs
}

// blobTransaction completes tx with the hashes of the blobs and the blob price.
func (j *Job) blobTransaction(tx *types.BlobTx) (*types.Transaction, error) {
	var err error
	if tx.BlobHashes, err = blobHashes(j.Blobs()); err != nil {
		return nil, err
	}
	tx.BlobFeeCap = &j.Fees.Blob
	return types.NewTx(tx), nil
}

// noopBlobs is the one blob of zeros that a no-op of kind Blob carries, because
// every blob transaction needs a blob.
var noopBlobs = [][]byte{make([]byte, BlobSize)}

// usesMore returns how many nonces the job's transaction uses in addition to its
// own.
func (j *Job) usesMore(a Account) (n uint64) {
	if j.Noop || j.Record.Kind != SetCode {
		return 0
	}
	// Each valid authorization that the sender itself has signed raises the
	// sender's nonce by one (EIP-7702).
	for i := range j.Record.Authorizations {
		auth := &j.Record.Authorizations[i]
		// The transaction raises the nonce first, and then each of these
		// authorizations in turn.
		if auth.Nonce != j.Nonce+1+n || !auth.ChainID.IsZero() && auth.ChainID.CmpUint64(a.ChainID) != 0 {
			continue
		}
		if authority, err := auth.Authority(); err == nil && authority == a.Address {
			n++
		}
	}
	return n
}
