// Package kms signs transactions with keys that are kept in a key service or a
// security module, for example AWS KMS, Google Cloud KMS, Azure Key Vault, or a
// PKCS#11 token. The caller provides the public key and one function that lets the
// service sign a digest.
//
//	public, err := kms.ParsePublicKey(answer.PublicKey)
//	signer, err := kms.New(chainID, kms.Key{Public: public, Sign: func(ctx context.Context, digest []byte) ([]byte, error) {
//		answer, err := client.Sign(ctx, keyID, digest)
//		return answer.Signature, err
//	}})
//	e, err := eoa.New(cfg, eoa.Account{ChainID: chainID, Address: signer.Addresses()[0]}, store, chain, signer)
//
// The keys are on the curve secp256k1. Services return signatures in a form that
// Ethereum does not accept: r and s are encoded as ASN.1 or concatenated, there is
// no recovery id, and half of the signatures have a high s, which EIP-2 forbids.
// [Signer] converts them, and checks that each signature was made with the key.
//
// The program examples/hsm contains such a function for PKCS#11.
package kms
