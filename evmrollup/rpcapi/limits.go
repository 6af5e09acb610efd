package rpcapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/ratelimit"
	"github.com/jamq/jamq/txpool"
)

// limits applies the rate limits to each source and connection. It counts the bytes of
// every request, and the calls that cost more than a lookup. A connection is identified
// by the client's address and port. A nil *limits does not limit anything.
type limits struct {
	limiter  *ratelimit.Limiter
	loopback bool // limit loopback addresses too
}

// sourceOf returns the source to which a remote address belongs, or false if the
// address is not limited. For IPv6, the source is the first 64 bits of the address,
// because one subscriber controls 2^64 addresses.
func (l *limits) sourceOf(remote string) (string, bool) {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote, true
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return host, true
	}
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() && !l.loopback {
		return "", false
	}
	if addr.Is6() {
		prefix, _ := addr.Prefix(64) // 64 is in range
		return prefix.String(), true
	}
	return addr.String(), true
}

// source returns the source of a call, or "" if the call is not limited.
func (l *limits) source(ctx context.Context) string {
	if l == nil {
		return ""
	}
	source, _ := l.sourceOf(rpc.PeerInfoFromContext(ctx).RemoteAddr)
	return source
}

// call counts one call and size bytes against the limits of the client's source, of its
// connection, and of the method. If a limit is exceeded, the error has the code
// CodeLimited.
func (l *limits) call(ctx context.Context, method string, size int) error {
	source := l.source(ctx)
	if source == "" {
		return nil
	}
	call := ratelimit.Call{Source: source, Connection: rpc.PeerInfoFromContext(ctx).RemoteAddr, Method: method, Txs: 1, Bytes: size}
	if err := l.limiter.Allow(call); err != nil {
		return codedError{err, CodeLimited}
	}
	return nil
}

// strike counts an offence of the source that sent a transaction, if the error of that
// transaction shows one: the transaction was underpriced, or no honest client would
// have sent it.
func (l *limits) strike(ctx context.Context, err error) {
	source := l.source(ctx)
	switch {
	case source == "":
	case txpool.Spam(err):
		l.limiter.Strike(source, ratelimit.Invalid)
	case txpool.Underpriced(err):
		l.limiter.Strike(source, ratelimit.Underpriced)
	}
}

// http refuses the requests of sources that exceed their byte rate. It reads
// the whole body first, because the length of the body is certain only then.
func (l *limits) http(maxBody int, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source, limited := l.sourceOf(r.RemoteAddr)
		if !limited {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, int64(maxBody)))
		var tooLarge *http.MaxBytesError
		switch {
		case errors.As(err, &tooLarge):
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		case err != nil:
			http.Error(w, "the request body cannot be read", http.StatusBadRequest)
			return
		}
		if err := l.limiter.Allow(ratelimit.Call{Source: source, Connection: r.RemoteAddr, Bytes: len(body)}); err != nil {
			refuse(w, err)
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// refuse answers with status 429, a Retry-After header and a JSON-RPC error
// with code CodeLimited. ethers and viem read all three.
func refuse(w http.ResponseWriter, err error) {
	var limit *ratelimit.Error
	if errors.As(err, &limit) && limit.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(limit.RetryAfter.Seconds()))))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusTooManyRequests)
	_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":null,"error":{"code":`+strconv.Itoa(CodeLimited)+`,"message":`+strconv.Quote(err.Error())+`}}`)
}

// webSocket makes the node read a client's WebSocket no faster than the client's byte
// rate allows. It slows the client down because the node can no longer answer with
// status 429 after the handshake.
func (l *limits) webSocket(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source, limited := l.sourceOf(r.RemoteAddr)
		if _, banned := l.limiter.Banned(source); limited && banned {
			refuse(w, l.limiter.Allow(ratelimit.Call{Source: source}))
			return
		}
		if limited {
			w = slowSocket{w, l.limiter, ratelimit.Call{Source: source, Connection: r.RemoteAddr}}
		}
		next.ServeHTTP(w, r)
	})
}

// slowSocket is a ResponseWriter for a WebSocket. It limits how fast the node reads the
// connection.
type slowSocket struct {
	http.ResponseWriter
	limiter *ratelimit.Limiter
	from    ratelimit.Call // source and connection
}

// Hijack implements http.Hijacker.
func (w slowSocket) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	return &slowConn{Conn: conn, limiter: w.limiter, from: w.from, closed: make(chan struct{})}, buffered, nil
}

// slowConn is a connection whose Read waits until the limiter allows the bytes.
type slowConn struct {
	net.Conn
	limiter *ratelimit.Limiter
	from    ratelimit.Call // source and connection
	once    sync.Once
	closed  chan struct{}
}

// Read implements net.Conn. If the source is banned, Read returns an error, which
// closes the connection.
func (c *slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	read := c.from
	read.Bytes = n
	for err == nil {
		var limit *ratelimit.Error
		if !errors.As(c.limiter.Allow(read), &limit) {
			break
		}
		if limit.RetryAfter < 0 || errors.Is(limit, ratelimit.ErrBanned) {
			return 0, limit
		}
		timer := time.NewTimer(limit.RetryAfter)
		select {
		case <-timer.C:
		case <-c.closed:
			timer.Stop()
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Close implements net.Conn. It also makes the limiter forget the connection.
func (c *slowConn) Close() error {
	c.once.Do(func() {
		close(c.closed)
		c.limiter.Forget(c.from.Source, c.from.Connection)
	})
	return c.Conn.Close()
}
