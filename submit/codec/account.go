package codec

import (
	"encoding/binary"

	"github.com/jamq/jamq"
)

// LastAccumulation returns the slot in which a service was last accumulated; 0
// means never. account is the value of the service's account in the JAM state. The
// value ends with four numbers of 4 bytes each (Gray Paper D.2): the number of
// items, the slots of the creation and of the last accumulation, and the parent.
// For a value that is too short to be an account, LastAccumulation returns 0.
func LastAccumulation(account []byte) jamq.Slot {
	const last, word, least = 8, 4, 88
	if len(account) < least {
		return 0
	}
	at := account[len(account)-last:]
	return jamq.Slot(binary.LittleEndian.Uint32(at[:word]))
}
