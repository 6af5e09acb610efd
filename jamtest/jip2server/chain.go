package jip2server

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/blake2b"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// Journal stores the inputs of a chain as records, so that a server can continue the
// chain after a restart. Append returns after its records are durable. Replay calls f
// with each stored record, in order. Package journal contains implementations.
type Journal interface {
	Append(records ...[]byte) error
	Replay(f func(record []byte) error) error
}

// ErrJournal is returned if a journal is malformed, or belongs to another chain or
// configuration.
var ErrJournal = errors.New("jip2server: journal does not fit")

// The first byte of a record is its kind.
const (
	recordGenesis = 'G' // start slot and configuration: see genesis.go
	recordSlot    = 'S' // slot that the chain advanced to
	recordPackage = 'P' // core, guarantor, encoded package
	recordFaults  = 'F' // jamtest.Faults
	recordScript  = 'I' // text of an injected script
)

// openJournal restores the chain from an existing journal, or creates a new chain and
// begins a journal.
func (s *Server) openJournal() error {
	records := 0
	if s.cfg.Journal != nil {
		err := s.cfg.Journal.Replay(func(record []byte) error {
			records++
			if err := s.replay(records == 1, record); err != nil {
				return fmt.Errorf("record %d: %w", records, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if records > 0 {
		return nil
	}
	if err := s.begin(s.cfg.Chain.StartSlot); err != nil {
		return err
	}
	return s.write(genesisRecord(&s.cfg.Chain))
}

// begin creates the chain with the given start slot.
func (s *Server) begin(start jamq.Slot) (err error) {
	s.cfg.Chain.StartSlot = start
	s.chain, err = jamtest.New(s.cfg.Chain)
	return err
}

func (s *Server) replay(first bool, record []byte) error {
	if len(record) == 0 || first != (record[0] == recordGenesis) {
		return fmt.Errorf("%w: unexpected record of %d bytes", ErrJournal, len(record))
	}
	kind, data := record[0], record[1:]
	switch {
	case kind == recordGenesis:
		return s.replayGenesis(data)
	case kind == recordSlot && len(data) == 4:
		s.chain.AdvanceTo(jamq.Slot(binary.LittleEndian.Uint32(data)))
		return nil
	case kind == recordPackage && len(data) > 6:
		core, guarantor := binary.LittleEndian.Uint16(data), binary.LittleEndian.Uint32(data[2:])
		if err := s.submit(data[6:], jamq.CoreIndex(core), int(guarantor)); !errors.Is(err, jamtest.ErrRefused) {
			return err
		}
		return nil // it was refused before the restart, too
	case kind == recordFaults && len(data) == faultsLen:
		return s.replayFaults(data)
	case kind == recordScript:
		return s.replayScript(data)
	}
	return fmt.Errorf("%w: record %q of %d bytes", ErrJournal, kind, len(record))
}

func (s *Server) write(record []byte) error {
	if s.cfg.Journal == nil {
		return nil
	}
	return s.cfg.Journal.Append(record)
}

// Step advances the chain by one slot and notifies the subscribers. It returns an error
// only if the journal fails.
func (s *Server) Step() (jamtest.Update, error) {
	s.mu.Lock()
	next := s.chain.Slot().Add(1)
	s.mu.Unlock()
	u, _, err := s.advance(next)
	return u, err
}

func (s *Server) advance(slot jamq.Slot) (u jamtest.Update, moved bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot <= s.chain.Slot() {
		return u, false, nil
	}
	if err := s.write(binary.LittleEndian.AppendUint32([]byte{recordSlot}, uint32(slot))); err != nil {
		return u, false, err
	}
	u = s.chain.AdvanceTo(slot)
	if s.cfg.Observe != nil {
		s.cfg.Observe(u)
	}
	s.notify()
	return u, true, nil
}

// Run advances the chain in real time, one slot of the chain for each slot of the
// clock. It runs until ctx ends or the journal fails, and returns the error of either.
// Slots that pass while Run is not active are skipped.
func (s *Server) Run(ctx context.Context) error {
	clock := jamq.NewSlotClock(s.cfg.Chain.Spec)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
		now := time.Now()
		if _, _, err := s.advance(clock.SlotAt(now)); err != nil {
			return err
		}
		timer.Reset(time.Until(clock.Next(now)))
	}
}

// View calls f with the chain. f must not keep the chain, change it or call the server,
// because the server's lock is held.
func (s *Server) View(f func(*jamtest.Chain)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.chain)
}

// take sends a package to a guarantor and records this in the journal. Each submission
// of the same package reaches a different guarantor, as on a node that chooses at
// random.
func (s *Server) take(core jamq.CoreIndex, raw []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	hash := jamq.PackageHash(blake2b.Sum256(raw))
	guarantor := s.sent[hash]
	record := binary.LittleEndian.AppendUint16([]byte{recordPackage}, uint16(core))
	record = append(binary.LittleEndian.AppendUint32(record, uint32(guarantor)), raw...)
	if err := s.write(record); err != nil {
		return err
	}
	return s.submit(raw, core, guarantor)
}

// submit passes a package to the chain, for a call or during a replay. A package that a
// guarantor refuses does not change the chain.
func (s *Server) submit(raw []byte, core jamq.CoreIndex, guarantor int) error {
	p, err := jamtest.Work(s.codec, raw)
	if err != nil {
		return err
	}
	s.sent[p.Hash] = guarantor + 1
	return s.chain.Submit(p, core, guarantor)
}
