package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/cockroachdb/pebble"

	"github.com/jamq/jamq/pebble/pebbledb"
	"github.com/jamq/jamq/statedb"
)

// ErrSettings is wrapped by the error of a directory that was used with other settings.
var ErrSettings = errors.New("store: the data directory was used with other settings; start the node with those of before, or with a new directory")

// Setting is a value of a node's configuration that must be the same at every start. The data
// in the directory is wrong under another one: for example, the blocks that a service has
// received are not final for another service.
type Setting struct {
	Name  string // in words that an operator knows
	Value string // as text
}

// settingPrefix is the prefix of the keys that have the settings.
const settingPrefix = "setting/"

// Bind keeps settings in the directory. The error wraps ErrSettings if an earlier start had
// other ones; nothing changes then. A store in memory keeps none.
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

// compareSettings returns an error that names all settings which differ from those in a
// database. A setting that the database does not have yet differs from none.
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
