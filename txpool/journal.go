package txpool

import "fmt"

// Journal keeps records.
type Journal interface {
	// Append writes records down, all or none. When it returns nil they are safe.
	Append(records ...[]byte) error
}

func writeEvents(j Journal, events []Event) error { return nil }
func journalError(err error) error                { return fmt.Errorf("%w: %w", ErrJournal, err) }
