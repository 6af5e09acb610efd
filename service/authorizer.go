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
	// ErrUnauthorized is returned if the authorizer refuses a package.
	ErrUnauthorized = errors.New("service: unauthorized")
	// ErrSigner is returned by NewSigner if a key is not an Ed25519 key, and by Signer.Sign if the
	// key does not make a valid signature or the package is for another version of the Gray Paper.
	ErrSigner = errors.New("service: no signature")
)

// MaxSigned is the maximum size of an encoded package that the authorizer accepts,
// in bytes. JAM grants an authorizer a fixed amount of gas, and hashing a larger
// package could exceed it.
const MaxSigned = 1 << 20

// messagePrefix begins each message that a builder signs. The builder must not use
// its key for any other message that begins with this prefix.
const messagePrefix = "jamq authorizer"

// Signer signs the work packages of a builder, so that the authorizer accepts them.
// It is safe for concurrent use if its key is.
type Signer struct {
	key     crypto.Signer
	public  ed25519.PublicKey
	version codec.Version
	code    common.Hash
}

// NewSigner returns a signer for packages of the given version of the Gray Paper.
// key is the builder's Ed25519 key, for example an ed25519.PrivateKey or a key in a
// hardware security module. It is used to sign messages of 47 bytes that are not
// hashed before (crypto.Hash(0)).
//
// The error wraps ErrSigner if key is not an Ed25519 key, and
// codec.ErrUnknownVersion if the authorizer does not exist for the version.
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

// Public returns the builder's public key. It is also the configuration with which
// a package names the authorizer.
func (s *Signer) Public() ed25519.PublicKey { return s.public }

// Authorizer returns the hash of the authorizer that accepts the signed packages.
// Use it as Genesis.Authorizer, and put it into the authorizer pool of each core
// that the builder uses.
func (s *Signer) Authorizer() common.Hash {
	return (&codec.WorkPackage{AuthCodeHash: s.code, AuthorizerConfig: s.public}).Authorizer()
}

// Sign makes the authorizer accept a package. It sets the authorizer's code hash
// and configuration, and then the token: a signature over everything else in the
// package, as c encodes it. The package must not be changed afterwards. The caller
// must set AuthCodeHost, the service that has the authorizer's code, before it
// calls Sign.
//
// Errors wrap ErrSigner, or ErrUnauthorized if the package is too large, or are
// those of c.Encode. After an error, the package has no token.
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

// Authorize returns nil if the authorizer accepts a package. It implements the
// rules of the authorizer's program in Go, so that simulated chains can use them.
// It does not check the code hash in the package, because the chain uses that hash
// to choose the program. The error wraps ErrUnauthorized, or is the error of
// c.Encode if the package cannot be encoded.
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

// signedMessage returns the message that a builder signs for a package.
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
	// The hash is that of the package with zeros in place of the token.
	return append([]byte(messagePrefix), hash[:]...), nil
}
