package kms

import (
	"crypto/ecdsa"
	"encoding/asn1"
	"encoding/pem"
	"fmt"

	"github.com/ethereum/go-ethereum/crypto"
)

var (
	// ecPublicKey identifies keys on elliptic curves (RFC 5480, section 2.1.1).
	ecPublicKey = asn1.ObjectIdentifier{1, 2, 840, 10045, 2, 1}
	// secp256k1 identifies the curve of Ethereum's keys (SEC 2, section 2.4.1).
	secp256k1 = asn1.ObjectIdentifier{1, 3, 132, 0, 10}
)

// keyInfo is SubjectPublicKeyInfo (RFC 5480, section 2).
type keyInfo struct {
	Algorithm struct {
		ID    asn1.ObjectIdentifier
		Curve asn1.ObjectIdentifier
	}
	Point asn1.BitString
}

// ParsePublicKey parses a public key in one of the forms that services return:
//
//   - SubjectPublicKeyInfo as DER, or as PEM with the type "PUBLIC KEY"
//   - a point of 65 bytes (uncompressed) or 33 bytes (compressed; SEC 1, section 2.3.3)
//   - such a point as an OCTET STRING of ASN.1, the attribute CKA_EC_POINT of PKCS#11
//
// It returns an error if b has another form, if the key is not on the curve
// secp256k1, or if the point is not on that curve. Use it instead of crypto/x509,
// which does not support this curve.
func ParsePublicKey(b []byte) (*ecdsa.PublicKey, error) {
	if block, _ := pem.Decode(b); block != nil {
		b = block.Bytes
	}
	const plain, compressed = 65, 33 // a plain point can look like a shorter OCTET STRING
	point := b
	var info keyInfo
	var octets []byte
	if rest, err := asn1.Unmarshal(b, &info); err == nil && len(rest) == 0 {
		if a := info.Algorithm; !a.ID.Equal(ecPublicKey) || !a.Curve.Equal(secp256k1) {
			return nil, fmt.Errorf("kms: key of type %v on curve %v, want %v on %v", a.ID, a.Curve, ecPublicKey, secp256k1)
		}
		point = info.Point.RightAlign()
	} else if rest, err := asn1.Unmarshal(b, &octets); err == nil && len(rest) == 0 && (len(octets) == plain || len(octets) == compressed) {
		point = octets
	}
	parse := crypto.UnmarshalPubkey
	if len(point) == compressed {
		parse = crypto.DecompressPubkey
	}
	key, err := parse(point)
	if err != nil {
		return nil, fmt.Errorf("kms: public key %x: %w", b, err)
	}
	return key, nil
}
