package rpcapi

import (
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/accounts"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"github.com/jamq/jamq/evmrollup/internal/ledger"
	"github.com/jamq/jamq/txpool"
)

// devWallet implements the methods that sign with the keys of the development accounts.
// These keys are public, so the methods exist only in developer mode (Config.Dev).
type devWallet struct {
	*ethCalls
	keys map[common.Address]*ecdsa.PrivateKey
	// sending is locked from the choice of a nonce until the pool has the transaction, so
	// that two transactions of an account that are sent at the same time get different
	// nonces.
	sending sync.Mutex
}

// errUnknownAccount has the text of geth's error.
var errUnknownAccount = errors.New("unknown account")

func newWallet(calls *ethCalls) *devWallet {
	w := &devWallet{ethCalls: calls, keys: make(map[common.Address]*ecdsa.PrivateKey)}
	for _, account := range calls.node.Accounts() {
		w.keys[account.Address] = account.Key
	}
	return w
}

// Accounts implements eth_accounts. It returns the addresses of the development
// accounts and of the impersonated accounts.
func (w *devWallet) Accounts() []common.Address {
	var all []common.Address
	for _, account := range w.node.Accounts() {
		all = append(all, account.Address)
	}
	for _, addr := range w.node.Impersonated() {
		if w.keys[addr] == nil {
			all = append(all, addr)
		}
	}
	return all
}

// RequestAccounts implements eth_requestAccounts, with which a web page connects to
// a wallet (EIP-1102). The answer is that of eth_accounts.
func (w *devWallet) RequestAccounts() []common.Address { return w.Accounts() }

// SendTransaction implements eth_sendTransaction. It fills in missing arguments as
// eth_fillTransaction does, signs the transaction and sends it. It does not need a
// key if the account is impersonated.
func (w *devWallet) SendTransaction(ctx context.Context, args callArgs) (_ common.Hash, err error) {
	defer ledger.Recover(&err)
	hash, err := w.send(ctx, args)
	if err == nil {
		w.awaitMined(ctx, hash)
	}
	return hash, err
}

func (w *devWallet) send(ctx context.Context, args callArgs) (common.Hash, error) {
	w.sending.Lock()
	defer w.sending.Unlock()
	signed, err := w.signAny(ctx, args)
	if err != nil {
		return common.Hash{}, err
	}
	return signed.Tx.Hash(), w.node.SendTransaction(signed.Tx)
}

// signAny completes and signs a transaction of a development or an impersonated
// account.
func (w *devWallet) signAny(ctx context.Context, args callArgs) (*filledTransaction, error) {
	from := args.from()
	if w.keys[from] != nil || !w.node.Impersonates(from) {
		return w.SignTransaction(ctx, args)
	}
	return w.fillAndSign(ctx, args, func(tx *types.Transaction) (*types.Transaction, error) {
		return w.node.SignAs(tx, from)
	})
}

// awaitMined waits, in developer mode, until a transaction is mined.
func (a *api) awaitMined(ctx context.Context, hash common.Hash) {
	if !a.cfg.Dev {
		return
	}
	// Other nodes for developers mine a transaction before the call that sends it
	// returns, and some clients depend on this. For example, ethers looks for the
	// receipt once, and then only at the next block, which an idle node never makes.
	ctx, cancel := context.WithTimeout(ctx, a.cfg.RequestTime/2)
	defer cancel()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for a.node.Automine() && ctx.Err() == nil {
		switch s := a.node.TransactionStatus(hash); {
		case s.Block != nil && a.mined(s.Block.NumberU64()):
			return
		case s.Block == nil && s.Pool != txpool.StatusPending && s.Pool != txpool.StatusLocked:
			return // the transaction waits for something else
		}
		select {
		case <-look.C:
		case <-ctx.Done():
		}
	}
}

// lookEvery is the pause between two checks of awaitMined.
const lookEvery = 10 * time.Millisecond

