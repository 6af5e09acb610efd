package pglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/journal"
)

// Lead waits until this process leads. In the meantime it passes on the records
// that the leader writes: see builder.SharedLog. Call Replay first, unless the log
// is empty.
//
// A process takes the lead only after it has read all records, and only in one of
// these cases:
//
//   - The leader has given the lead away.
//   - The leader cannot write, because the database was replaced by its standby.
//   - The process has seen no renewal of the leader's lease for Config.Lease, by
//     its own clock.
//
// The error is that of record, replaced or ctx, or it wraps ErrBehind,
// journal.ErrLost, journal.ErrCorrupt or journal.ErrClosed. While the database
// cannot be reached, Lead waits.
func (l *Log) Lead(ctx context.Context, record func(record []byte) error, replaced func() error) error {
	if l.usable() == nil {
		return nil // it leads already
	}
	if err := l.broken(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.background, cancel)()
	l.writing.Lock()
	defer l.writing.Unlock()
	f := &follower{Log: l, record: record, replaced: replaced}
	err := f.run(ctx)
	switch closed := l.broken(); {
	case closed != nil:
		return closed
	case err == nil:
		l.begin()
	}
	return err
}

// begin makes this process the leader, and starts renewing its lease in the background.
func (l *Log) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leads = true
	l.renewing.Go(func() { l.renew(l.background) })
}

// follower is a process that does not lead. It reads the records that the leader writes,
// until it takes the lead itself. The caller holds Log.writing.
type follower struct {
	*Log
	record   func(record []byte) error
	replaced func() error

	lead     Lead      // the lead that the last look has found
	fenced   bool      // the database has become another one since, so that the leader cannot write
	moved    time.Time // when a look first found this lead; zero if that must be seen again
	reported time.Time // when this process last told the others its position
	failures int       // looks that have failed since one succeeded
}

// fatal is an error after which run gives up, because waiting does not help.
type fatal struct{ error }

// run reads records and passes them on until this process leads.
func (f *follower) run(ctx context.Context) error {
	for ctx.Err() == nil {
		more, led, err := f.follow(ctx)
		final := fatal{}
		switch {
		case led || ctx.Err() != nil:
		case errors.As(err, &final):
			return final.error
		case isPermanent(err):
			return err
		case err != nil:
			f.log.Warn("pglog: the log cannot be followed now", "err", err)
			f.moved = time.Time{} // no leader could renew its lease meanwhile
			f.failures++
		default:
			f.failures = 0
		}
		if led {
			return err
		}
		if !more {
			backoff.Pause(ctx, f.cfg.Poll)
		}
	}
	return ctx.Err()
}

// follow makes one attempt to read records that the leader has written. If there are none,
// and the leader may be replaced, it takes the lead and returns led.
func (f *follower) follow(ctx context.Context) (more, led bool, err error) {
	end, lead, err := f.look(ctx)
	if err != nil {
		return false, false, err
	}
	if f.moved.IsZero() || lead != f.lead {
		f.lead, f.moved = lead, time.Now()
	}
	f.reportIfDue(ctx)
	if !end.equal(f.at) {
		err := f.read(ctx)
		return err == nil, false, err
	}
	if !f.mayLead() {
		return false, false, nil
	}
	led, err = f.takeLead(ctx, lead)
	return false, led, err
}

// mayLead reports whether this process may take the lead.
func (f *follower) mayLead() bool {
	mine := f.lead.successor != "" && f.lead.successor == f.cfg.Address
	// The leader has given up the lead, cannot write to this database, or has named this
	// process as its successor. Otherwise its lease must have ended: this process has seen no
	// renewal for Config.Lease, by its own clock.
	return f.lead.free || f.fenced || mine || time.Since(f.moved) >= f.cfg.Lease
}

