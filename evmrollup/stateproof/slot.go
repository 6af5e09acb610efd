package stateproof

import (
	"encoding/hex"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// ErrSlotLength and ErrSlotDigits are returned by ParseSlot for a text that is not a
// slot. The texts of both errors are those of geth.
var (
	ErrSlotLength = errors.New("storage key too long (want at most 32 bytes)")
	ErrSlotDigits = errors.New("invalid hex in storage key")
)

// ParseSlot decodes a storage slot from hexadecimal, with or without leading zeros and 0x. The
// error is ErrSlotLength or ErrSlotDigits.
func ParseSlot(text string) (common.Hash, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	if len(digits)%2 == 1 {
		digits = "0" + digits
	}
	if len(digits) > 2*common.HashLength {
		return common.Hash{}, ErrSlotLength
	}
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return common.Hash{}, ErrSlotDigits
	}
	return common.BytesToHash(raw), nil
}

// keyOf returns the text of a slot in an answer, as geth writes it. If the client wrote
// all 32 bytes, so does keyOf; otherwise it writes a number without leading zeros.
func keyOf(text string, slot common.Hash) string {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	if (len(digits)+1)/2 == common.HashLength {
		return slot.Hex()
	}
	return hexutil.EncodeBig(slot.Big())
}
