package rpcapi

import (
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/crypto"
)

// netMethods implements the net namespace.
type netMethods struct{ *api }

// Version implements net_version. It returns the chain id in decimal.
func (a *netMethods) Version() string { return a.node.ChainConfig().ChainID.String() }

// Listening implements net_listening. It always returns true.
func (*netMethods) Listening() bool { return true }

// PeerCount implements net_peerCount. It returns 0: the node has no peers.
func (*netMethods) PeerCount() hexutil.Uint { return 0 }

// web3Methods implements the web3 namespace.
type web3Methods struct{ *api }

// ClientVersion implements web3_clientVersion. It returns [Config].Client, in developer mode with
// "anvil/" before it.
func (w *web3Methods) ClientVersion() string {
	if w.cfg.Dev {
		return devClient + w.cfg.Client
	}
	return w.cfg.Client
}

// Sha3 implements web3_sha3. It returns the Keccak-256 hash of data.
func (*web3Methods) Sha3(data hexutil.Bytes) hexutil.Bytes { return crypto.Keccak256(data) }
