package proof

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// MarshalText returns the key in hexadecimal. The error is always nil.
func (k ValidatorKey) MarshalText() ([]byte, error) { return hexutil.Bytes(k[:]).MarshalText() }

// UnmarshalText reads the key from hexadecimal with 0x. It does not validate
// the key.
func (k *ValidatorKey) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("ValidatorKey", text, k[:])
}

// MarshalText returns the key in hexadecimal. The error is always nil.
func (k BLSKey) MarshalText() ([]byte, error) { return hexutil.Bytes(k[:]).MarshalText() }

// UnmarshalText reads the key from hexadecimal with 0x. It does not validate
// the key.
func (k *BLSKey) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("BLSKey", text, k[:])
}

// decodeStrictly decodes one JSON value, and refuses input that readers could
// understand differently.
func decodeStrictly(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data follows the document")
	}
	// Package encoding/json also accepts names in another case, null for any value, and
	// repeated names. To refuse all of these, encode the decoded value again: it must equal
	// the input, except for white space and the order of names.
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var have, want any
	if err := json.Unmarshal(data, &have); err != nil {
		return err
	}
	if err := json.Unmarshal(again, &want); err != nil {
		return err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		return err
	}
	// A repeated name adds length.
	if !reflect.DeepEqual(have, want) || compact.Len() != len(again) {
		return errors.New("a name is missing, repeated or in the wrong case, or a value is not in its canonical form")
	}
	return nil
}
