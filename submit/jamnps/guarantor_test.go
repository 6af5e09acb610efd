package jamnps

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"math/big"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/canonical/statetrie"
)

// guarantor is a small node of the network, written from the protocol's description. It shares no
// code with the client but quic-go.
type guarantor struct {
	t     *testing.T
	world *world
	key   ed25519.PrivateKey
	addr  string

	mu        sync.Mutex
	transport *quic.Transport
	socket    net.PacketConn
	conns     map[*quic.Conn]struct{}
	ups       map[*quic.Stream]chan []byte // messages to send
	order     []*quic.Stream               // of ups, oldest first
	names     []string                     // of the clients
	kinds     map[byte]int
	refuse    map[byte]bool
	hold      map[byte]chan struct{}
	garbage   map[byte][]byte
	taken     [][][]byte // the messages of submissions
	manners   manners
	lie       func(value []byte) []byte
	// justifications are those that CE 130 returns, by block.
	justifications map[jamq.HeaderHash][]byte
	running        sync.WaitGroup
}

// dnsName is the name of a key: its bits from the lowest of the first byte on, five to a digit.
func dnsName(key ed25519.PublicKey) string {
	name := []byte{'e'}
	for bit := 0; bit < 256; bit += 5 {
		digit := 0
		for i := 0; i < 5 && bit+i < 256; i++ {
			digit |= int(key[(bit+i)/8]>>((bit+i)%8)&1) << i
		}
		name = append(name, "abcdefghijklmnopqrstuvwxyz234567"[digit])
	}
	return string(name)
}

func startGuarantor(t *testing.T, w *world, name byte) *guarantor {
	t.Helper()
	return startPeer(t, w, name, manners{})
}

// startPeer starts a guarantor that differs from the text of JAMNP-S.
func startPeer(t *testing.T, w *world, name byte, m manners) *guarantor {
	t.Helper()
	g := &guarantor{
		t: t, world: w, key: privateKey(name), manners: m,
		kinds: map[byte]int{}, refuse: map[byte]bool{}, hold: map[byte]chan struct{}{}, garbage: map[byte][]byte{},
	}
	g.up()
	w.mu.Lock()
	w.grown = append(w.grown, func(b *worldBlock) { g.announce(b, w.finalized) })
	w.mu.Unlock()
	t.Cleanup(g.down)
	return g
}

func (g *guarantor) peer() Peer { return Peer{Key: g.key.Public().(ed25519.PublicKey), Addr: g.addr} }

// up opens the port.
func (g *guarantor) up() {
	g.t.Helper()
	socket, err := g.world.listen(g.addr)
	require.NoError(g.t, err)
	g.addr = socket.LocalAddr().String()
	template := &x509.Certificate{SerialNumber: big.NewInt(7), DNSNames: []string{dnsName(g.key.Public().(ed25519.PublicKey))}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, g.key.Public(), g.key)
	require.NoError(g.t, err)
	transport := &quic.Transport{Conn: socket}
	listener, err := transport.Listen(&tls.Config{
		MinVersion: tls.VersionTLS13, ClientAuth: tls.RequireAnyClientCert,
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: g.key}},
		NextProtos:   g.manners.protocols(g.world.genesis.hash[:4]),
	}, &quic.Config{MaxIdleTimeout: time.Hour})
	require.NoError(g.t, err)
	g.mu.Lock()
	g.transport, g.socket, g.conns, g.ups, g.order = transport, socket, map[*quic.Conn]struct{}{}, map[*quic.Stream]chan []byte{}, nil
	g.mu.Unlock()
	g.running.Go(func() {
		for {
			conn, err := listener.Accept(context.Background())
			if err != nil {
				return
			}
			g.running.Go(func() { g.serve(conn) })
		}
	})
}

// down closes everything, as the end of the process does.
func (g *guarantor) down() {
	g.cut()
	g.mu.Lock()
	transport, socket := g.transport, g.socket
	g.mu.Unlock()
	_ = transport.Close()
	_ = socket.Close()
	g.running.Wait()
}

// cut breaks all connections.
func (g *guarantor) cut() {
	g.mu.Lock()
	conns := slices.Collect(maps.Keys(g.conns))
	g.mu.Unlock()
	for _, conn := range conns {
		_ = conn.CloseWithError(1, "cut")
	}
}

func (g *guarantor) set(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// submissions returns the messages of the accepted packages.
func (g *guarantor) submissions() [][][]byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.taken)
}

func (g *guarantor) clients() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

func (g *guarantor) count(kind byte) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.kinds[kind]
}

