package codec

import (
	"errors"
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
)

var (
	// ErrTruncated is returned if the input ends too early.
	ErrTruncated = errors.New("codec: input truncated")
	// ErrNonCanonical is returned by Decode if the input differs from the only
	// encoding that Encode would produce. Encode returns it if a value has no
	// encoding, for example because a set is not in ascending order.
	ErrNonCanonical = errors.New("codec: not canonical")
	// ErrTooLarge is returned if a number exceeds the range of its field, or if
	// a decoded value would take far more memory than its encoding.
	ErrTooLarge = errors.New("codec: too large")
	// ErrWrongLength is returned by Encode if a list does not have the number of elements that the
	// chain's constants require.
	ErrWrongLength = errors.New("codec: wrong length")
	// ErrUnknownVersion is returned for a version other than V072 and V080.
	ErrUnknownVersion = errors.New("codec: unknown version")
)

// Version is a version of the Gray Paper.
type Version uint8

const (
	// V072 is Gray Paper 0.7.2.
	V072 Version = iota
	// V080 is Gray Paper 0.8.0.
	V080
)

// String returns the version's number, for example "0.7.2".
func (v Version) String() string {
	switch v {
	case V072:
		return "0.7.2"
	case V080:
		return "0.8.0"
	}
	return fmt.Sprintf("codec.Version(%d)", uint8(v))
}

// MarshalText returns the version's number. The error is always nil.
func (v Version) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the version's number, for example from a flag. If the number is unknown, the
// error wraps ErrUnknownVersion and v is unchanged.
func (v *Version) UnmarshalText(text []byte) error {
	for known := V072; known <= V080; known++ {
		if string(text) == known.String() {
			*v = known
			return nil
		}
	}
	return fmt.Errorf("%w: %.20q, want %v or %v", ErrUnknownVersion, text, V072, V080)
}

// Codec encodes and decodes the data of one chain, according to one version of the
// Gray Paper. It is immutable and safe for concurrent use.
type Codec struct {
	version                      Version
	validators, cores, epochLen  int
	bitfieldSize, votesOfVerdict int
	spec                         jamq.ChainSpec
}

// New returns a codec for a version of the Gray Paper and the constants of a chain. Errors wrap
// ErrUnknownVersion or jamq.ErrInvalidSpec.
func New(version Version, spec jamq.ChainSpec) (*Codec, error) {
	if version > V080 {
		return nil, fmt.Errorf("%w: %v, want %v or %v", ErrUnknownVersion, version, V072, V080)
	}
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	return &Codec{
		version: version, validators: spec.Validators, cores: spec.Cores, epochLen: int(spec.EpochLength),
		bitfieldSize: (spec.Cores + 7) / 8, votesOfVerdict: spec.Validators*2/3 + 1, spec: spec,
	}, nil
}

// Version returns the codec's version.
func (c *Codec) Version() Version { return c.version }

// Spec returns the chain's constants.
func (c *Codec) Spec() jamq.ChainSpec { return c.spec }

// Value is a pointer to a type that has an encoding. Only types of this package
// implement Value.
type Value interface{ code(*coder) }

// Encode returns the encoding of v. Errors wrap ErrNonCanonical, ErrTooLarge or
// ErrWrongLength and name the field.
func (c *Codec) Encode(v Value) ([]byte, error) {
	w := &coder{codec: c}
	v.code(w)
	if w.err != nil {
		return nil, w.err
	}
	return w.out, nil
}

// Decode decodes the value in raw. It accepts only the encoding that Encode
// produces, and no bytes after it. Errors wrap ErrTruncated, ErrNonCanonical or
// ErrTooLarge.
func Decode[T any, P interface {
	*T
	Value
}](c *Codec, raw []byte) (T, error) {
	v, rest, err := DecodePrefix[T, P](c, raw)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("%w: %d bytes after the end", ErrNonCanonical, len(rest))
	}
	if err != nil {
		var none T
		return none, err
	}
	return v, nil
}

// DecodePrefix decodes a value from the beginning of raw, and returns it with the
// remaining bytes. The value takes at most about twice the memory of its encoding
// plus 4 MiB; if it would take more, the error wraps ErrTooLarge. Other errors are
// those of Decode.
func DecodePrefix[T any, P interface {
	*T
	Value
}](c *Codec, raw []byte) (v T, rest []byte, err error) {
	r := &coder{codec: c, reads: true, rest: raw}
	P(&v).code(r)
	if r.err != nil {
		var none T
		return none, nil, r.err
	}
	return v, r.rest, nil
}

// hash returns the BLAKE2b-256 hash of the encoding of v.
func (c *Codec) hash(v Value) ([32]byte, error) {
	digest, err := blake2b.New256(nil)
	if err != nil {
		return [32]byte{}, err
	}
	w := &coder{codec: c, digest: digest}
	v.code(w)
	if w.err != nil {
		return [32]byte{}, w.err
	}
	w.flush()
	return [32]byte(digest.Sum(nil)), nil
}

// PackageHash returns the hash that identifies a work package on the chain (GP
// 14.1). Errors are those of Encode.
func (c *Codec) PackageHash(p *WorkPackage) (jamq.PackageHash, error) {
	h, err := c.hash(p)
	return h, err
}

// EncodePackage returns the encoding of a work package, which a builder sends to guarantors, and
// the package's hash. Errors are those of Encode.
func (c *Codec) EncodePackage(p *WorkPackage) (raw []byte, hash jamq.PackageHash, err error) {
	if raw, err = c.Encode(p); err != nil {
		return nil, hash, err
	}
	return raw, blake2b.Sum256(raw), nil
}

// HeaderHash returns the hash that identifies a block (GP 5.1). Errors are those of Encode.
func (c *Codec) HeaderHash(h *Header) (jamq.HeaderHash, error) {
	hash, err := c.hash(h)
	return hash, err
}
