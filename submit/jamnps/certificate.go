package jamnps

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"time"

	"github.com/jamq/jamq/internal/smallorder"
)

// newCertificate returns the certificate that identifies a node or builder in a TLS
// handshake.
func newCertificate(key ed25519.PrivateKey, notBefore, notAfter time.Time) (tls.Certificate, error) {
	if len(key) != ed25519.PrivateKeySize {
		return tls.Certificate{}, fmt.Errorf("%w: private key of %d bytes, want %d", ErrKey, len(key), ed25519.PrivateKeySize)
	}
	if !notAfter.After(notBefore) {
		return tls.Certificate{}, fmt.Errorf("%w: not before %v and not after %v", ErrCertificate, notBefore, notAfter)
	}
	public := key.Public().(ed25519.PublicKey)
	name, err := alternativeName(public)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: name},
		// JAMNP-S ignores the validity period, but TLS libraries require one.
		NotBefore:   notBefore,
		NotAfter:    notAfter,
		DNSNames:    []string{name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// peerKey returns a peer's Ed25519 key from the certificates in a TLS handshake.
func peerKey(rawCerts [][]byte) (ed25519.PublicKey, error) {
	if len(rawCerts) != 1 {
		return nil, fmt.Errorf("%w: %d certificates, want 1", ErrCertificate, len(rawCerts))
	}
	cert, err := x509.ParseCertificate(rawCerts[0])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	key, ok := cert.PublicKey.(ed25519.PublicKey)
	if !ok || cert.SignatureAlgorithm != x509.PureEd25519 {
		return nil, fmt.Errorf("%w: a %v key signed by %v, want Ed25519 for both", ErrCertificate, cert.PublicKeyAlgorithm, cert.SignatureAlgorithm)
	}
	want, err := alternativeName(key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCertificate, err)
	}
	// The handshake proves that the peer holds the key, but any host can give such a
	// proof for a key of small order.
	if smallorder.Has([32]byte(key)) {
		return nil, fmt.Errorf("%w: the key %x is a point of small order, for which anyone can sign", ErrCertificate, []byte(key))
	}
	others := len(cert.EmailAddresses) + len(cert.IPAddresses) + len(cert.URIs)
	if len(cert.DNSNames) != 1 || cert.DNSNames[0] != want || others != 0 {
		return nil, fmt.Errorf("%w: names %.80q and %d of other kinds, want only %s", ErrCertificate, cert.DNSNames, others, want)
	}
	return key, nil
}

// tlsConfig returns the TLS configuration for either side of a connection.
func tlsConfig(certificate tls.Certificate, protocols []string, accept func(ed25519.PublicKey) error) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		NextProtos:   protocols,
		// Go's default is a hybrid key exchange, which needs two packets for a ClientHello.
		// Some nodes cannot handle that.
		CurvePreferences: []tls.CurveID{tls.X25519, tls.CurveP256},
		ClientAuth:       tls.RequireAnyClientCert,
		// There is no certificate authority. VerifyPeerCertificate checks the
		// certificate in every handshake.
		InsecureSkipVerify: true,
		// A resumed session would have no certificate that
		// VerifyPeerCertificate could check.
		SessionTicketsDisabled: true,
		VerifyPeerCertificate: func(rawCerts [][]byte, _ [][]*x509.Certificate) error {
			key, err := peerKey(rawCerts)
			// An error of accept fails the handshake.
			if err != nil || accept == nil {
				return err
			}
			return accept(key)
		},
	}
}
