package rpcapi

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// secretSize is the length of the key for the tokens of administrators, in bytes.
const secretSize = 32

// ReadSecret reads the key for the tokens of administrators from a file, which must
// contain 32 bytes in hex, with or without 0x. If the file does not exist, ReadSecret
// generates a key and writes it to a new file that only the owner can read. If path is
// empty, ReadSecret returns no key. The error wraps [ErrInvalidConfig] if the file does
// not contain a key.
func ReadSecret(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeSecret(path)
	}
	if err != nil {
		return nil, fmt.Errorf("rpcapi: token key: %w", err)
	}
	secret, err := hex.DecodeString(strings.TrimPrefix(strings.TrimSpace(string(text)), "0x"))
	if err != nil || len(secret) != secretSize {
		return nil, fmt.Errorf("%w: %s does not hold a key, want %d bytes in hex", ErrInvalidConfig, path, secretSize)
	}
	return secret, nil
}

func makeSecret(path string) ([]byte, error) {
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // never fails
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("rpcapi: token key: %w", err)
	}
	_, err = fmt.Fprintf(file, "0x%x\n", secret)
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("rpcapi: token key: %w", err)
	}
	return secret, nil
}
