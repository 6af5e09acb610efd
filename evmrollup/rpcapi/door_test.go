package rpcapi

import (
	"context"
	"encoding/hex"
	"errors"
	"flag"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	gethnode "github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/golang-jwt/jwt/v4"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/wait"
	"github.com/jamq/jamq/ratelimit"
	"github.com/jamq/jamq/txpool"
)

const askChainID = `{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}`

// ask sends a request and returns the answer with its body.
func (s *served) ask(method, body string, header map[string]string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL, strings.NewReader(body))
	require.NoError(s.t, err)
	r.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		r.Header.Set(name, value)
		if name == "Host" {
			r.Host = value
		}
	}
	response, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	require.NoError(s.t, err)
	return response, string(raw)
}

// Access by origin and by host name follows geth's flags.
func TestOriginsAndHosts(t *testing.T) {
	const page = "https://wallet.example"
	for name, x := range map[string]struct {
		flags   []string
		header  map[string]string
		status  int    // over HTTP, and of the page
		allowed string // origin
		socket  bool
	}{
		"default":        {nil, nil, 200, "", true},
		"by name":        {nil, map[string]string{"Host": "localhost:8545"}, 200, "", true},
		"rebound name":   {nil, map[string]string{"Host": "evil.example"}, 403, "", true},
		"named":          {[]string{"-http.vhosts", "a.example,b.example"}, map[string]string{"Host": "B.example:80"}, 200, "", true},
		"any name":       {[]string{"-http.vhosts", "*"}, map[string]string{"Host": "evil.example"}, 200, "", true},
		"foreign origin": {nil, map[string]string{"Origin": page}, 200, "", false},
		"allowed origin": {[]string{"-http.corsdomain", page, "-ws.origins", page}, map[string]string{"Origin": page}, 200, page, true},
		"other origin":   {[]string{"-http.corsdomain", page, "-ws.origins", page}, map[string]string{"Origin": "https://evil.example"}, 200, "", false},
		"any origin":     {[]string{"-http.corsdomain", "*", "-ws.origins", "*"}, map[string]string{"Origin": page}, 200, "*", true},
		"own origin":     {nil, map[string]string{"Origin": "http://localhost"}, 200, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(_ *node.Config, c *Config) {
				fs := flag.NewFlagSet("", flag.ContinueOnError)
				c.RegisterFlags(fs)
				require.NoError(t, fs.Parse(x.flags))
			})
			response, body := s.ask(http.MethodPost, askChainID, x.header)
			require.Equal(t, x.status, response.StatusCode, body)
			require.Equal(t, x.allowed, response.Header.Get("Access-Control-Allow-Origin"))
			for _, look := range []string{http.MethodGet, http.MethodHead} {
				response, body = s.ask(look, "", x.header)
				require.Equal(t, x.status, response.StatusCode, body)
			}
			if x.allowed != "" {
				preflight := map[string]string{"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type", "Origin": page}
				response, _ = s.ask(http.MethodOptions, "", preflight)
				require.Equal(t, x.allowed, response.Header.Get("Access-Control-Allow-Origin"))
			}
			origin := x.header["Origin"]
			c, err := rpc.DialWebsocket(t.Context(), s.ws(), origin)
			require.Equal(t, x.socket, err == nil, "%v", err)
			if err == nil {
				c.Close()
			}
		})
	}
}

// token returns the authorization that brings a token.
func token(t *testing.T, secret []byte, method jwt.SigningMethod, claims jwt.MapClaims) string {
	t.Helper()
	var key any = secret
	if method == jwt.SigningMethodNone {
		key = jwt.UnsafeAllowNoneSignatureType
	}
	text, err := jwt.NewWithClaims(method, claims).SignedString(key)
	require.NoError(t, err)
	return "Bearer " + text
}

