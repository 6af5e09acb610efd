package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/statedb"
)

// ErrSettings is returned if a directory was used with different settings before.
var ErrSettings = errors.New("store: the data directory was used with other settings; start the node with those of before, or with a new directory")

// Setting is a value in a node's configuration that must be the same at every start,
// because the data in the directory is wrong for any other value. For example, blocks
// that one service has received are not final for another service.
type Setting struct {
	Name  string // in words that operators know
	Value string // as text
}

// settingPrefix is the prefix of the database keys under which the settings are stored.
const settingPrefix = "setting/"

// Bind stores the settings in the directory. If an earlier start had different
// settings, the error wraps ErrSettings and nothing changes. A store in memory
// ignores the settings.
func (s *Store) Bind(settings ...Setting) error {
	if s == nil || s.db == nil {
		return nil
	}
	if err := compareSettings(s.db.Pebble(), settings); err != nil {
		return err
	}
	var records []statedb.Record
	for _, setting := range settings {
		records = append(records, statedb.Record{Key: []byte(settingPrefix + setting.Name), Value: []byte(setting.Value)})
	}
	all := &keys{s.db, nil}
	if err := all.Write(records); err != nil {
		return err
	}
	return all.Sync()
}

// compareSettings returns an error that names every setting whose value differs from
// the value in the database. It accepts settings that are not in the database yet.
func compareSettings(db *pebble.DB, settings []Setting) error {
	all := &keys{pebbledb.Borrow(db, nil), nil}
	var differ []string
	for _, setting := range settings {
		before, err := all.Get([]byte(settingPrefix + setting.Name))
		if err != nil {
			return err
		}
		if before != nil && string(before) != setting.Value {
			differ = append(differ, fmt.Sprintf("%s is %s, want %s", setting.Name, setting.Value, before))
		}
	}
	if differ != nil {
		return fmt.Errorf("%w: %s", ErrSettings, strings.Join(differ, "; "))
	}
	return nil
}
