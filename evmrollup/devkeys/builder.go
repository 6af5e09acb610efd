package devkeys

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
)

// ErrKeyFile is returned if a file does not contain a usable Ed25519 key.
var ErrKeyFile = errors.New("devkeys: no Ed25519 key")

// Builder returns the key that signs packages during development. Everyone knows this
// key, so it must not protect anything of value.
func Builder() ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte("jamq: the key of the development"))
}

// ReadBuilder reads the builder's key from a file in PEM format (PKCS #8). If path is
// empty, ReadBuilder returns the key of Builder. The error wraps ErrKeyFile, or is the
// error of reading the file.
func ReadBuilder(path string) (crypto.Signer, error) {
	if path == "" {
		return Builder(), nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%w: %s has no PEM block", ErrKeyFile, path)
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrKeyFile, path, err)
	}
	private, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, fmt.Errorf("%w: %s has a key of type %T", ErrKeyFile, path, key)
	}
	return private, nil
}