// A client with a valid token is an administrator, over both transports. A client
// with an invalid token gets no answer. All other clients are not administrators.
func TestTokens(t *testing.T) {
	file := filepath.Join(t.TempDir(), "jwt.hex")
	made, err := ReadSecret(file)
	require.NoError(t, err)
	again, err := ReadSecret(file)
	require.NoError(t, err)
	require.Equal(t, made, again)
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	var secret [32]byte
	copy(secret[:], made)

	s := serve(t, func(_ *node.Config, c *Config) {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		c.RegisterFlags(fs)
		require.NoError(t, fs.Parse([]string{"-authrpc.jwtsecret", file, "-http.api", "eth,net"}))
		c.Limits.Source.Txs, c.Limits.Source.TxBurst, c.LimitLoopback = 1, 1, true
	})
	now := time.Now()
	for name, x := range map[string]struct {
		authorization string
		status        int
	}{
		"none":       {"", 200},
		"good":       {token(t, made, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix()}), 200},
		"stale":      {token(t, made, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Add(-2 * time.Minute).Unix()}), 401},
		"future":     {token(t, made, jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Add(2 * time.Minute).Unix()}), 401},
		"no time":    {token(t, made, jwt.SigningMethodHS256, jwt.MapClaims{}), 401},
		"other key":  {token(t, make([]byte, 32), jwt.SigningMethodHS256, jwt.MapClaims{"iat": now.Unix()}), 401},
		"other hash": {token(t, made, jwt.SigningMethodHS512, jwt.MapClaims{"iat": now.Unix()}), 401},
		"unsigned":   {token(t, made, jwt.SigningMethodNone, jwt.MapClaims{"iat": now.Unix()}), 401},
		"no token":   {"Basic " + hex.EncodeToString(made), 401},
	} {
		t.Run(name, func(t *testing.T) {
			header := map[string]string{}
			if x.authorization != "" {
				header["Authorization"] = x.authorization
			}
			response, body := s.ask(http.MethodPost, askChainID, header)
			require.Equal(t, x.status, response.StatusCode, body)
		})
	}

	for _, url := range []string{s.server.URL, s.ws()} {
		stranger := s.dial(url)
		for _, method := range []string{"admin_nodeInfo", "debug_traceTransaction", "txpool_status"} {
			require.Equal(t, -32601, code(stranger.CallContext(t.Context(), new(any), method)), method)
		}
		admin := s.dial(url, rpc.WithHTTPAuth(gethnode.NewJWTAuth(secret)))
		var about nodeInfo
		require.NoError(t, admin.CallContext(t.Context(), &about, "admin_nodeInfo"))
		require.Equal(t, []string{"eth", "net"}, about.Public)
		require.NoError(t, admin.CallContext(t.Context(), new(any), "txpool_status"))
		for range 5 { // admins are not limited
			require.NoError(t, admin.CallContext(t.Context(), new(any), "eth_call", map[string]any{}))
		}
		_, err := rpc.DialOptions(t.Context(), s.ws(), rpc.WithHTTPAuth(gethnode.NewJWTAuth([32]byte{})))
		require.ErrorContains(t, err, "401")
	}

	// The methods of administrators.
	admin := s.dial(s.server.URL, rpc.WithHTTPAuth(gethnode.NewJWTAuth(secret)))
	s.nonces[3] = 1 // behind a gap, so that it stays
	waiting := s.send(3, &common.Address{1}, 1, nil)
	var done bool
	require.NoError(t, admin.CallContext(t.Context(), &done, "admin_removeTransaction", waiting.Hash()))
	require.True(t, done)
	require.ErrorContains(t, admin.CallContext(t.Context(), &done, "admin_removeTransaction", waiting.Hash()), txpool.ErrNotFound.Error())
	require.NoError(t, admin.CallContext(t.Context(), &done, "admin_resume"))
	require.True(t, done)
	require.ErrorContains(t, admin.CallContext(t.Context(), &done, "admin_giveUp", "0x3e8", "why"), bundlequeue.ErrWrongNumber.Error())
	_, pooled := s.node.Pooled(waiting.Hash())
	require.False(t, pooled)
}