// SignTransaction implements eth_signTransaction. Unlike geth, it fills in missing arguments.
func (w *devWallet) SignTransaction(ctx context.Context, args callArgs) (_ *filledTransaction, err error) {
	defer ledger.Recover(&err)
	key := w.keys[args.from()]
	if key == nil {
		return nil, errUnknownAccount
	}
	return w.fillAndSign(ctx, args, func(tx *types.Transaction) (*types.Transaction, error) {
		return types.SignTx(tx, w.signer, key)
	})
}

// fillAndSign fills in the missing arguments of a transaction and signs it.
func (w *devWallet) fillAndSign(ctx context.Context, args callArgs, sign func(*types.Transaction) (*types.Transaction, error)) (*filledTransaction, error) {
	filled, err := w.FillTransaction(ctx, args)
	if err != nil {
		return nil, err
	}
	if filled.Tx, err = sign(filled.Tx); err != nil {
		return nil, err
	}
	filled.Raw, err = filled.Tx.MarshalBinary()
	return filled, err
}

// Sign implements eth_sign. It signs a message with Ethereum's prefix (EIP-191).
func (w *devWallet) Sign(account common.Address, message hexutil.Bytes) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	return w.signHash(account, accounts.TextHash(message))
}

// SignTypedData implements eth_signTypedData, which is eth_signTypedData_v4.
func (w *devWallet) SignTypedData(account common.Address, data typedData) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	hash, _, err := apitypes.TypedDataAndHash(apitypes.TypedData(data))
	if err != nil {
		return nil, invalidParams("%v", err)
	}
	return w.signHash(account, hash)
}

// SignTypedData_v4 implements eth_signTypedData_v4 (EIP-712). go-ethereum derives the
// name of the RPC method from the name of this function, hence the underscore.
func (w *devWallet) SignTypedData_v4(account common.Address, data typedData) (_ hexutil.Bytes, err error) {
	defer ledger.Recover(&err)
	return w.SignTypedData(account, data)
}

// signHash returns a signature in the form that contracts verify, with 27 or 28 as its
// last byte.
func (w *devWallet) signHash(account common.Address, hash []byte) (hexutil.Bytes, error) {
	key := w.keys[account]
	if key == nil {
		return nil, errUnknownAccount
	}
	signature, err := crypto.Sign(hash, key)
	if err != nil {
		return nil, err
	}
	signature[crypto.RecoveryIDOffset] += 27
	return signature, nil
}

// typedData is EIP-712 data, sent as a JSON object or as a string with one.
type typedData apitypes.TypedData

// UnmarshalJSON implements json.Unmarshaler.
func (d *typedData) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	return json.Unmarshal(raw, (*apitypes.TypedData)(d))
}

// devPersonal implements those methods of the namespace personal that development tools use.
type devPersonal struct{ wallet *devWallet }

// Sign implements personal_sign. It is eth_sign with the two parameters in reverse
// order. Some clients also send a password, which Sign ignores.
func (p *devPersonal) Sign(message hexutil.Bytes, account common.Address, _ *string) (hexutil.Bytes, error) {
	return p.wallet.Sign(account, message)
}

// EcRecover implements personal_ecRecover. It returns the account that signed a message.
func (p *devPersonal) EcRecover(message, signature hexutil.Bytes) (common.Address, error) {
	const legacy = 27
	if len(signature) != crypto.SignatureLength {
		return common.Address{}, invalidParams("the signature has %d bytes, want %d", len(signature), crypto.SignatureLength)
	}
	v := signature[crypto.RecoveryIDOffset]
	if v != legacy && v != legacy+1 {
		return common.Address{}, fmt.Errorf("invalid Ethereum signature (V is not 27 or 28)")
	}
	signature[crypto.RecoveryIDOffset] = v - legacy
	key, err := crypto.SigToPub(accounts.TextHash(message), signature)
	if err != nil {
		return common.Address{}, err
	}
	return crypto.PubkeyToAddress(*key), nil
}