func (g *guarantor) serve(conn *quic.Conn) {
	certificates := conn.ConnectionState().TLS.PeerCertificates
	key, ok := certificates[0].PublicKey.(ed25519.PublicKey)
	if len(certificates) != 1 || !ok || len(certificates[0].DNSNames) != 1 || certificates[0].DNSNames[0] != dnsName(key) {
		_ = conn.CloseWithError(2, "who are you?")
		return
	}
	g.mu.Lock()
	g.conns[conn] = struct{}{}
	g.names = append(g.names, certificates[0].DNSNames[0])
	opens := g.manners.opensUp
	g.mu.Unlock()
	if opens {
		if stream, err := conn.OpenStream(); err == nil {
			_, _ = stream.Write([]byte{0})
			g.running.Go(func() { g.announcements(conn, stream) })
		}
	}
	for {
		stream, err := conn.AcceptStream(context.Background())
		if err != nil {
			g.set(func() { delete(g.conns, conn) })
			return
		}
		g.running.Go(func() { g.handle(conn, stream) })
	}
}

// frame reads one message.
func frame(r io.Reader) ([]byte, error) {
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	out := make([]byte, int(size[0])|int(size[1])<<8|int(size[2])<<16|int(size[3])<<24)
	_, err := io.ReadFull(r, out)
	return out, err
}

func framed(message []byte) []byte {
	n := len(message)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, message...)
}

func refuse(stream *quic.Stream) {
	stream.CancelRead(9)
	stream.CancelWrite(9)
}

func (g *guarantor) handle(conn *quic.Conn, stream *quic.Stream) {
	var kind [1]byte
	if _, err := io.ReadFull(stream, kind[:]); err != nil {
		refuse(stream)
		return
	}
	g.mu.Lock()
	g.kinds[kind[0]]++
	refuses, hold, garbage := g.refuse[kind[0]], g.hold[kind[0]], g.garbage[kind[0]]
	g.mu.Unlock()
	if hold != nil {
		<-hold
	}
	switch {
	case refuses:
		refuse(stream)
		return
	case kind[0] == 129 && g.manners.dropsOnState:
		_ = conn.CloseWithError(0, "unknown kind of stream")
		return
	case kind[0] == 0 && garbage != nil:
		_, _ = stream.Write(garbage)
		_, _ = frame(stream)
		_, _ = frame(stream)
		refuse(stream)
		return
	case kind[0] == 0:
		g.announcements(conn, stream)
		return
	}
	var messages [][]byte
	for {
		m, err := frame(stream)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			refuse(stream)
			return
		}
		messages = append(messages, m)
	}
	answer, err := g.answer(kind[0], messages)
	if err != nil {
		refuse(stream)
		return
	}
	if garbage != nil {
		answer = garbage
	}
	g.write(stream, answer)
	_ = stream.Close()
}

// write writes a message, or the bytes of it one after the other.
func (g *guarantor) write(stream *quic.Stream, message []byte) {
	size := len(message)
	if g.manners.bytewise {
		size = 1
	}
	for part := range slices.Chunk(message, max(size, 1)) {
		_, _ = stream.Write(part)
	}
}

var errRefuse = errors.New("refused")

func (g *guarantor) answer(kind byte, m [][]byte) ([]byte, error) {
	switch {
	case kind == 128 && len(m) == 1 && len(m[0]) == 32+1+4:
		return g.blocks(m[0])
	case kind == 129 && len(m) == 1 && len(m[0]) == 32+31+31+4:
		return g.state(m[0])
	case kind == 130 && len(m) == 1 && len(m[0]) == 32:
		g.mu.Lock()
		defer g.mu.Unlock()
		raw, there := g.justifications[jamq.HeaderHash(m[0])]
		if !there {
			return nil, errRefuse
		}
		return framed(raw), nil
	case kind == 133 && len(m) == 2 && len(m[0]) > 2:
		return nil, g.take(m, m[0][2:], m[1])
	case kind == 146 && len(m) == 5:
		return nil, g.takeBundle(m)
	}
	return nil, errRefuse
}

// blocks: hash, direction, how many.
func (g *guarantor) blocks(ask []byte) ([]byte, error) {
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	at := g.world.blocks[jamq.HeaderHash(ask[:32])]
	most := binary.LittleEndian.Uint32(ask[33:])
	if at == nil || at.height < g.manners.since {
		return nil, errRefuse
	}
	var out []byte
	if g.manners.surplus {
		most++
	}
	if g.manners.single {
		most = 1
	}
	if ask[32] == 1 {
		for ; at != nil && at.height >= g.manners.since && most > 0; at, most = at.parent, most-1 {
			out = append(out, at.raw...)
		}
		return framed(out), nil
	}
	var chain [][]byte // from the best block down to the one that is named, without it
	for b := g.world.best; b != nil && b != at; b = b.parent {
		chain = append(chain, b.raw)
	}
	for i := len(chain) - 1; i >= 0 && most > 0; i, most = i-1, most-1 {
		out = append(out, chain[i]...)
	}
	return framed(out), nil
}