func TestReadSecret(t *testing.T) {
	none, err := ReadSecret("")
	require.NoError(t, err)
	require.Nil(t, none)
	file := filepath.Join(t.TempDir(), "secret")
	for _, bad := range []string{"", "hello", "0x1234", strings.Repeat("ab", 33)} {
		require.NoError(t, os.WriteFile(file, []byte(bad), 0o600))
		_, err := ReadSecret(file)
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, "want 32 bytes in hex")
	}
	require.NoError(t, os.WriteFile(file, []byte(" "+strings.Repeat("ab", 32)+"\n"), 0o600))
	secret, err := ReadSecret(file)
	require.NoError(t, err)
	require.Len(t, secret, 32)
	_, err = ReadSecret(filepath.Join(file, "no", "folder"))
	require.Error(t, err)
}

// Requests, batches and answers that are too large are refused, and the node goes on.
func TestSizes(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) { c.BatchItems, c.BatchBytes, c.BodyBytes = 3, 2500, 10_000 })
	response, body := s.ask(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"web3_sha3","params":["0x`+strings.Repeat("00", 6000)+`"]}`, nil)
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode, body)
	batch := func(c *rpc.Client, n int, method string, args ...any) []rpc.BatchElem {
		elems := make([]rpc.BatchElem, n)
		for i := range elems {
			elems[i] = rpc.BatchElem{Method: method, Args: args, Result: new(any)}
		}
		require.NoError(t, c.BatchCallContext(t.Context(), elems))
		return elems
	}
	for _, url := range []string{s.server.URL, s.ws()} {
		c := s.dial(url)
		for _, e := range batch(c, 3, "eth_chainId") {
			require.NoError(t, e.Error)
		}
		require.ErrorContains(t, batch(c, 4, "eth_chainId")[0].Error, "batch too large")
		elems := batch(c, 3, "eth_getBlockByNumber", "earliest", true)
		require.NoError(t, elems[0].Error)
		require.ErrorContains(t, elems[2].Error, "response too large")
		require.Equal(t, -32003, code(elems[2].Error))
	}
	socket := s.dial(s.ws())
	closed(t, socket, "web3_sha3", hexutil.Bytes(make([]byte, 6000)))
	response, _ = s.ask(http.MethodPost, askChainID, nil)
	require.Equal(t, 200, response.StatusCode)
}

// A source above its rate receives the time to wait. A source that sends garbage
// is banned until an administrator pardons it. Other sources are not affected.
func TestRateLimits(t *testing.T) {
	secret := [32]byte{1}
	now := time.Unix(1000, 0)
	s := serve(t, func(_ *node.Config, c *Config) {
		c.LimitLoopback, c.BodyBytes, c.Secret = true, 1000, secret[:]
		c.Limits.Now, c.Limits.Jitter = func() time.Time { return now }, 0
		c.Limits.Source = ratelimit.Rate{Txs: 1, TxBurst: 4, Bytes: 1000, ByteBurst: 3000}
		c.Limits.Methods = map[string]ratelimit.Rate{"debug": {Txs: 2}}
		c.Limits.Strikes = 3
	})
	c, admin := s.dial(s.server.URL), s.dial(s.server.URL, rpc.WithHTTPAuth(gethnode.NewJWTAuth(secret)))
	expensive := func() error { return c.CallContext(t.Context(), new(any), "eth_call", map[string]any{}) }
	for range 2 {
		require.ErrorContains(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", common.Hash{}), "transaction not found")
	}
	require.ErrorContains(t, c.CallContext(t.Context(), new(any), "debug_traceTransaction", common.Hash{}), "rate limit exceeded: method, try again in 500ms")
	for range 2 {
		require.NoError(t, expensive())
	}
	err := expensive()
	require.ErrorContains(t, err, "rate limit exceeded: source, try again in 1s")
	require.Equal(t, CodeLimited, code(err))
	require.NoError(t, c.CallContext(t.Context(), new(any), "eth_chainId"), "a look costs nothing")
	now = now.Add(time.Second)
	require.NoError(t, expensive())

	// Bytes are counted at the door.
	var response *http.Response
	var body string
	for range 4 {
		response, body = s.ask(http.MethodPost, askChainID+strings.Repeat(" ", 900), nil)
	}
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Equal(t, "1", response.Header.Get("Retry-After"))
	require.Contains(t, body, `"code":-32005,"message":"rate limit exceeded: source`)
	now = now.Add(time.Minute)
	response, _ = s.ask(http.MethodPost, strings.Repeat(" ", 1001), nil)
	require.Equal(t, http.StatusRequestEntityTooLarge, response.StatusCode)

	// Transactions that no honest client sends. A nonce that is too low is none of them.
	tooPoor := s.sign(0, &common.Address{1}, 0, nil)
	cheap, err := types.SignNewTx(s.node.Accounts()[1].Key, types.LatestSigner(s.node.ChainConfig()), &types.DynamicFeeTx{
		ChainID: s.node.ChainConfig().ChainID, GasTipCap: big.NewInt(params.GWei), GasFeeCap: big.NewInt(10 * params.GWei), Gas: 20_999, To: &common.Address{1},
	})
	require.NoError(t, err)
	send := func(tx *types.Transaction) error {
		now = now.Add(time.Second)
		raw, err := tx.MarshalBinary()
		require.NoError(t, err)
		return c.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
	}
	require.NoError(t, send(tooPoor))
	for range 3 {
		require.ErrorContains(t, send(tooPoor), "already known")
	}
	for range 3 {
		require.ErrorContains(t, send(cheap), "intrinsic gas too low")
	}
	response, body = s.ask(http.MethodPost, askChainID, nil)
	require.Equal(t, http.StatusTooManyRequests, response.StatusCode)
	require.Contains(t, body, "banned: ban, try again in")
	_, err = rpc.DialOptions(t.Context(), s.ws())
	require.ErrorContains(t, err, "429")
	var until *hexutil.Uint64
	require.NoError(t, admin.CallContext(t.Context(), &until, "admin_bannedUntil", "127.0.0.1"))
	require.EqualValues(t, now.Add(time.Minute).Unix(), *until)
	require.NoError(t, admin.CallContext(t.Context(), new(bool), "admin_pardon", "127.0.0.1"))
	require.NoError(t, admin.CallContext(t.Context(), &until, "admin_bannedUntil", "127.0.0.1"))
	require.Nil(t, until)
	require.NoError(t, expensive())
}

