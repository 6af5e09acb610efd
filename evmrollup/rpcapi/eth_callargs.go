package rpcapi

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// callArgs contains the arguments of eth_call, eth_estimateGas, eth_createAccessList
// and eth_fillTransaction. The fields have the names and meanings of geth's transaction
// arguments. Data and Input are the old and the new name of the same argument; if both
// are set, Input counts.
type callArgs struct {
	// From is the sender. If it is missing, the sender is the zero address.
	From *common.Address `json:"from"`
	// To is the receiver. If it is missing, the message creates a contract.
	To *common.Address `json:"to"`
	// Gas is the gas limit. If Gas is missing, the node's maximum applies.
	Gas *hexutil.Uint64 `json:"gas"`
	// GasPrice is in wei per gas.
	GasPrice *hexutil.Big `json:"gasPrice"`
	// MaxFeePerGas is in wei per gas.
	MaxFeePerGas *hexutil.Big `json:"maxFeePerGas"`
	// MaxPriorityFeePerGas is in wei per gas.
	MaxPriorityFeePerGas *hexutil.Big `json:"maxPriorityFeePerGas"`
	Value                *hexutil.Big `json:"value"` // in wei
	// Nonce is the nonce of the transaction, by default the next nonce of the sender.
	Nonce      *hexutil.Uint64   `json:"nonce"`
	Data       *hexutil.Bytes    `json:"data"`
	Input      *hexutil.Bytes    `json:"input"`
	AccessList *types.AccessList `json:"accessList"` // EIP-2930
	// ChainID must be the ID of the chain, or missing.
	ChainID *hexutil.Big `json:"chainId"`
	// BlobFeeCap is in wei per gas of blobs.
	BlobFeeCap        *hexutil.Big                 `json:"maxFeePerBlobGas"`
	BlobHashes        []common.Hash                `json:"blobVersionedHashes"` // EIP-4844
	Blobs             []hexutil.Bytes              `json:"blobs"`               // refused
	AuthorizationList []types.SetCodeAuthorization `json:"authorizationList"`   // EIP-7702
}

// message converts the arguments of a call to a message that can be executed.
func (c *callArgs) message(baseFee, chainID *big.Int, gasCap uint64) (*core.Message, error) {
	switch {
	case c.twoPrices():
		return nil, errTwoPrices
	case c.To == nil && c.BlobHashes != nil:
		return nil, core.ErrBlobTxCreate
	case c.To == nil && c.AuthorizationList != nil:
		return nil, core.ErrSetCodeTxCreate
	}
	if err := c.checkChain(chainID); err != nil {
		return nil, err
	}
	if c.BlobHashes != nil {
		return nil, errNoBlobs
	}
	// The client's gas limit is used up to gasCap. Without a limit of the client, the call
	// gets gasCap, or 0 if there is no cap.
	m := &core.Message{
		From: c.from(), To: c.To, GasLimit: gasCap, Value: amount(c.Value), Data: c.data(), SetCodeAuthorizations: c.AuthorizationList,
	}
	if c.Nonce != nil {
		m.Nonce = uint64(*c.Nonce)
	}
	if c.Gas != nil && (gasCap == 0 || uint64(*c.Gas) < gasCap) {
		m.GasLimit = uint64(*c.Gas)
	}
	if c.AccessList != nil {
		m.AccessList = *c.AccessList
	}
	c.fees(m, baseFee)
	return m, nil
}

var (
	errTwoPrices = errors.New("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	errNoBlobs   = invalidParams("blob transactions are not supported")
)

// twoPrices reports whether the arguments have both a legacy gas price and an EIP-1559
// fee.
func (c *callArgs) twoPrices() bool {
	return c.GasPrice != nil && (c.MaxFeePerGas != nil || c.MaxPriorityFeePerGas != nil)
}

// checkChain returns an error if the arguments have the ID of a different chain.
func (c *callArgs) checkChain(chainID *big.Int) error {
	if c.ChainID != nil && c.ChainID.ToInt().Cmp(chainID) != 0 {
		return fmt.Errorf("chainId does not match node's (have=%v, want=%v)", c.ChainID.ToInt(), chainID)
	}
	return nil
}

// checkBlobPrice returns an error if the arguments have a blob price but no blobs.
func (c *callArgs) checkBlobPrice() error {
	if c.BlobFeeCap != nil && len(c.BlobHashes) == 0 {
		return errors.New("maxFeePerBlobGas specified without blobVersionedHashes")
	}
	return nil
}

// fees sets the gas prices of the message; a price that is missing is 0.
func (c *callArgs) fees(m *core.Message, baseFee *big.Int) {
	if c.GasPrice != nil {
		m.GasPrice = amount(c.GasPrice)
		m.GasFeeCap, m.GasTipCap = m.GasPrice, m.GasPrice
		return
	}
	m.GasFeeCap, m.GasTipCap, m.GasPrice = amount(c.MaxFeePerGas), amount(c.MaxPriorityFeePerGas), new(uint256.Int)
	if !m.GasFeeCap.IsZero() || !m.GasTipCap.IsZero() {
		price, overflow := new(uint256.Int).AddOverflow(m.GasTipCap, uint256.MustFromBig(baseFee))
		if overflow || m.GasFeeCap.Lt(price) {
			price = m.GasFeeCap
		}
		m.GasPrice = price
	}
}

func (c *callArgs) data() []byte {
	switch {
	case c.Input != nil:
		return *c.Input
	case c.Data != nil:
		return *c.Data
	}
	return nil
}

// amount converts an amount of wei from the arguments; nil means 0.
func amount(v *hexutil.Big) *uint256.Int {
	if v == nil {
		return new(uint256.Int)
	}
	// The amount fits, because hexutil.Big accepts at most 256 bits.
	return uint256.MustFromBig(v.ToInt())
}
