package jip2server

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/jamtest"
)

// ChangeFaults changes the chain's faults with change, which runs under the
// server's lock and must not call the server. With a journal the new faults are
// written down, so a server that restarts has them. The error wraps
// jamtest.ErrInvalidConfig or is the journal's; nothing changed then.
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

// undo sets the faults back after err. They were valid before.
func (s *Server) undo(before jamtest.Faults, err error) error {
	if undoing := s.chain.SetFaults(before); undoing != nil {
		return fmt.Errorf("%w; faults not set back: %w", err, undoing)
	}
	return err
}

// Inject adds a script to the chain, as jamtest.Chain.Inject does: its slots are
// counted from the current one. The error is the journal's; nothing changed then.
func (s *Server) Inject(script *jamtest.Script) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(append([]byte{recordScript}, script.String()...)); err != nil {
		return err
	}
	s.chain.Inject(script)
	return nil
}

// faultsLen is the length of a record of faults without its first byte.
const faultsLen = 8 + 8 + 4 + 4 + 1

// faultsRecord is loss, skip (8 bytes each), least and greatest latency (4 bytes
// each), and 1 if finality is stopped.
func faultsRecord(f jamtest.Faults) []byte {
	record := binary.LittleEndian.AppendUint64([]byte{recordFaults}, math.Float64bits(f.LossProbability))
	record = binary.LittleEndian.AppendUint64(record, math.Float64bits(f.SkipProbability))
	record = binary.LittleEndian.AppendUint32(record, uint32(f.ReportLatency[0]))
	record = binary.LittleEndian.AppendUint32(record, uint32(f.ReportLatency[1]))
	if f.FinalityStopped {
		return append(record, 1)
	}
	return append(record, 0)
}

// replayFaults sets the faults of a record of faultsLen bytes.
func (s *Server) replayFaults(data []byte) error {
	f := jamtest.Faults{
		LossProbability: math.Float64frombits(binary.LittleEndian.Uint64(data)),
		SkipProbability: math.Float64frombits(binary.LittleEndian.Uint64(data[8:])),
		ReportLatency: [2]jamq.Slot{
			jamq.Slot(binary.LittleEndian.Uint32(data[16:])), jamq.Slot(binary.LittleEndian.Uint32(data[20:])),
		},
		FinalityStopped: data[24] != 0,
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
