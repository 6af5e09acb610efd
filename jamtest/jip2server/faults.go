package jip2server

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// ChangeFaults passes the chain's current faults to change, which may modify them, and
// sets the result. The server's lock is held during change, so change must not call the
// server. The journal records the new faults, so that a restarted server has them too.
//
// The error wraps jamtest.ErrInvalidConfig or is that of the journal. After an error,
// the faults are unchanged.
func (s *Server) ChangeFaults(change func(*jamtest.Faults)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.chain.Faults()
	after := before
	change(&after)
	if err := s.chain.SetFaults(after); err != nil {
		return err
	}
	if err := s.write(faultsRecord(after)); err != nil {
		return s.undo(before, err)
	}
	return nil
}

// undo restores the faults before a change that failed with err, and returns err.
// Restoring should not fail, because the old faults were valid.
func (s *Server) undo(before jamtest.Faults, err error) error {
	if undoing := s.chain.SetFaults(before); undoing != nil {
		return fmt.Errorf("%w; faults not set back: %w", err, undoing)
	}
	return err
}

// Inject adds the faults of a script to the chain. As in jamtest.Chain.Inject, the
// slots in the script are counted from the current slot. If the journal fails, Inject
// returns its error and changes nothing.
func (s *Server) Inject(script *jamtest.Script) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(append([]byte{recordScript}, script.String()...)); err != nil {
		return err
	}
	s.chain.Inject(script)
	return nil
}

// faultsLen is the length in bytes of a faults record without its kind.
const faultsLen = 8 + 8 + 4 + 4 + 1

// The bits of the last byte of a record with faults.
const (
	flagFinalityStopped = 1 << iota
	flagCongested
)

// faultsRecord encodes faults for the journal. The kind is followed by the loss and
// skip probabilities (8 bytes each), the minimum and maximum report latency (4 bytes
// each), and a byte of flags. Its lowest bit is set if finality is stopped, and its
// second bit if the chain is congested.
func faultsRecord(f jamtest.Faults) []byte {
	record := binary.LittleEndian.AppendUint64([]byte{recordFaults}, math.Float64bits(f.LossProbability))
	record = binary.LittleEndian.AppendUint64(record, math.Float64bits(f.SkipProbability))
	record = binary.LittleEndian.AppendUint32(record, uint32(f.ReportLatency[0]))
	record = binary.LittleEndian.AppendUint32(record, uint32(f.ReportLatency[1]))
	var flags byte
	if f.FinalityStopped {
		flags |= flagFinalityStopped
	}
	if f.Congested {
		flags |= flagCongested
	}
	return append(record, flags)
}

// replayFaults sets the faults from a record, whose data has faultsLen bytes.
func (s *Server) replayFaults(data []byte) error {
	f := jamtest.Faults{
		LossProbability: math.Float64frombits(binary.LittleEndian.Uint64(data)),
		SkipProbability: math.Float64frombits(binary.LittleEndian.Uint64(data[8:])),
		ReportLatency: [2]jamq.Slot{
			jamq.Slot(binary.LittleEndian.Uint32(data[16:])), jamq.Slot(binary.LittleEndian.Uint32(data[20:])),
		},
		FinalityStopped: data[24]&flagFinalityStopped != 0,
		Congested:       data[24]&flagCongested != 0,
	}
	if err := s.chain.SetFaults(f); err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	return nil
}

// replayScript injects the script of a record.
func (s *Server) replayScript(data []byte) error {
	script, err := jamtest.ParseScript(string(data))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrJournal, err)
	}
	s.chain.Inject(script)
	return nil
}
