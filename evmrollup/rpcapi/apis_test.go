package rpcapi

import (
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
)

// greeting is a service of a host.
type greeting struct{}

func (greeting) Hello() string           { return "hello" }
func (greeting) ChainId() hexutil.Uint64 { return 5 }

// A host registers the methods in its own server of go-ethereum, and replaces some.
func TestAPIsInAnotherServer(t *testing.T) {
	n, err := node.New(node.DefaultConfig(jamq.Tiny(), jamq.Tiny().SlotDuration, 1))
	require.NoError(t, err)
	cfg := DefaultConfig()
	cfg.API = []string{"eth", "net"}
	cfg.APIs = []rpc.API{{Namespace: "greet", Service: greeting{}}, {Namespace: "eth", Service: greeting{}}}
	all, err := APIs(n, cfg)
	require.NoError(t, err)
	server := rpc.NewServer()
	for _, a := range all {
		require.NoError(t, server.RegisterName(a.Namespace, a.Service))
	}
	c := rpc.DialInProc(server)
	defer c.Close()
	defer server.Stop()
	var number, text string
	require.NoError(t, c.Call(&number, "eth_blockNumber"))
	require.Equal(t, "0x0", number)
	require.NoError(t, c.Call(&number, "eth_chainId"))
	require.Equal(t, "0x5", number, "the host's method counts")
	require.NoError(t, c.Call(&text, "greet_hello"))
	require.Equal(t, "hello", text)
	for _, absent := range []string{"jam_queueStatus", "admin_nodeInfo"} {
		require.ErrorContains(t, c.Call(&text, absent), "does not exist")
	}
	cfg.GasCap = 0
	_, err = APIs(n, cfg)
	require.ErrorIs(t, err, ErrInvalidConfig)
}

// Methods of a host that need a token are not served without one.
func TestAuthenticatedAPIs(t *testing.T) {
	s := serve(t, func(_ *node.Config, api *Config) {
		api.Secret = make([]byte, secretSize)
		api.APIs = []rpc.API{{Namespace: "greet", Service: greeting{}}, {Namespace: "inner", Service: greeting{}, Authenticated: true}}
	})
	var text string
	stranger := s.dial(s.server.URL)
	require.NoError(t, stranger.Call(&text, "greet_hello"))
	require.ErrorContains(t, stranger.Call(&text, "inner_hello"), "does not exist")
	admin := s.dial(s.server.URL, rpc.WithHTTPAuth(guard.Auth(make([]byte, secretSize))))
	require.NoError(t, admin.Call(&text, "inner_hello"))
}
