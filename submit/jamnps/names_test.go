package jamnps

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAlternativeName(t *testing.T) {
	key := make(ed25519.PublicKey, ed25519.PublicKeySize)
	for _, c := range []struct {
		at   int
		bits byte
		want string
	}{
		{0, 0, "e" + strings.Repeat("a", 52)},
		{0, 0b00100001, "ebb" + strings.Repeat("a", 50)}, // digits of 5 bits: 00001, 00001
		{31, 0x80, "e" + strings.Repeat("a", 51) + "b"},  // bit 255 is the lowest of digit 51
	} {
		clear(key)
		key[c.at] = c.bits
		if got, err := alternativeName(key); err != nil || got != c.want {
			t.Errorf("byte %d = %#x: %s, %v, want %s", c.at, c.bits, got, err, c.want)
		}
	}
	if _, err := alternativeName(key[:31]); !errors.Is(err, ErrKey) {
		t.Errorf("short key: %v", err)
	}
}

func TestALPN(t *testing.T) {
	genesis := [32]byte{0xde, 0xad, 0xbe, 0xef, 0x12}
	if got := alpn(genesis, true); got != "jamnp-s/0/deadbeef/builder" {
		t.Error(got)
	}
	if got := alpn(genesis, false); got != "jamnp-s/0/deadbeef" {
		t.Error(got)
	}
}

func TestMessages(t *testing.T) {
	var stream bytes.Buffer
	for _, m := range []string{"one", "", "three"} {
		if err := writeMessage(&stream, []byte(m)); err != nil {
			t.Fatal(err)
		}
	}
	raw := bytes.Clone(stream.Bytes())
	for _, want := range []string{"one", "", "three"} {
		if got, err := readMessage(&stream, 5); err != nil || string(got) != want {
			t.Fatalf("%q, %v", got, err)
		}
	}
	if _, err := readMessage(&stream, 5); err != io.EOF {
		t.Error(err)
	}
	if _, err := readMessage(bytes.NewReader(raw[:6]), 5); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
	if _, err := readMessage(bytes.NewReader(raw), 2); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

func FuzzReadMessage(f *testing.F) {
	f.Add([]byte{3, 0, 0, 0, 1, 2, 3})
	f.Fuzz(func(t *testing.T, raw []byte) {
		message, err := readMessage(bytes.NewReader(raw), 1<<20)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := writeMessage(&again, message); err != nil || !bytes.HasPrefix(raw, again.Bytes()) {
			t.Fatal("reads, and writes other bytes")
		}
	})
}
