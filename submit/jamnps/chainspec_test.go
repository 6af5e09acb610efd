package jamnps

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/submit/codec"
)

// tinyParameters encodes the constants of the tiny chain in the order of the Gray Paper.
func tinyParameters() string {
	var b []byte
	for _, field := range []struct{ size, value uint64 }{
		{8, 10}, {8, 1}, {8, 100}, {2, 2}, {4, 19_200}, {4, 12}, {8, 10_000_000}, {8, 50_000_000}, {8, 1_000_000_000}, {8, 20_000_000},
		{2, 8}, {2, 16}, {2, 8}, {2, 3}, {4, 24}, {2, 3}, {2, 8}, {2, 6}, {2, 80}, {2, 4}, {2, 128}, {2, 5}, {2, 6},
		{4, 64_000}, {4, 13_791_360}, {4, 4_000_000}, {4, 4}, {4, 3_072}, {4, 1_026}, {4, 49_152}, {4, 128}, {4, 3_072}, {4, 10},
	} {
		b = append(b, binary.LittleEndian.AppendUint64(nil, field.value)[:field.size]...)
	}
	return hex.EncodeToString(b)
}

func specFile(bootnodes ...string) string {
	return fmt.Sprintf(`{"id":"tiny","bootnodes":["%s"],"genesis_header":"00010203","genesis_state":{"00":"11"},"protocol_parameters":%q}`,
		strings.Join(bootnodes, `","`), tinyParameters())
}

func TestChainSpec(t *testing.T) {
	key := privateKey(5)
	name, err := alternativeName(key.Public().(ed25519.PublicKey))
	require.NoError(t, err)
	file := []byte(specFile(name+"@127.0.0.1:7", name+"@[::1]:8", name+"@::1:9"))
	s, err := ParseChainSpec(file)
	require.NoError(t, err)
	require.Equal(t, "tiny", s.ID)
	require.Equal(t, jamq.Tiny(), s.Spec)
	require.Equal(t, jamq.HeaderHash(blake2b.Sum256([]byte{0, 1, 2, 3})), s.Genesis)
	require.Len(t, s.Bootnodes, 3)
	for i, addr := range []string{"127.0.0.1:7", "[::1]:8", "[::1]:9"} {
		require.Equal(t, Peer{Key: key.Public().(ed25519.PublicKey), Addr: addr}, s.Bootnodes[i])
	}
	c, err := OpenChain(file, privateKey(99), codec.V072)
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, s.Genesis, c.cfg.Genesis)
	require.Len(t, c.peers, 3)
	_, err = OpenChain([]byte(specFile()), privateKey(99), codec.Version(9))
	require.Error(t, err)
	_, err = OpenChain(file, nil, codec.V072)
	require.ErrorIs(t, err, ErrInvalidConfig)
}

func TestMalformedChainSpec(t *testing.T) {
	good := specFile("evysk4p563r2kappaebqykryquxw5lfcclvf23dqqhi5n765h4kkb@192.168.50.18:62061")
	_, err := ParseChainSpec([]byte(good))
	require.NoError(t, err)
	for _, change := range [][2]string{
		{good, "[]"}, {good, ""}, {"00010203", ""}, {"00010203", "0"}, {"00010203", "xx"}, {tinyParameters(), ""}, {tinyParameters(), "00"},
		{tinyParameters(), strings.Repeat("0", 2*parametersSize)}, {"evysk", "svysk"}, {"evysk", "evys"}, {"evysk", "e0ysk"}, {"kkb@", "kkz@"},
		{"@192", "192"}, {".18:62061", ".18"}, {".18:", ".333:"}, {"62061", "662061"}, {"192.168.50.18", "example.org"},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		require.NotEqual(t, good, bad)
		_, err := ParseChainSpec([]byte(bad))
		require.Error(t, err, "%q instead of %q", change[1], change[0])
	}
}

// The protocol parameters in the text of JIP-4, which are those of an older tiny chain.
func TestParametersOfJIP4(t *testing.T) {
	const example = "0a00000000000000010000000000000064000000000000000200004b00000c000000809698000000000080f0fa0200000000" +
		"00ca9a3b00000000002d310100000000080000001000080003004038000003000800060050000400000080000500060000fa0000017cd200" +
		"00093d0004000000000c00000204000000c0000080000000000c00000a000000"
	s, err := ParseChainSpec([]byte(strings.Replace(specFile("evysk4p563r2kappaebqykryquxw5lfcclvf23dqqhi5n765h4kkb@192.168.50.18:62061"), tinyParameters(), example, 1)))
	require.NoError(t, err)
	want := jamq.Tiny()
	want.MaxLookupAnchorAge, want.MaxBundleSize = 14_400, 13_794_305
	require.Equal(t, want, s.Spec)
}

