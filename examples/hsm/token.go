//go:build cgo

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/pkcs11"

	"github.com/jamq/jamq/eoa/kms"
)

// sessions is the number of sessions with the token. A session does one thing at a
// time, so that this is the number of signatures that are made at once.
const sessions = 8

// secp256k1 is the curve's name as ASN.1, for CKA_EC_PARAMS.
var secp256k1 = []byte{6, 5, 0x2b, 0x81, 4, 0, 10}

// token is a PKCS#11 token on which the program is logged in.
type token struct {
	module *pkcs11.Ctx
	free   chan pkcs11.SessionHandle
}

// openToken loads a module and logs in on the token with the given label.
func openToken(module, label, pin string) (*token, error) {
	c := pkcs11.New(module)
	if c == nil {
		return nil, fmt.Errorf("module %q cannot be loaded", module)
	}
	t := &token{module: c, free: make(chan pkcs11.SessionHandle, sessions)}
	err := c.Initialize()
	if err == nil {
		if err = t.login(label, pin); err != nil {
			_ = c.Finalize()
		}
	}
	if err != nil {
		c.Destroy()
		return nil, fmt.Errorf("token %q: %w", label, err)
	}
	return t, nil
}

func (t *token) login(label, pin string) error {
	slots, err := t.module.GetSlotList(true)
	if err != nil {
		return err
	}
	for _, slot := range slots {
		info, err := t.module.GetTokenInfo(slot)
		if err != nil || strings.TrimRight(info.Label, " \x00") != label {
			continue
		}
		for i := range sessions {
			s, err := t.module.OpenSession(slot, pkcs11.CKF_SERIAL_SESSION|pkcs11.CKF_RW_SESSION)
			if err == nil && i == 0 { // for all sessions of the program
				err = t.module.Login(s, pkcs11.CKU_USER, pin)
			}
			if err != nil {
				return err
			}
			t.free <- s
		}
		return nil
	}
	return fmt.Errorf("not among %d tokens", len(slots))
}

// close logs out. No session may be in use.
func (t *token) close() error {
	err := t.module.Finalize()
	t.module.Destroy()
	return err
}

// with returns the result of f, which has a session that is not used otherwise. If ctx ends
// first, with returns its error, and f goes on.
func with[T any](ctx context.Context, t *token, f func(pkcs11.SessionHandle) (T, error)) (result T, err error) {
	var s pkcs11.SessionHandle
	select {
	case s = <-t.free:
	case <-ctx.Done():
		return result, ctx.Err()
	}
	type outcome struct {
		result T
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		defer func() { t.free <- s }()
		result, err := f(s)
		done <- outcome{result, err}
	}()
	select {
	case o := <-done:
		return o.result, o.err
	case <-ctx.Done():
		return result, ctx.Err()
	}
}

// create makes a key pair. The private key can be used, and neither read nor exported.
func (t *token) create(label string) error {
	public := []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_LABEL, label), pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
		pkcs11.NewAttribute(pkcs11.CKA_VERIFY, true), pkcs11.NewAttribute(pkcs11.CKA_EC_PARAMS, secp256k1),
	}
	private := []*pkcs11.Attribute{
		pkcs11.NewAttribute(pkcs11.CKA_LABEL, label), pkcs11.NewAttribute(pkcs11.CKA_TOKEN, true),
		pkcs11.NewAttribute(pkcs11.CKA_SIGN, true), pkcs11.NewAttribute(pkcs11.CKA_SENSITIVE, true),
		pkcs11.NewAttribute(pkcs11.CKA_EXTRACTABLE, false), pkcs11.NewAttribute(pkcs11.CKA_PRIVATE, true),
	}
	_, err := with(context.Background(), t, func(s pkcs11.SessionHandle) (pkcs11.ObjectHandle, error) {
		if _, err := t.find(s, pkcs11.CKO_PRIVATE_KEY, label); err == nil {
			return 0, fmt.Errorf("the token has a key %q already", label)
		} else if !errors.Is(err, errNoKey) {
			return 0, err
		}
		made, _, err := t.module.GenerateKeyPair(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_EC_KEY_PAIR_GEN, nil)}, public, private)
		return made, err
	})
	return err
}

// errNoKey means that no key has the label.
var errNoKey = errors.New("no such key")

// find returns the only object of a class with a label.
func (t *token) find(s pkcs11.SessionHandle, class uint, label string) (pkcs11.ObjectHandle, error) {
	want := []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_CLASS, class), pkcs11.NewAttribute(pkcs11.CKA_LABEL, label)}
	if err := t.module.FindObjectsInit(s, want); err != nil {
		return 0, err
	}
	const one = 1
	found, _, err := t.module.FindObjects(s, one+1)
	if err := errors.Join(err, t.module.FindObjectsFinal(s)); err != nil {
		return 0, err
	}
	switch len(found) {
	case 0:
		return 0, fmt.Errorf("%w: %q", errNoKey, label)
	case one:
		return found[0], nil
	}
	return 0, fmt.Errorf("several keys have the label %q, want one", label)
}

// key returns the key pair with a label.
func (t *token) key(label string) (kms.Key, error) {
	return with(context.Background(), t, func(s pkcs11.SessionHandle) (k kms.Key, err error) {
		public, err := t.find(s, pkcs11.CKO_PUBLIC_KEY, label)
		if err != nil {
			return k, err
		}
		private, err := t.find(s, pkcs11.CKO_PRIVATE_KEY, label)
		if err != nil {
			return k, err
		}
		point, err := t.module.GetAttributeValue(s, public, []*pkcs11.Attribute{pkcs11.NewAttribute(pkcs11.CKA_EC_POINT, nil)})
		if err != nil {
			return k, err
		}
		k.Public, err = kms.ParsePublicKey(point[0].Value)
		k.Sign = func(ctx context.Context, digest []byte) ([]byte, error) { return t.sign(ctx, private, digest) }
		return k, err
	})
}

// sign returns the signature of a digest.
func (t *token) sign(ctx context.Context, private pkcs11.ObjectHandle, digest []byte) ([]byte, error) {
	return with(ctx, t, func(s pkcs11.SessionHandle) ([]byte, error) {
		if err := t.module.SignInit(s, []*pkcs11.Mechanism{pkcs11.NewMechanism(pkcs11.CKM_ECDSA, nil)}, private); err != nil {
			return nil, err
		}
		return t.module.Sign(s, digest)
	})
}
