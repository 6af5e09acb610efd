package ledger

import (
	"fmt"

	"github.com/ethereum/go-ethereum/rlp"

	"github.com/jamq/jamq/statedb"
)

// SetImported stores the pool's records of an exported chain that is being imported. The
// rollup reads them when it is first started, and then calls ForgetImported. They are
// durable after the next Sync.
func (l *Ledger) SetImported(records [][]byte) error {
	raw, err := rlp.EncodeToBytes(records)
	if err != nil {
		return err
	}
	return l.old.disk.Write([]statedb.Record{{Key: key(keyImported), Value: raw}})
}

// Imported returns the records that SetImported has stored, or nil if there are
// none.
func (l *Ledger) Imported() (records [][]byte, err error) {
	if l.old == nil {
		return nil, nil
	}
	raw, err := l.old.get(key(keyImported))
	if err != nil || raw == nil {
		return nil, err
	}
	if err := rlp.DecodeBytes(raw, &records); err != nil {
		return nil, fmt.Errorf("%w: the imported records: %w", ErrDamaged, err)
	}
	return records, nil
}

// ForgetImported deletes the records of SetImported.
func (l *Ledger) ForgetImported() error {
	return l.old.disk.Write([]statedb.Record{{Key: key(keyImported)}})
}
