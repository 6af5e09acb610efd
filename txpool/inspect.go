package txpool

import (
	"bytes"
	"fmt"
	"math"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// inspect makes the checks that need neither the sender's account nor cryptography.
func (c *Config) inspect(tx *types.Transaction) (*entry, error) {
	if tx == nil {
		return nil, fmt.Errorf("%w: nil", ErrMalformed)
	}
	if err := c.checkType(tx); err != nil {
		return nil, err
	}
	if err := c.checkChain(tx); err != nil {
		return nil, err
	}
	e := &entry{tx: tx, nonce: tx.Nonce(), gas: tx.Gas()}
	if err := c.price(e); err != nil { // first, because a price out of range cannot be encoded
		return nil, err
	}
	if e.feeCap < c.MinGasPrice {
		return nil, fmt.Errorf("%w: maxFeePerGas %d wei, want ≥ %d", ErrUnderpriced, e.feeCap, c.MinGasPrice)
	}
	if err := c.checkSize(e); err != nil {
		return nil, err
	}
	if err := c.checkGas(e); err != nil {
		return nil, err
	}
	return e, checkSignature(tx)
}

// checkSignature refuses a negative number in the signature or the chain id.
func checkSignature(tx *types.Transaction) error {
	v, r, s := tx.RawSignatureValues()
	for _, n := range [...]*big.Int{v, r, s, tx.ChainId()} {
		// A transaction with a negative number cannot be encoded. go-ethereum recovers
		// a sender from some such signatures, and Config.Sender may not check for them.
		if n.Sign() < 0 {
			return fmt.Errorf("%w: a negative number in the signature or the chain id", ErrMalformed)
		}
	}
	return nil
}

// checkType checks a transaction's type, and the fields that only this type has.
func (c *Config) checkType(tx *types.Transaction) error {
	switch tx.Type() {
	case types.LegacyTxType:
		if !c.AcceptUnprotected && c.Sender == nil && !tx.Protected() {
			return ErrUnprotected
		}
	case types.AccessListTxType, types.DynamicFeeTxType:
	case types.BlobTxType:
		if !c.AcceptBlobs {
			return fmt.Errorf("%w: type 3 (blobs), want 0, 1, 2 or 4", ErrTypeNotSupported)
		}
		if len(tx.BlobHashes()) == 0 {
			return ErrMissingBlobHashes
		}
		if tx.BlobTxSidecar() != nil {
			return fmt.Errorf("%w: type 3 with a sidecar, want it without", ErrTypeNotSupported)
		}
	case types.SetCodeTxType:
		n := len(tx.SetCodeAuthorizations())
		switch {
		case tx.To() == nil:
			return ErrSetCodeCreate
		case n == 0:
			return ErrEmptyAuthorizations
		case n > MaxAuthorizations && !c.accepted:
			return fmt.Errorf("%w: %d, limit %d", ErrTooManyAuthorizations, n, MaxAuthorizations)
		}
	default:
		return fmt.Errorf("%w: type %d, want 0, 1, 2 or 4", ErrTypeNotSupported, tx.Type())
	}
	if tx.Nonce() == math.MaxUint64 {
		return fmt.Errorf("%w: %d", ErrNonceMax, tx.Nonce())
	}
	return nil
}

// checkChain checks that a transaction is signed for the chain of the pool.
func (c *Config) checkChain(tx *types.Transaction) error {
	if c.Sender != nil || !tx.Protected() {
		// With Config.Sender, signatures are not Ethereum's and need not name a chain.
		// Unprotected legacy transactions name none.
		return nil
	}
	have := tx.ChainId()
	if have.Cmp(c.ChainID) != 0 {
		return fmt.Errorf("%w: have %v want %v", ErrInvalidChainID, have, c.ChainID)
	}
	return nil
}

// amount converts a transaction's number to 256 bits, or returns an error with its
// name.
func amount(into *uint256.Int, from *big.Int, name string, tooHigh error) error {
	if from.Sign() < 0 {
		return fmt.Errorf("%w: %s %v", ErrNegativeValue, name, from)
	}
	if into.SetFromBig(from) {
		return fmt.Errorf("%w: %s has %d bits, want at most 256", tooHigh, name, from.BitLen())
	}
	return nil
}

// price reads the fees of a transaction and computes its maximum cost.
func (c *Config) price(e *entry) error {
	tx := e.tx
	maxFee, maxTip, value := tx.GasFeeCap(), tx.GasTipCap(), tx.Value()
	var feeCap, tip uint256.Int
	if err := amount(&feeCap, maxFee, "maxFeePerGas", ErrFeeCapTooHigh); err != nil {
		return err
	}
	if err := amount(&tip, maxTip, "maxPriorityFeePerGas", ErrTipTooHigh); err != nil {
		return err
	}
	if feeCap.Lt(&tip) {
		return fmt.Errorf("%w: maxPriorityFeePerGas: %v, maxFeePerGas: %v", ErrTipAboveFeeCap, maxTip, maxFee)
	}
	e.feeCap, e.tip = saturate(&feeCap), saturate(&tip)
	if err := amount(&e.cost, value, "value", ErrInsufficientFunds); err != nil {
		return err
	}
	if !addProduct(&e.cost, e.gas, &feeCap) || !c.addExtras(e) {
		return fmt.Errorf("%w: the cost exceeds 2^256-1 wei: gas %d, maxFeePerGas %v, value %v", ErrInsufficientFunds, tx.Gas(), maxFee, value)
	}
	return nil
}

// addExtras adds blob fees and Config.ExtraCost to a transaction's cost, or returns
// false on overflow.
func (c *Config) addExtras(e *entry) bool {
	if e.tx.Type() == types.BlobTxType {
		blobCap, over := uint256.FromBig(e.tx.BlobGasFeeCap())
		if over || !addProduct(&e.cost, e.tx.BlobGas(), blobCap) {
			return false
		}
	}
	if c.ExtraCost == nil {
		return true
	}
	extra := c.ExtraCost(e.tx)
	if extra == nil {
		return true
	}
	_, over := e.cost.AddOverflow(&e.cost, extra)
	return !over
}

// addProduct adds n times a price to sum, or returns false on overflow.
func addProduct(sum *uint256.Int, n uint64, price *uint256.Int) bool {
	var product uint256.Int
	_, over := product.MulOverflow(product.SetUint64(n), price)
	if over {
		return false
	}
	_, over = sum.AddOverflow(sum, &product)
	return !over
}

// checkSize sets the size of a transaction, and refuses one that is too large.
func (c *Config) checkSize(e *entry) error {
	size := e.tx.Size()
	if size > c.MaxTxSize {
		return fmt.Errorf("%w: transaction size %d, limit %d", ErrOversized, size, c.MaxTxSize)
	}
	n := len(e.tx.Data())
	if n > MaxInitCodeSize && e.tx.To() == nil && c.Fork <= Shanghai && !c.accepted {
		return fmt.Errorf("%w: code size %d, limit %d", ErrMaxInitCodeSize, n, MaxInitCodeSize)
	}
	e.size, e.memory = uint32(size), uint32(memoryOf(e.tx))
	return nil
}

// These constants estimate how much memory a transaction and its parts take in the
// pool, in bytes, including all the data that the pool stores about it. TestMemory
// compares them with the heap.
const (
	txMemory            = 1090 // with entry, indexes and a share of the account
	legacyTxMemory      = 980
	delegatingMemory    = 200 // more if there are authorizations
	authorizationMemory = 128
	authorityMemory     = 40
	accessTupleMemory   = 48
)

// memoryOf returns a transaction's memory in bytes, accurate to within a quarter.
func memoryOf(tx *types.Transaction) uint64 {
	// Count the capacity of lists and not their length, because the lists of a decoded
	// transaction have unused capacity.
	memory := txMemory + cap(tx.Data()) + common.HashLength*cap(tx.BlobHashes())
	if tx.Type() == types.LegacyTxType {
		memory = legacyTxMemory + cap(tx.Data())
	}
	list := tx.AccessList()
	memory += accessTupleMemory * cap(list)
	for _, tuple := range list {
		memory += common.HashLength * cap(tuple.StorageKeys)
	}
	auths := tx.SetCodeAuthorizations()
	if len(auths) > 0 {
		memory += delegatingMemory + authorizationMemory*cap(auths) + authorityMemory*len(auths)
	}
	return uint64(memory)
}

// checkGas refuses a gas limit that is too high or too low.
func (c *Config) checkGas(e *entry) error {
	gas := e.gas
	if gas > c.BlockGasLimit {
		return fmt.Errorf("%w: gas %d, limit %d", ErrGasLimit, gas, c.BlockGasLimit)
	}
	most := c.GreatestGas()
	if gas > most {
		return fmt.Errorf("%w (cap: %d, tx: %d)", ErrTxGasLimit, most, gas)
	}
	intrinsic, floor := c.intrinsicGas(e.tx)
	e.work = uint32(min(max(intrinsic, floor), math.MaxUint32))
	// The gas limit must pay for everything before the transaction's first instruction,
	// and for the minimum price of its data.
	if gas < intrinsic {
		return fmt.Errorf("%w: gas %d, minimum needed %d", ErrIntrinsicGas, gas, intrinsic)
	}
	if gas < floor {
		return fmt.Errorf("%w: gas %d, minimum needed %d", ErrFloorDataGas, gas, floor)
	}
	return nil
}

// sender returns the sender of a transaction.
func (c *Config) sender(signer types.Signer, tx *types.Transaction) (common.Address, error) {
	if c.Sender != nil {
		return c.Sender(tx)
	}
	return types.Sender(signer, tx) // checks the chain id first
}

// checkBump checks that a replacement pays enough more than the old transaction
// (invariant I6).
func (c *Config) checkBump(old, e *entry) error {
	for _, price := range [...]struct {
		name      string
		old, have uint64
	}{
		{"maxFeePerGas", old.feeCap, e.feeCap},
		{"maxPriorityFeePerGas", old.tip, e.tip},
	} {
		// Both prices must rise. If only one of them had to, a sender could replace a
		// transaction again and again without paying more.
		want := c.bumped(price.old)
		if price.have < want || price.have == price.old {
			return fmt.Errorf("%w: %s %d, want ≥ %d to replace %s", ErrReplaceUnderpriced, price.name, price.have, want, old.hash())
		}
	}
	// A much longer replacement would make the network carry many bytes for the fee of
	// one transaction.
	limit := uint64(old.size) + uint64(old.size)*maxSizeGrowth/perMille
	if uint64(e.size) > limit {
		return fmt.Errorf("%w: size %d, want at most %d", ErrReplaceOversized, e.size, limit)
	}
	return nil
}

// bumped returns the lowest price that may replace an old price.
func (c *Config) bumped(old uint64) uint64 {
	var more uint256.Int
	more.Mul(more.SetUint64(old), uint256.NewInt(c.PriceBump))
	if !c.RoundBumpDown {
		more.AddUint64(&more, perMille-1)
	}
	more.Div(&more, uint256.NewInt(perMille))
	// If the old price is 2^64-1, nothing can replace it: saturate uses that number for
	// all higher prices too.
	return addSaturating(old, max(saturate(&more), 1))
}

// GreatestGas returns the highest gas limit that a transaction in the pool may have.
func (c *Config) GreatestGas() uint64 {
	if c.MaxTxGas == 0 {
		return c.BlockGasLimit
	}
	return min(c.MaxTxGas, c.BlockGasLimit)
}

// Gas costs of a transaction before its first instruction.
const (
	txGas            = 21_000 // EIP-2
	createGas        = 32_000 // EIP-2
	zeroByteGas      = 4      // EIP-2028
	otherByteGas     = 16     // EIP-2028
	initCodeWordGas  = 2      // EIP-3860
	accessAddressGas = 2_400  // EIP-2930
	accessKeyGas     = 1_900  // EIP-2930
	authorizationGas = 25_000 // EIP-7702
	tokensPerByte    = 4      // EIP-7623, per nonzero byte
	floorGasPerToken = 10     // EIP-7623
	wordSize         = 32
)

// MaxInitCodeSize is the maximum size of the init code of a contract creation, in bytes (EIP-3860).
// It applies from the fork Shanghai on.
const MaxInitCodeSize = 49_152

// intrinsicGas returns the costs that a gas limit must cover, by the fork's rules.
func (c *Config) intrinsicGas(tx *types.Transaction) (intrinsic, floor uint64) {
	data := tx.Data()
	zeros := uint64(bytes.Count(data, []byte{0}))
	others := uint64(len(data)) - zeros
	// intrinsic is the cost before the first instruction, and floor the minimum cost of
	// the data. Nothing overflows, because Config.MaxTxSize bounds all sizes.
	intrinsic = txGas + zeros*zeroByteGas + others*otherByteGas
	if tx.To() == nil {
		intrinsic += createGas
		if c.Fork <= Shanghai {
			intrinsic += (uint64(len(data)) + wordSize - 1) / wordSize * initCodeWordGas
		}
	}
	list := tx.AccessList()
	intrinsic += uint64(len(list))*accessAddressGas + uint64(list.StorageKeys())*accessKeyGas
	intrinsic += uint64(len(tx.SetCodeAuthorizations())) * authorizationGas
	if c.Fork > Prague {
		return intrinsic, txGas
	}
	return intrinsic, txGas + (zeros+others*tokensPerByte)*floorGasPerToken
}