// Each connection has its own limits, over HTTP and WebSocket. One that uses up
// its limit leaves the rest of the source's limit to the others.
func TestConnectionLimits(t *testing.T) {
	now := time.Unix(1000, 0)
	s := serve(t, func(_ *node.Config, c *Config) {
		c.LimitLoopback, c.BodyBytes = true, 1000
		c.Limits.Now, c.Limits.Jitter = func() time.Time { return now }, 0
		c.Limits.Source = ratelimit.Rate{Txs: 1, TxBurst: 8, Bytes: 1000, ByteBurst: 5000}
		c.Limits.Connection = ratelimit.Rate{Txs: 0.5, TxBurst: 2, Bytes: 1000, ByteBurst: 2000}
	})
	expensive := func(c *rpc.Client) error { return c.CallContext(t.Context(), new(any), "eth_call", map[string]any{}) }
	web := func() *rpc.Client { // a client with one connection
		transport := &http.Transport{MaxConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		return s.dial(s.server.URL, rpc.WithHTTPClient(&http.Client{Transport: transport}))
	}
	for name, connect := range map[string]func() *rpc.Client{"HTTP": web, "WebSocket": func() *rpc.Client { return s.dial(s.ws()) }} {
		t.Run(name, func(t *testing.T) {
			now = now.Add(time.Minute)
			greedy, modest := connect(), connect()
			for range 2 {
				require.NoError(t, expensive(greedy))
			}
			for range 5 {
				err := expensive(greedy)
				require.ErrorContains(t, err, "rate limit exceeded: connection, try again in 2s")
				require.Equal(t, CodeLimited, code(err))
			}
			require.NoError(t, expensive(modest))
			now = now.Add(2 * time.Second)
			require.NoError(t, expensive(greedy))
		})
	}

	// Bytes are limited for each connection too.
	now = now.Add(time.Minute)
	c := web()
	var err error
	for range 3 {
		err = c.CallContext(t.Context(), new(any), "web3_sha3", hexutil.Bytes(make([]byte, 400)))
	}
	require.ErrorContains(t, err, "429")
	require.ErrorContains(t, err, "rate limit exceeded: connection")
	require.NoError(t, web().CallContext(t.Context(), new(any), "eth_chainId"))
}

// A WebSocket that is closed is forgotten: another connection from the same
// address and port has a full limit.
func TestClosedSocketIsForgotten(t *testing.T) {
	rates := DefaultConfig().Limits
	rates.Connection = ratelimit.Rate{Bytes: 1, ByteBurst: 10}
	limiter, err := ratelimit.New(rates)
	require.NoError(t, err)
	from := ratelimit.Call{Source: "192.0.2.7", Connection: "192.0.2.7:80"}
	client, server := net.Pipe()
	defer client.Close()
	socket := &slowConn{Conn: server, limiter: limiter, from: from, closed: make(chan struct{})}
	go func() { _, _ = client.Write(make([]byte, 10)) }()
	n, err := socket.Read(make([]byte, 100))
	require.NoError(t, err)
	require.Equal(t, 10, n)
	from.Bytes = 10
	require.ErrorContains(t, limiter.Allow(from), "connection")
	require.NoError(t, socket.Close())
	require.NoError(t, limiter.Allow(from))
	_ = socket.Close() // again: the limiter forgets it once only
	require.ErrorContains(t, limiter.Allow(from), "connection")
}

// While the pool is nearly full, sends are refused at random. A client that waits
// is admitted, and other calls are not affected.
func TestSurge(t *testing.T) {
	now := time.Unix(1000, 0)
	s := serve(t, func(n *node.Config, c *Config) {
		*n = node.DefaultConfig(jamq.Tiny(), time.Hour, 1) // no block within the test
		n.MaxTxsPerBundle, n.MaxPool = 100, 4
		c.LimitLoopback = true
		c.Limits.Now, c.Limits.Rand = func() time.Time { return now }, func() float64 { return 0 }
		c.Limits.Surge.Threshold = 500
	})
	for name, url := range map[string]string{"HTTP": s.server.URL, "WebSocket": s.ws()} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(url)
			send := func() error {
				raw, err := s.sign(0, &common.Address{1}, 0, nil).MarshalBinary()
				require.NoError(t, err)
				return c.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
			}
			for s.node.PoolPressure() <= 0.5 {
				require.NoError(t, send())
			}
			require.Equal(t, 0.75, s.node.PoolPressure())
			err := send()
			require.ErrorContains(t, err, "node is busy: surge, try again in 1s")
			require.Equal(t, CodeLimited, code(err))
			require.NoError(t, c.CallContext(t.Context(), new(any), "eth_call", map[string]any{}))
			now = now.Add(time.Second)
			s.nonces[0]--
			require.NoError(t, send())
			require.Equal(t, 1.0, s.node.PoolPressure())
			pending, _ := s.node.PoolContent()
			for _, tx := range slices.Backward(pending[s.node.Accounts()[0].Address]) {
				require.NoError(t, s.node.RemovePooled(tx.Hash()))
			}
			require.Zero(t, s.node.PoolPressure())
			s.nonces[0] = 0
		})
	}
}