// state: hash, first key, last key, how many bytes.
func (g *guarantor) state(ask []byte) ([]byte, error) {
	g.world.mu.Lock()
	defer g.world.mu.Unlock()
	at := g.world.blocks[jamq.HeaderHash(ask[:32])]
	if at == nil {
		return nil, errRefuse
	}
	var values []byte
	for chapter := range byte(16) {
		key := append([]byte{chapter}, make([]byte, 30)...)
		if string(ask[32:63]) > string(key) || string(key) > string(ask[63:94]) {
			continue
		}
		value, _ := at.state.Get(statetrie.Key(key))
		if g.lie != nil {
			value = g.lie(value)
		}
		n := len(value)
		values = append(append(values, key...), byte(128+n>>8), byte(n)) // between 128 and 2^14
		values = append(values, value...)
	}
	if value, some := g.world.accounts[statetrie.Key(ask[32:63])]; some {
		values = append(append(values, ask[32:63]...), byte(len(value))) // below 128
		values = append(values, value...)
	}
	var boundary []byte
	for _, end := range [][]byte{ask[32:63], ask[63:94]} {
		for _, n := range at.state.Prove(statetrie.Key(end)) {
			boundary = append(boundary, n[:]...)
		}
	}
	return append(framed(boundary), framed(values)...), nil
}

func (g *guarantor) take(m [][]byte, pkg, extrinsics []byte) error {
	p, err := parsePackage(pkg)
	if err != nil {
		return err
	}
	size := 0
	for _, s := range p.sizes {
		size += int(s)
	}
	core := jamq.CoreIndex(m[0][0]) | jamq.CoreIndex(m[0][1])<<8
	if size != len(extrinsics) || int(core) >= g.world.spec.Cores {
		return errRefuse
	}
	g.set(func() { g.taken = append(g.taken, m) })
	g.world.offer(core, p)
	return nil
}

func (g *guarantor) takeBundle(m [][]byte) error {
	if len(m[0]) < 3 || len(m[0]) != 3+64*int(m[0][2]) {
		return errRefuse
	}
	p, err := parsePackage(m[1])
	if err != nil || len(m[3]) != 4104*p.imports {
		return errRefuse
	}
	proofs := m[4]
	for range p.imports {
		if len(proofs) < 1 || len(proofs) < 1+32*int(proofs[0]) {
			return errRefuse
		}
		proofs = proofs[1+32*int(proofs[0]):]
	}
	if len(proofs) > 0 {
		return errRefuse
	}
	return g.take(m, m[1], m[2])
}

// announcements runs an UP stream: our handshake, theirs, and then every new block.
func (g *guarantor) announcements(conn *quic.Conn, stream *quic.Stream) {
	place := func(b *worldBlock) []byte {
		return binary.LittleEndian.AppendUint32(append([]byte{}, b.hash[:]...), uint32(b.header.Slot))
	}
	// The hello is queued under the lock, so that no block is announced before it or lost.
	queue := make(chan []byte, 1<<10)
	g.world.mu.Lock()
	hello := append(append(place(g.world.finalized), 1), place(g.world.best)...)
	if g.manners.finalIsBest {
		hello = append(place(g.world.best), 0)
	}
	if g.manners.finalIsZero {
		clear(hello[:36])
	}
	queue <- framed(hello)
	g.set(func() {
		for _, other := range g.order {
			if g.manners.oneUp && other.StreamID() < stream.StreamID() {
				refuse(other)
			}
		}
		g.ups[stream], g.order = queue, append(g.order, stream)
	})
	g.world.mu.Unlock()
	g.running.Go(func() {
		for message := range queue {
			g.write(stream, message)
		}
	})
	theirs, err := frame(stream)
	if g.manners.stopsUp && err == nil {
		stream.CancelRead(9)
		<-stream.Context().Done()
	}
	if err == nil && len(theirs) >= 37 && len(theirs) == 37+36*int(theirs[36]) {
		_, err = frame(stream) // a builder announces nothing
	}
	g.set(func() {
		delete(g.ups, stream)
		g.order = slices.DeleteFunc(g.order, func(s *quic.Stream) bool { return s == stream })
	})
	close(queue)
	refuse(stream)
	var reset *quic.StreamError
	if g.manners.dropsOnReset && errors.As(err, &reset) && reset.Remote {
		_ = conn.CloseWithError(3, "a stream was reset")
	}
}

// announce tells all peers of a block. It runs under the world's lock.
func (g *guarantor) announce(b, final *worldBlock) {
	header, err := g.world.codec.Encode(&b.header)
	if err != nil {
		panic(err)
	}
	if g.manners.finalIsBest {
		final = b
	}
	message := append(append(header, final.hash[:]...), binary.LittleEndian.AppendUint32(nil, uint32(final.header.Slot))...)
	if g.manners.finalIsZero {
		clear(message[len(header):])
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, stream := range g.order {
		if i == 0 || !g.manners.oldestUpOnly {
			g.ups[stream] <- framed(message)
		}
	}
}
