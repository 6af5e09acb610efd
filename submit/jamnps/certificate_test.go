package jamnps

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"path/filepath"
	"testing"
	"time"
)

var (
	notBefore = time.Date(2025, time.January, 1, 0, 0, 0, 0, time.UTC)
	notAfter  = notBefore.AddDate(100, 0, 0)
)

func privateKey(name byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{name}, ed25519.SeedSize))
}

func certificate(t testing.TB, name byte) tls.Certificate {
	t.Helper()
	c, err := newCertificate(privateKey(name), notBefore, notAfter)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCertificateNamesItsKey(t *testing.T) {
	c := certificate(t, 1)
	key, err := peerKey(c.Certificate)
	if err != nil || !key.Equal(privateKey(1).Public()) {
		t.Fatal(key, err)
	}
	if !bytes.Equal(c.Certificate[0], certificate(t, 1).Certificate[0]) {
		t.Error("the same key gives two certificates")
	}
	if _, err := newCertificate(nil, notBefore, notAfter); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
	if _, err := newCertificate(privateKey(1), notAfter, notBefore); !errors.Is(err, ErrCertificate) {
		t.Error(err)
	}
}

func TestPeerKeyRefuses(t *testing.T) {
	good := certificate(t, 1).Certificate[0]
	key := privateKey(1)
	name, err := alternativeName(key.Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	newCertificate := func(names []string, ips []net.IP, public, private any) []byte {
		template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: notBefore, NotAfter: notAfter, DNSNames: names, IPAddresses: ips}
		der, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	// Signatures for the key of zeros can be forged: it is a point of order 4.
	zeros := ed25519.PublicKey(make([]byte, ed25519.PublicKeySize))
	nameOfZeros, err := alternativeName(zeros)
	if err != nil {
		t.Fatal(err)
	}
	for what, certs := range map[string][][]byte{
		"none":            nil,
		"two":             {good, good},
		"garbage":         {{1, 2, 3}},
		"no name":         {newCertificate(nil, nil, key.Public(), key)},
		"another name":    {newCertificate([]string{"e" + name[:len(name)-1] + "z"}, nil, key.Public(), key)},
		"a second name":   {newCertificate([]string{name, "example.org"}, nil, key.Public(), key)},
		"an address":      {newCertificate([]string{name}, []net.IP{net.IPv6loopback}, key.Public(), key)},
		"another's key":   {newCertificate([]string{name}, nil, privateKey(2).Public(), key)},
		"elliptic key":    {newCertificate([]string{name}, nil, other.Public(), other)},
		"key of zeros":    {newCertificate([]string{nameOfZeros}, nil, zeros, key)},
		"elliptic signer": {newCertificate([]string{name}, nil, key.Public(), other)},
	} {
		if _, err := peerKey(certs); !errors.Is(err, ErrCertificate) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// shakeHands connects two configurations and returns both sides' errors. It needs a socket: both
// sides of a handshake that fails may write at the same time, which stops a pipe.
func shakeHands(t *testing.T, client, server *tls.Config) (clientErr, serverErr error) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	done := make(chan error)
	go func() {
		b, err := listener.Accept()
		if err == nil {
			err = tls.Server(b, server).Handshake()
			b.Close()
		}
		done <- err
	}()
	a, err := net.Dial("unix", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn := tls.Client(a, client)
	clientErr = conn.Handshake()
	if clientErr == nil {
		_, _ = conn.Read([]byte{0}) // in TLS 1.3 the client learns here that the server refused it
	}
	a.Close()
	return clientErr, <-done
}

func TestHandshake(t *testing.T) {
	protocols := []string{alpn([32]byte{1}, true)}
	var seen []ed25519.PublicKey
	accept := func(key ed25519.PublicKey) error {
		seen = append(seen, key)
		return nil
	}
	client, server := tlsConfig(certificate(t, 1), protocols, accept), tlsConfig(certificate(t, 2), protocols, nil)
	if clientErr, serverErr := shakeHands(t, client, server); clientErr != nil || serverErr != nil {
		t.Fatal(clientErr, serverErr)
	}
	if len(seen) != 1 || !seen[0].Equal(privateKey(2).Public()) {
		t.Fatal(seen)
	}
	stranger := errors.New("stranger")
	server = tlsConfig(certificate(t, 2), protocols, func(ed25519.PublicKey) error { return stranger })
	if _, serverErr := shakeHands(t, client, server); !errors.Is(serverErr, stranger) {
		t.Error(serverErr)
	}
	server = tlsConfig(certificate(t, 2), []string{alpn([32]byte{2}, true)}, nil)
	if _, serverErr := shakeHands(t, client, server); serverErr == nil {
		t.Error("two chains agreed on a protocol")
	}
	nameless := tlsConfig(tls.Certificate{}, protocols, nil)
	nameless.Certificates = nil
	if _, serverErr := shakeHands(t, nameless, tlsConfig(certificate(t, 2), protocols, nil)); serverErr == nil {
		t.Error("a client without a certificate was taken")
	}
}

func FuzzPeerKey(f *testing.F) {
	f.Add(certificate(f, 1).Certificate[0])
	f.Fuzz(func(t *testing.T, der []byte) {
		if key, err := peerKey([][]byte{der}); err == nil && len(key) != ed25519.PublicKeySize {
			t.Fatal(key)
		}
	})
}