// closed waits until a call fails because the connection is closed. go-ethereum's client
// never ends a call that it has just written when it notices the end of the connection, so
// a call without an answer is repeated.
func closed(t *testing.T, c *rpc.Client, method string, args ...any) {
	t.Helper()
	wait.Until(t, func() bool {
		const unanswered = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), unanswered)
		defer cancel()
		err := c.CallContext(ctx, new(any), method, args...)
		return err != nil && !errors.Is(err, context.DeadlineExceeded)
	}, "the connection is closed")
}

// A source that sends underpriced replacements again and again is banned. A few
// are free.
func TestUnderpriced(t *testing.T) {
	now := time.Unix(1000, 0)
	s := serve(t, func(_ *node.Config, c *Config) {
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		c.RegisterFlags(fs)
		require.NoError(t, fs.Parse([]string{"-rpc.underpriced", "4", "-rpc.ratelimit.loopback"}))
		c.Limits.Now = func() time.Time { return now }
		c.Limits.Strikes = 3
	})
	s.nonces[0] = 1 // behind a gap, so that it stays
	s.send(0, &common.Address{1}, 0, nil)
	s.nonces[0] = 1
	raw, err := s.sign(0, &common.Address{2}, 0, nil).MarshalBinary() // at the same price
	require.NoError(t, err)
	send := func(c *rpc.Client) error {
		return c.CallContext(t.Context(), new(any), "eth_sendRawTransaction", hexutil.Bytes(raw))
	}
	c := s.dial(s.server.URL)
	for range 4 + 3 {
		require.ErrorContains(t, send(c), "replacement transaction underpriced")
	}
	require.ErrorContains(t, send(c), "banned: ban, try again in 1m0s")

	// Later the free ones are back, over a WebSocket too.
	now = now.Add(10 * time.Minute)
	socket := s.dial(s.ws())
	for range 4 {
		require.ErrorContains(t, send(socket), "replacement transaction underpriced")
	}
	require.NoError(t, socket.CallContext(t.Context(), new(any), "eth_call", map[string]any{}))
	for range 3 {
		require.ErrorContains(t, send(socket), "replacement transaction underpriced")
	}
	closed(t, socket, "eth_sendRawTransaction", hexutil.Bytes(raw))
	_, err = rpc.DialOptions(t.Context(), s.ws())
	require.ErrorContains(t, err, "429")
}

