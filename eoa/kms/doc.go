// Package kms signs transactions with keys that a key service or a security module keeps,
// for example AWS KMS, Google Cloud KMS, Azure Key Vault, or a PKCS#11 token. The caller
// brings one function that has a digest signed, and the public key.
//
//	public, err := kms.ParsePublicKey(answer.PublicKey)
//	signer, err := kms.New(chainID, kms.Key{Public: public, Sign: func(ctx context.Context, digest []byte) ([]byte, error) {
//		answer, err := client.Sign(ctx, keyID, digest)
//		return answer.Signature, err
//	}})
//	e, err := eoa.New(cfg, eoa.Account{ChainID: chainID, Address: signer.Addresses()[0]}, store, chain, signer)
//
// The keys are on the curve secp256k1. Services return a signature that Ethereum does
// not take: r and s as ASN.1 or one behind the other, without a recovery id, and in
// half of the cases with a high s, which EIP-2 forbids. [Signer] repairs that, and
// checks that the signature is of the key.
//
// The program examples/hsm has the function for PKCS#11.
package kms
