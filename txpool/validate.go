package txpool

import (
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// inspect makes the checks that need no account, cheap ones before the signature, and returns the transaction ready for
// admission.
func (c *Config) inspect(signer types.Signer, tx *types.Transaction, now time.Time) (*entry, error) {
	if err := c.checkShape(tx); err != nil {
		return nil, err
	}
	e, err := c.price(tx)
	if err != nil {
		return nil, err
	}
	intrinsic, floor := intrinsicGas(tx)
	if tx.Gas() < intrinsic {
		return nil, fmt.Errorf("%w: gas %d, minimum needed %d", ErrIntrinsicGas, tx.Gas(), intrinsic)
	}
	if tx.Gas() < floor {
		return nil, fmt.Errorf("%w: gas %d, minimum needed %d", ErrFloorDataGas, tx.Gas(), floor)
	}
	if e.from, err = types.Sender(signer, tx); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidSender, err)
	}
	e.at = now
	return e, nil
}

// checkShape checks type, chain, size and gas.
func (c *Config) checkShape(tx *types.Transaction) error {
	switch tx.Type() {
	case types.LegacyTxType, types.AccessListTxType, types.DynamicFeeTxType, types.SetCodeTxType:
	default:
		return fmt.Errorf("%w: type %d, want 0, 1, 2 or 4", ErrTypeNotSupported, tx.Type())
	}
	switch {
	case tx.Size() > c.MaxTxSize:
		return fmt.Errorf("%w: transaction size %d, limit %d", ErrOversized, tx.Size(), c.MaxTxSize)
	case !tx.Protected():
		return ErrUnprotected
	case tx.ChainId().Cmp(c.ChainID) != 0:
		return fmt.Errorf("%w: have %v want %v", ErrInvalidChainID, tx.ChainId(), c.ChainID)
	case tx.To() == nil && len(tx.Data()) > maxInitCodeSize:
		return fmt.Errorf("%w: code size %d, limit %d", ErrMaxInitCodeSize, len(tx.Data()), maxInitCodeSize)
	case tx.Type() == types.SetCodeTxType && len(tx.SetCodeAuthorizations()) == 0:
		return ErrEmptyAuthorizations
	case tx.Gas() > c.BlockGasLimit:
		return fmt.Errorf("%w: gas %d, limit %d", ErrGasLimit, tx.Gas(), c.BlockGasLimit)
	}
	return nil
}

// price reads the fees of a transaction and checks their ranges.
func (c *Config) price(tx *types.Transaction) (*entry, error) {
	e := &entry{tx: tx, hash: tx.Hash(), nonce: tx.Nonce(), size: tx.Size()}
	feeCap, capOver := uint256.FromBig(tx.GasFeeCap())
	tip, tipOver := uint256.FromBig(tx.GasTipCap())
	cost, costOver := uint256.FromBig(tx.Cost())
	switch {
	case capOver || tipOver || costOver:
		return nil, fmt.Errorf("%w: fee cap of %d bits, cost of %d bits", ErrFeeTooHigh, tx.GasFeeCap().BitLen(), tx.Cost().BitLen())
	case feeCap.Lt(tip):
		return nil, fmt.Errorf("%w: maxPriorityFeePerGas %v, maxFeePerGas %v", ErrTipAboveFeeCap, tip, feeCap)
	case c.MinGasPrice != nil && feeCap.Lt(c.MinGasPrice):
		return nil, fmt.Errorf("%w: fee cap %v wei, minimum needed %v", ErrUnderpriced, feeCap, c.MinGasPrice)
	}
	e.feeCap, e.tip, e.cost = *feeCap, *tip, *cost
	return e, nil
}

// checkBump checks that a transaction pays enough more than the one that it replaces (invariant I6): by the configured share,
// rounded up, and by at least 1 wei, of both fee cap and tip.
func (c *Config) checkBump(old, e *entry) error {
	for _, f := range []struct {
		name     string
		old, new *uint256.Int
	}{{"fee cap", &old.feeCap, &e.feeCap}, {"tip", &old.tip, &e.tip}} {
		want, over := c.bumped(f.old)
		if over || f.new.Lt(want) {
			return fmt.Errorf("%w: %s %v wei, want at least %v", ErrReplaceUnderpriced, f.name, f.new, want)
		}
	}
	if limit := old.size + old.size/4; e.size > limit {
		return fmt.Errorf("%w: size %d, want at most %d", ErrReplaceOversized, e.size, limit)
	}
	return nil
}

// bumped returns the least price that replaces an old one.
func (c *Config) bumped(old *uint256.Int) (*uint256.Int, bool) {
	const whole = 1000
	more, over := new(uint256.Int).MulDivOverflow(old, uint256.NewInt(c.PriceBumpPermille), uint256.NewInt(whole))
	rest := new(uint256.Int).MulMod(old, uint256.NewInt(c.PriceBumpPermille), uint256.NewInt(whole))
	if !rest.IsZero() || more.IsZero() {
		more.AddUint64(more, 1)
	}
	sum, overSum := new(uint256.Int).AddOverflow(old, more)
	return sum, over || overSum
}