// A low rate has a low burst: otherwise the limit would have no effect for
// minutes.
func TestRateFlag(t *testing.T) {
	for text, want := range map[string]ratelimit.Rate{"5": {Txs: 5, TxBurst: 25}, "0.1": {Txs: 0.1, TxBurst: 1}, "0": {}} {
		c := DefaultConfig()
		fs := flag.NewFlagSet("", flag.ContinueOnError)
		c.RegisterFlags(fs)
		require.NoError(t, fs.Parse([]string{"-rpc.ratelimit", text, "-rpc.ratelimit.connection", text, "-rpc.ratelimit.jitter", "7", "-rpc.surge", "0.25", "-rpc.surge.refusal", "0.5"}))
		require.NoError(t, c.Validate())
		require.Equal(t, []int{7, 250, 500}, []int{c.Limits.Jitter, c.Limits.Surge.Threshold, c.Limits.Surge.MaxRefusal})
		for _, have := range []ratelimit.Rate{c.Limits.Source, c.Limits.Connection} {
			require.Equal(t, want.Txs, have.Txs)
			require.Equal(t, want.TxBurst, have.TxBurst)
		}
	}
	for _, name := range []string{"-rpc.ratelimit", "-rpc.ratelimit.connection", "-rpc.ratelimit.jitter", "-rpc.surge", "-rpc.surge.refusal", "-rpc.underpriced"} {
		for _, text := range []string{"-1", "NaN", "many"} {
			c := DefaultConfig()
			fs := flag.NewFlagSet("", flag.ContinueOnError)
			fs.SetOutput(io.Discard)
			c.RegisterFlags(fs)
			err := fs.Parse([]string{name, text})
			if err == nil {
				err = c.Validate()
			}
			require.Error(t, err, "%s %s", name, text)
		}
	}
}

