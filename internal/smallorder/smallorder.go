// Package smallorder knows the Ed25519 public keys for which a signature can be
// forged without a secret: the points whose order divides 8. The key of zeros is
// one of them. JAM replaces the key of a punished validator by it.
package smallorder

import "encoding/hex"

// SignBit is the bit of an encoded point that holds the sign of x. It is in the
// last byte. The other 255 bits are y, little-endian.
const SignBit = 0x80

// encodedYs are the encoded y coordinates, without the sign bit, of all points of
// small order. Decoders accept y and y+p, where p = 2^255-19, so that 0 and 1
// have two encodings. TestSmallOrder of canonical/proof derives the list from the
// equation of the curve.
var encodedYs = [...][32]byte{
	encodedY("0000000000000000000000000000000000000000000000000000000000000000"), // 0, order 4
	encodedY("edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), // 0+p, order 4
	encodedY("0100000000000000000000000000000000000000000000000000000000000000"), // 1, order 1
	encodedY("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), // 1+p, order 1
	encodedY("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"), // -1, order 2
	encodedY("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), // order 8
	encodedY("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), // its negative
}

func encodedY(digits string) (y [32]byte) {
	if n, err := hex.Decode(y[:], []byte(digits)); n != len(y) || err != nil {
		panic("smallorder: an entry of encodedYs is not 32 bytes in hexadecimal")
	}
	return y
}

// Has reports whether a key is an encoding of a point of small order.
func Has(key [32]byte) bool {
	key[len(key)-1] &^= SignBit
	for _, y := range encodedYs {
		if key == y {
			return true
		}
	}
	return false
}

// EncodedYs returns the encoded y coordinates of all points of small order,
// without the sign bit.
func EncodedYs() [][32]byte { return append([][32]byte(nil), encodedYs[:]...) }
