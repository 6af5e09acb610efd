package codec_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/submit/codec"
)

// fuzz checks that whatever decodes encodes to the same bytes, and that nothing panics, in both
// versions.
func fuzz[T any, P interface {
	*T
	codec.Value
}](f *testing.F, seed T) {
	codecs := []*codec.Codec{tiny(f, codec.V072), tiny(f, codec.V080)}
	for _, c := range codecs {
		raw, err := c.Encode(P(&seed))
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, c := range codecs {
			v, rest, err := codec.DecodePrefix[T, P](c, raw)
			if err != nil {
				continue
			}
			again, err := c.Encode(P(&v))
			if err != nil || !bytes.Equal(again, raw[:len(raw)-len(rest)]) {
				t.Fatalf("%v: decodes, and encodes to other bytes: %v", c.Version(), err)
			}
		}
	})
}

func FuzzDecodeWorkPackage(f *testing.F) { fuzz(f, samplePackage()) }

func FuzzDecodeBlock(f *testing.F) { fuzz(f, sampleBlock()) }

func FuzzDecodeWorkReport(f *testing.F) {
	fuzz(f, sampleBlock().Extrinsic.Guarantees[0].Report)
}

func FuzzDecodeHeader(f *testing.F) { fuzz(f, sampleBlock().Header) }

// Whatever is read as a natural is written as the same bytes.
func FuzzDecodeNatural(f *testing.F) {
	f.Add([]byte{0xc0, 0, 0x40})
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, rest, err := codec.DecodeNatural(raw)
		if err == nil && !bytes.Equal(codec.AppendNatural(nil, x), raw[:len(raw)-len(rest)]) {
			t.Fatalf("%d was read from %x", x, raw)
		}
	})
}