// look reads the end of the log and the present lead.
func (f *follower) look(ctx context.Context) (end position, lead Lead, err error) {
	err = f.attempt(ctx, f.failures, 0, func(ctx context.Context) error {
		// The third column is true if the database was replaced, for example by its standby,
		// after the leader took the lead.
		return f.pool.QueryRow(ctx, f.sql("select next, tip, system <> {system}, "+leadColumns+" from {name}_log, {name}_lease lease")).
			Scan(append([]any{&end.next, &end.tip, &f.fenced}, lead.fields()...)...)
	})
	return end, lead, err
}

// mostRead is the maximum number of entries to read at once. Reading also stops at
// mostBytes, so that little memory is needed.
const mostRead, mostBytes = 1000, 4 << 20

// read passes on some of the next records.
func (f *follower) read(ctx context.Context) error {
	var bodies [][]byte
	var next *stop
	err := f.attempt(ctx, f.failures, mostBytes, func(ctx context.Context) (err error) {
		bodies, next, err = f.fetch(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for _, body := range bodies {
		f.at = f.at.extend(body)
		if err := readEntry(body, f.record); err != nil {
			return fatal{err}
		}
	}
	have := f.at
	if next.behind != nil {
		have = have.replaced()
	}
	switch {
	case have.next < next.at.next: // the next call goes on
		return nil
	case !have.equal(next.at):
		return fatal{fmt.Errorf("%w: have hash %x before entry %d, want %x", journal.ErrLost, next.at.tip, next.at.next, have.tip)}
	case next.behind == nil:
		return nil
	}
	// The leader has replaced the records of the log by a checkpoint here. This process has
	// read all earlier records, so it already has that state and continues after the
	// checkpoint.
	f.at = *next.behind
	if err := f.replaced(); err != nil {
		return fatal{err}
	}
	return nil
}

// stop is the position up to which a follower can read. Usually this is the end of the
// log. If the leader has replaced the records by a checkpoint, the follower reads up to
// the checkpoint, skips it, and continues at the position behind.
type stop struct {
	at     position
	behind *position
}

// last returns the position after the last entry before the stop.
func (s *stop) last() int64 {
	if s.behind != nil {
		return s.at.next - 1
	}
	return s.at.next
}

// fetch reads the next entries of the log, but none after next.
func (f *follower) fetch(ctx context.Context) (bodies [][]byte, next *stop, err error) {
	err = pgx.BeginTxFunc(ctx, f.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if next, err = f.nextStop(ctx, tx); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, f.sql("select position, body from {name}_entry where position >= $1 and position < $2 order by position limit $3"), f.at.next, next.last(), mostRead)
		if err != nil {
			return err
		}
		defer rows.Close()
		size := 0
		for want := f.at.next; rows.Next() && size < mostBytes; want++ {
			var number int64
			var body []byte
			if err := rows.Scan(&number, &body); err != nil {
				return err
			}
			if number != want {
				return fatal{fmt.Errorf("%w: entry %d follows, want %d", ErrBehind, number, want)}
			}
			bodies = append(bodies, body)
			size += len(body)
		}
		return rows.Err()
	})
	if err == nil && len(bodies) == 0 && f.at.next < next.last() {
		err = fatal{fmt.Errorf("%w: entry %d is missing", ErrBehind, f.at.next)}
	}
	return bodies, next, err
}

// nextStop returns how far the follower can read: up to the leader's next call of Replace
// or, if there is none, to the end of the log.
func (f *follower) nextStop(ctx context.Context, tx pgx.Tx) (*stop, error) {
	next := new(stop)
	if err := tx.QueryRow(ctx, f.sql("select next, tip from {name}_log")).Scan(&next.at.next, &next.at.tip); err != nil {
		return nil, err
	}
	if next.at.next < f.at.next {
		return nil, fatal{fmt.Errorf("%w: it ends at entry %d, and this process has read %d", journal.ErrLost, next.at.next, f.at.next)}
	}
	var behind position
	err := tx.QueryRow(ctx, f.sql("select position + 1, base, next, tip from {name}_replaced where position >= $1 order by position limit 1"), f.at.next).
		Scan(&next.at.next, &next.at.tip, &behind.next, &behind.tip)
	switch {
	case err == nil:
		next.behind = &behind
	case !errors.Is(err, pgx.ErrNoRows):
		return nil, err
	}
	return next, nil
}

// reportIfDue tells the database how far this process has read, a few times per lease.
func (f *follower) reportIfDue(ctx context.Context) {
	if time.Since(f.reported) < f.cfg.Lease/renewals {
		return
	}
	f.reported = time.Now()
	if err := f.report(ctx, f.at.next); err != nil && ctx.Err() == nil {
		f.log.Warn("pglog: the others do not learn the position of this process", "err", err)
	}
}

// report stores which entry this process reads next. The log keeps the entries from
// there on: see Config.Keep.
func (l *Log) report(ctx context.Context, next int64) error {
	return l.attempt(ctx, 0, 0, func(ctx context.Context) error {
		_, err := l.pool.Exec(ctx, l.sql(`insert into {name}_member values ($1, $2, clock_timestamp())
			on conflict (member) do update set position = $2, seen = clock_timestamp()`), l.member, next)
		return err
	})
}

// Lead describes the leader of a log, so that other processes can find it.
type Lead struct {
	// Epoch counts how often a process has taken the lead of the log. It is 0 if no process has
	// led yet.
	Epoch uint64
	// Address is Config.Address of the leader. It is empty if no process has led yet.
	Address string

	beat      int64
	free      bool
	successor string
}

const leadColumns = "lease.epoch, address, beat, free, successor"

func (l *Lead) fields() []any { return []any{&l.Epoch, &l.Address, &l.beat, &l.free, &l.successor} }

// Leader returns the process that leads the log. If no process leads at the moment, it
// returns the last one that has led.
func (l *Log) Leader(ctx context.Context) (lead Lead, err error) {
	err = l.attempt(ctx, 0, 0, func(ctx context.Context) error {
		return l.pool.QueryRow(ctx, l.sql("select "+leadColumns+" from {name}_lease lease")).Scan(lead.fields()...)
	})
	return lead, err
}

// Member is a process that follows the log.
type Member struct {
	// Name is Config.Address of the process, or a random name if the address is empty.
	Name string
	// Lag is the number of the leader's writes that the process had not read yet when it was
	// last seen.
	Lag uint64
	// Seen is the time since the process was last seen, by the clock of the database. A process
	// that has closed its log is no longer a member. A process that was killed stays a member
	// until Config.Keep has passed.
	Seen time.Duration
}

// Members returns the following processes, sorted by name.
func (l *Log) Members(ctx context.Context) (members []Member, err error) {
	err = l.attempt(ctx, 0, 0, func(ctx context.Context) error {
		rows, err := l.pool.Query(ctx, l.sql(`select member, next - position, clock_timestamp() - seen from {name}_log, {name}_member
			where seen > clock_timestamp() - $1::interval order by member`), l.cfg.Keep)
		if err != nil {
			return err
		}
		members, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Member])
		return err
	})
	return members, err
}

// HandOver ends the lead of this process in favor of the process with the given
// address, or of any process if address is empty. Before the call, Run of the
// builder must have returned. If the chosen process does not take the lead within
// Config.Lease, any other process may take it. The log can still be read and closed
// afterwards. The error wraps journal.ErrFenced if this process does not lead.
func (l *Log) HandOver(ctx context.Context, address string) error {
	if err := l.usable(); err != nil { // also while Lead runs
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.stop()
	l.renewing.Wait()
	_ = l.fail(fmt.Errorf("%w: the lead was handed over to %s", journal.ErrFenced, address))
	return l.attempt(ctx, 0, 0, func(ctx context.Context) error {
		_, err := l.pool.Exec(ctx, l.sql("update {name}_lease set successor = $3, free = $4, beat = beat + 1 where epoch = $1 and holder = $2"), l.epoch, l.holder, address, address == "")
		return err
	})
}