// A WebSocket is read no faster than its source may send.
func TestSlowSocket(t *testing.T) {
	s := serve(t, func(_ *node.Config, c *Config) {
		c.LimitLoopback, c.BodyBytes = true, 20_000
		c.Limits.Source = ratelimit.Rate{Bytes: 40_000, ByteBurst: 20_000}
	})
	socket := s.dial(s.ws())
	wait.AtLeast(t, 600*time.Millisecond, func() {
		for range 6 {
			var hash common.Hash
			require.NoError(t, socket.CallContext(t.Context(), &hash, "web3_sha3", hexutil.Bytes(make([]byte, 4000))))
		}
	}, "48 kB, and 20 at once")
	// One that waits lets go when the node stops.
	go func() {
		_ = socket.CallContext(t.Context(), new(any), "web3_sha3", hexutil.Bytes(make([]byte, 9000)))
	}()
}

// A source is an IPv4 address in any notation, or the first 64 bits of an IPv6
// address.
func TestSources(t *testing.T) {
	l := &limits{}
	for remote, want := range map[string]string{
		"192.0.2.7:80": "192.0.2.7", "[::ffff:192.0.2.7]:80": "192.0.2.7", "[2001:db8:1:2:3:4:5:6]:80": "2001:db8:1:2::/64", "[fe80::1%eth0]:80": "fe80::/64",
		"127.0.0.1:80": "", "[::1]:80": "", "[::ffff:127.1.2.3]:80": "", "pipe": "pipe",
	} {
		source, limited := l.sourceOf(remote)
		require.Equal(t, want, source, remote)
		require.Equal(t, want != "", limited, remote)
	}
	l.loopback = true
	source, limited := l.sourceOf("127.0.0.1:80")
	require.True(t, limited)
	require.Equal(t, "127.0.0.1", source)
}

func TestConfig(t *testing.T) {
	for field, change := range map[string]func(*Config){
		"API":              func(c *Config) { c.API = []string{"eth", "admin"} },
		"Secret":           func(c *Config) { c.Secret = []byte("short") },
		"BatchItems":       func(c *Config) { c.BatchItems = 0 },
		"BatchBytes":       func(c *Config) { c.BatchBytes = -1 },
		"BodyBytes":        func(c *Config) { c.BodyBytes = 0 },
		"RequestTime":      func(c *Config) { c.RequestTime = 0 },
		"GasCap":           func(c *Config) { c.GasCap = 0 },
		"CallTime":         func(c *Config) { c.CallTime = -time.Second },
		"TraceRange":       func(c *Config) { c.TraceRange = 0 },
		"MaxLogs":          func(c *Config) { c.MaxLogs = 0 },
		"LogTerms":         func(c *Config) { c.LogTerms = 0 },
		"LogRange":         func(c *Config) { c.LogRange = 0 },
		"FilterTime":       func(c *Config) { c.FilterTime = 0 },
		"MaxSubscriptions": func(c *Config) { c.MaxSubscriptions = 0 },
		"Limits.Source":    func(c *Config) { c.Limits.Source.ByteBurst = 1 },
		"Limits.Conn":      func(c *Config) { c.Limits.Connection.ByteBurst = 1 },
		"Strikes":          func(c *Config) { c.Limits.Strikes = 0 },
	} {
		c := DefaultConfig()
		change(&c)
		err := c.Validate()
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, field)
	}
}

// A client that sends its request slowly is let go, and so is one whose answer takes too long. On a
// slow machine the second one, too, may send its request slowly.
func TestRequestTime(t *testing.T) {
	const endlessly = 1000 * time.Hour
	s := serve(t, func(_ *node.Config, c *Config) {
		c.RequestTime, c.CallTime, c.GasCap = 200*time.Millisecond, endlessly, 1<<60
	})
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")
	require.NoError(t, err)
	answer, err := io.ReadAll(conn)
	require.NoError(t, err, "it is closed from the other side")
	require.Contains(t, string(answer), "read timeout")

	endless := map[string]any{"data": "0x5b5f56"}
	err = s.dial(s.server.URL).CallContext(t.Context(), new(any), "eth_call", endless)
	require.Error(t, err)
	require.Regexp(t, "request timed out|read timeout", err.Error())
}
