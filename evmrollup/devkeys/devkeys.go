package devkeys

import (
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/crypto"
)

// Mnemonic is the BIP-39 phrase of the development accounts. Anvil and Hardhat use the
// same phrase.
const Mnemonic = "test test test test test test test test test test test junk"

// Account is a development account, whose key is public.
type Account struct {
	// Address is the account's address.
	Address common.Address
	// Key is the account's private key.
	Key *ecdsa.PrivateKey
}

// hardened is the bit that marks a BIP-32 index as hardened. The child key is then
// derived from the private key.
const hardened = 1 << 31

// errUnusable is returned if a derived BIP-32 key is zero or not below the order of the
// curve. The probability of this is 2^-127.
var errUnusable = errors.New("devkeys: derived key is out of range")

// Derive returns the first n accounts of a mnemonic without a passphrase. Their paths are
// m/44'/60'/0'/0/i (BIP-44), as in Anvil and Hardhat.
func Derive(mnemonic string, n int) ([]Account, error) {
	seed, err := pbkdf2.Key(sha512.New, mnemonic, []byte("mnemonic"), 2048, 64)
	if err != nil {
		return nil, fmt.Errorf("devkeys: seed: %w", err)
	}
	branch := split(hmacSHA512([]byte("Bitcoin seed"), seed))
	for _, index := range []uint32{44 | hardened, 60 | hardened, 0 | hardened, 0} {
		if branch, err = branch.child(index); err != nil {
			return nil, err
		}
	}
	accounts := make([]Account, n)
	for i := range accounts {
		leaf, err := branch.child(uint32(i))
		if err != nil {
			return nil, err
		}
		key, err := crypto.ToECDSA(leaf.key)
		if err != nil {
			return nil, fmt.Errorf("%w: account %d", errUnusable, i)
		}
		accounts[i] = Account{Address: crypto.PubkeyToAddress(key.PublicKey), Key: key}
	}
	return accounts, nil
}

// extended is a BIP-32 extended private key.
type extended struct{ key, chainCode []byte }

func split(sum []byte) extended { return extended{key: sum[:32], chainCode: sum[32:]} }

// child derives the private child key with the given index (BIP-32, CKDpriv).
func (x extended) child(index uint32) (extended, error) {
	parent, err := crypto.ToECDSA(x.key)
	if err != nil {
		return extended{}, errUnusable
	}
	data := crypto.CompressPubkey(&parent.PublicKey)
	if index >= hardened {
		data = append([]byte{0}, x.key...)
	}
	next := split(hmacSHA512(x.chainCode, binary.BigEndian.AppendUint32(data, index)))
	order := crypto.S256().Params().N
	tweak := new(big.Int).SetBytes(next.key)
	if tweak.Cmp(order) >= 0 {
		return extended{}, errUnusable
	}
	sum := tweak.Add(tweak, parent.D)
	next.key = math.PaddedBigBytes(sum.Mod(sum, order), 32)
	return next, nil
}

func hmacSHA512(key, data []byte) []byte {
	mac := hmac.New(sha512.New, key)
	mac.Write(data)
	return mac.Sum(nil)
}
