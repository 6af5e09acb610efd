package codec

import (
	"encoding/binary"

	"github.com/jamq/jamq"
)

// LastAccumulation returns the slot in which a service was accumulated last, from the value
// of its account in the state, or 0 if there was none. The value ends with the number of
// items, the slots of the creation and of the last accumulation, and the parent, 4 bytes
// each (Gray Paper D.2). It returns 0 for a value that is too short for an account.
func LastAccumulation(account []byte) jamq.Slot {
	const last, word, least = 8, 4, 88
	if len(account) < least {
		return 0
	}
	at := account[len(account)-last:]
	return jamq.Slot(binary.LittleEndian.Uint32(at[:word]))
}
