package service

import (
	"crypto"
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq/submit/codec"
)

var (
	// ErrUnauthorized is returned for a package that the authorizer does not let pass.
	ErrUnauthorized = errors.New("service: unauthorized")
	// ErrSigner is returned for a key that is no Ed25519 key, or that does not sign.
	ErrSigner = errors.New("service: no signature")
)

// MaxSigned is the greatest size of an encoded package that the authorizer lets pass,
// in bytes. It is bounded by the gas that JAM grants an authorizer, which hashes it.
const MaxSigned = 1 << 20

// messagePrefix is the beginning of each message that a builder signs. No other message
// of the key may begin with it.
const messagePrefix = "jamq authorizer"

// Signer signs the work packages of a builder, so that the authorizer lets them pass.
// It is safe for concurrent use if the key is.
type Signer struct {
	key     crypto.Signer
	public  ed25519.PublicKey
	version codec.Version
	code    common.Hash
}

// NewSigner returns a signer for packages of a version of the Gray Paper. key is the
// builder's Ed25519 key, for example an ed25519.PrivateKey or a key in a hardware
// security module; it signs messages of 47 bytes, without a hash (crypto.Hash(0)). The
// error wraps ErrSigner if it is another kind of key, or codec.ErrUnknownVersion.
func NewSigner(version codec.Version, key crypto.Signer) (*Signer, error) {
	public, ok := key.Public().(ed25519.PublicKey)
	if !ok || len(public) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%w: a key of type %T, want Ed25519", ErrSigner, key.Public())
	}
	code, err := AuthorizerBlob(version)
	if err != nil {
		return nil, err
	}
	return &Signer{key: key, public: public, version: version, code: blake2b.Sum256(code)}, nil
}

// Public returns the builder's public key, which is the configuration of the authorizer.
func (s *Signer) Public() ed25519.PublicKey { return s.public }

// Authorizer returns the hash of the authorizer that lets the signed packages pass, for
// Genesis.Authorizer and for the pool of a core.
func (s *Signer) Authorizer() common.Hash {
	return (&codec.WorkPackage{AuthCodeHash: s.code, AuthorizerConfig: s.public}).Authorizer()
}

// Sign sets the authorizer of a package and its token, which is a signature of
// everything else in the package, in the encoding of c. The package must not be changed
// afterwards. The service that holds the authorizer's code, AuthCodeHost, is up to the
// caller. Errors wrap ErrSigner, or ErrUnauthorized if the package is too large, or are
// those of c.Encode; the package has no token then.
func (s *Signer) Sign(c *codec.Codec, p *codec.WorkPackage) error {
	if c.Version() != s.version {
		return fmt.Errorf("%w: a package of version %s, want %s", ErrSigner, c.Version(), s.version)
	}
	p.AuthCodeHash, p.AuthorizerConfig, p.Authorization = s.code, s.public, nil
	message, err := signedMessage(c, p)
	if err != nil {
		return err
	}
	token, err := s.key.Sign(nil, message, crypto.Hash(0))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrSigner, err)
	}
	if !verify(s.public, message, token) {
		return fmt.Errorf("%w: the key's signature is wrong", ErrSigner)
	}
	p.Authorization = token
	return nil
}

// Authorize returns nil if the authorizer lets a package pass: these are the rules of
// the program in Go, for simulated chains. It does not look at the package's code hash,
// because the chain chooses the program by it. The error wraps ErrUnauthorized, or is
// that of a package that cannot be encoded.
func Authorize(c *codec.Codec, p *codec.WorkPackage) error {
	message, err := signedMessage(c, p)
	if err != nil {
		return err
	}
	if !verify(p.AuthorizerConfig, message, p.Authorization) {
		return fmt.Errorf("%w: the token is no signature of the package under the key %x", ErrUnauthorized, p.AuthorizerConfig)
	}
	return nil
}

func verify(public, message, token []byte) bool {
	return len(public) == ed25519.PublicKeySize && ed25519.Verify(public, message, token)
}

// signedMessage returns the message that the token of a package signs: a prefix, and
// the hash of the package in which zeros are in the place of the token.
func signedMessage(c *codec.Codec, p *codec.WorkPackage) ([]byte, error) {
	blank := *p
	blank.Authorization = make([]byte, ed25519.SignatureSize)
	encoded, err := c.Encode(&blank)
	if err != nil {
		return nil, err
	}
	if len(encoded) > MaxSigned {
		return nil, fmt.Errorf("%w: a package of %d bytes, want at most %d", ErrUnauthorized, len(encoded), MaxSigned)
	}
	hash := blake2b.Sum256(encoded)
	return append([]byte(messagePrefix), hash[:]...), nil
}
