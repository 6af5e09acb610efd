package devkeys

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A builder's key comes from a file as OpenSSL writes it. Other files are refused.
func TestReadBuilder(t *testing.T) {
	file := func(key any) string {
		raw, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		return write(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	}
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	read, err := ReadBuilder(file(key))
	require.NoError(t, err)
	require.Equal(t, key, read)
	read, err = ReadBuilder("")
	require.NoError(t, err)
	require.Equal(t, Builder(), read)

	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	for name, path := range map[string]string{
		"another kind of key": file(other),
		"no PEM":              write(t, []byte("key")),
		"no key":              write(t, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY"})),
	} {
		_, err := ReadBuilder(path)
		require.ErrorIs(t, err, ErrKeyFile, name)
	}
	_, err = ReadBuilder(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func write(t *testing.T, text []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "key.pem")
	require.NoError(t, os.WriteFile(name, text, 0o600))
	return name
}
