package account

import (
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// Job is a transaction that is to be signed: a request together with its nonce, gas and
// prices.
type Job struct {
	// Record is the current record of the request.
	Record Record
	// Gas is the gas limit; 0 means that it must be estimated first.
	Gas uint64
	// Nonce is the transaction's nonce.
	Nonce uint64
	// Fees are the transaction's prices.
	Fees Fees
	// Noop means that the transaction does nothing.
	Noop bool
}

// Transaction returns the transaction to be signed. It has the hashes of the blobs and not
// the blobs, as a signature covers only the hashes. The error wraps ErrInvalidRequest if the
// blobs are invalid.
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

// cost returns the most that the transaction can cost, in wei. If the sum is too large for
// 256 bits, it is the largest number.
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
	if over {
		sum.SetAllOne()
	}
	return *sum
}

// Blobs returns the blobs of the job's transaction.
func (j *Job) Blobs() [][]byte {
	if j.Record.Kind == Blob && j.Noop {
		return noopBlobs
	}
	return j.Record.Blobs
}

// blobTransaction adds the blob hashes and the blob price to tx. The blobs are
// not attached.
func (j *Job) blobTransaction(tx *types.BlobTx) (*types.Transaction, error) {
	var err error
	if tx.BlobHashes, err = blobHashes(j.Blobs()); err != nil {
		return nil, err
	}
	tx.BlobFeeCap = &j.Fees.Blob
	return types.NewTx(tx), nil
}

// noopBlobs are the blobs of a blob transaction that does nothing.
var noopBlobs = [][]byte{make([]byte, BlobSize)}

// usesMore returns how many nonces of the account the job's transaction uses in addition to
// its own. Each authorization of a SetCode transaction that the sender itself has signed
// raises its nonce by one (EIP-7702), if it is valid: the sender's nonce rises first for the
// transaction, and then for each authorization in turn.
func (j *Job) usesMore(a Account) (n uint64) {
	if j.Noop || j.Record.Kind != SetCode {
		return 0
	}
	for i := range j.Record.Authorizations {
		auth := &j.Record.Authorizations[i]
		if auth.Nonce != j.Nonce+1+n || !auth.ChainID.IsZero() && auth.ChainID.CmpUint64(a.ChainID) != 0 {
			continue
		}
		if authority, err := auth.Authority(); err == nil && authority == a.Address {
			n++
		}
	}
	return n
}