// newerParameters are tinyParameters without N, V, W_E and W_P, as in Gray Paper 0.8.0.
func newerParameters(t *testing.T) string {
	raw, err := hex.DecodeString(tinyParameters())
	require.NoError(t, err)
	var out []byte
	at := 0
	for i, size := range []int{8, 8, 8, 2, 4, 4, 8, 8, 8, 8, 2, 2, 2, 2, 4, 2, 2, 2, 2, 2, 2, 2, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4} {
		if removed := i == 15 || i == 22 || i == 26 || i == 28; !removed {
			out = append(out, raw[at:at+size]...)
		}
		at += size
	}
	require.Len(t, out, 122)
	return hex.EncodeToString(out)
}

// A chain of Gray Paper 0.8.0 has as many validators as its genesis state, otherwise as its genesis
// header announces, otherwise three for each core. A client of an older version does not open.
func TestNewerChainSpec(t *testing.T) {
	c, err := codec.New(codec.V080, jamq.Tiny())
	require.NoError(t, err)
	for name, x := range map[string]struct{ marked, state, want int }{
		"an unknown form of the state": {0, -1, 6},
		"neither":                      {0, 0, 6}, "mark": {4, 0, 4}, "larger mark": {9, 0, 9}, "state": {0, 3, 3}, "both": {4, 3, 3},
	} {
		header, err := c.Encode(&codec.Header{})
		require.NoError(t, err)
		if x.marked > 0 { // with two entropies and the keys of the validators
			const at = 3*32 + 4
			mark := slices.Concat([]byte{1}, make([]byte, 2*32), []byte{byte(x.marked)}, make([]byte, 64*x.marked))
			header = slices.Concat(header[:at], mark, header[at+1:])
		}
		file := strings.Replace(specFile(), tinyParameters(), newerParameters(t), 1)
		file = strings.Replace(file, "00010203", hex.EncodeToString(header), 1)
		switch {
		case x.state < 0:
			file = strings.Replace(file, `{"00":"11"}`, `["00"]`, 1)
		case x.state > 0:
			set := append(codec.AppendNatural(nil, uint64(x.state)), codec.EncodeValidators(make([]codec.Validator, x.state))...)
			file = strings.Replace(file, `"00":"11"`, fmt.Sprintf(`"00":"11","08%s":"%x"`, strings.Repeat("00", 30), set), 1)
		}
		s, err := ParseChainSpec([]byte(strings.Replace(file, `"bootnodes":[""]`, `"bootnodes":[]`, 1)))
		require.NoError(t, err)
		spec := jamq.Tiny()
		spec.Validators = x.want
		require.Equal(t, spec, s.Spec, name)
		_, err = s.Config(privateKey(99), codec.V080)
		require.NoError(t, err)
		_, err = s.Config(privateKey(99), codec.V072)
		require.ErrorIs(t, err, ErrInvalidConfig)
		require.ErrorContains(t, err, "0.8.0")
	}
}

// Constants that contradict each other have the error of the chain spec.
func TestChainSpecWithInvalidConstants(t *testing.T) {
	zeros := strings.Replace(specFile(), tinyParameters(), strings.Repeat("0", 2*parametersSize), 1)
	_, err := ParseChainSpec([]byte(zeros))
	require.ErrorIs(t, err, jamq.ErrInvalidSpec)
}

// The name of a key and the key of a name agree.
func TestKeyOfName(t *testing.T) {
	for i := range byte(100) {
		key := privateKey(i).Public().(ed25519.PublicKey)
		name, err := alternativeName(key)
		require.NoError(t, err)
		back, err := keyOfName(name)
		require.NoError(t, err)
		require.Equal(t, key, back)
	}
}

// The vectors of JIP-5.
func TestKeyFromSeed(t *testing.T) {
	for seed, public := range map[string]string{
		strings.Repeat("00000000", 8):                                      "39648547f495eaac909f7840330e73cdf837f8db8a4f583728742c958adac82b",
		strings.Repeat("01000000", 8):                                      "ebf47a0ff95ae6c7e8a6c0f97ff993d8b62fb9177d09fb088e5441cd9b2fe469",
		strings.Repeat("05000000", 8):                                      "4155988e4a398eb6962bbeea98a7e79e28d42346fe7ebcf3b9476474343fc2f3",
		"3115701e281bea0af863ccd901d3e4c4e42e04869a80d8e8504593b070859dcb": "e5b453caac1935025cd38a75e65d811b6df936d8654ff9df19bcaaebcc1366c0",
	} {
		raw, err := hex.DecodeString(seed)
		require.NoError(t, err)
		key := KeyFromSeed([32]byte(raw))
		require.Equal(t, public, hex.EncodeToString(key.Public().(ed25519.PublicKey)))
	}
}
