package pglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/journal"
)

// renewals is the number of renewals in the duration of a lease.
const renewals = 3

// errMoved is returned if the lead was taken, renewed, given up or handed over, or the log
// was written to, since this process last looked. This process must look again before it
// may lead.
var errMoved = errors.New("pglog: it has moved")

// takeLead takes the lead if it has not changed since it was last read.
func (f *follower) takeLead(ctx context.Context, from Lead) (led bool, err error) {
	l, warned := f.Log, ""
	err = l.attempt(ctx, f.failures, 0, func(ctx context.Context) (err error) {
		warned, err = l.withConn(ctx, func(conn *pgxpool.Conn) error {
			return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
				var pid int
				err := tx.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid)
				if err == nil {
					err = l.endingBlockers(ctx, pid, l.cfg.answerTime()/2, func() error { return l.takeLease(ctx, tx, from) })
				}
				if err != nil {
					return err
				}
				const patience = 50 * time.Millisecond // the lease has ended
				// One transaction takes the lease and writes the new epoch into the row of the
				// log. From then on the condition of the old leader's writes is false.
				return l.endingBlockers(ctx, pid, patience, func() error { return l.takeLog(ctx, tx) })
			})
		})
		return err
	})
	switch {
	case errors.Is(err, errMoved):
		return false, nil
	case err != nil:
		return false, err
	}
	l.log.Info("pglog: this process leads", "log", l.cfg.Name, "epoch", l.epoch, "records", l.at.next, "promoted", l.promoted)
	if warned == "" {
		return true, nil
	}
	// The database has warned that its standby may not have the new epoch. If that standby
	// were promoted, the old leader could write again. This process therefore waits until a
	// write of its epoch is acknowledged.
	return true, l.write(l.at, 0, func(context.Context, *pgxpool.Conn) (bool, error) { return false, nil })
}

// takeLease makes this process the holder of the lease that it has last read.
func (l *Log) takeLease(ctx context.Context, tx pgx.Tx, from Lead) error {
	err := tx.QueryRow(ctx, l.sql(`
		update {name}_lease set epoch = epoch + 1, holder = $1, address = $2, beat = 0, free = false, successor = ''
		where epoch = $3 and beat = $4 and free = $5 and successor = $6 returning epoch`),
		l.holder, l.cfg.Address, from.Epoch, from.beat, from.free, from.successor).Scan(&l.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return errMoved
	}
	return err
}

// takeLog writes this process's epoch into the row of the log, so that a write of the old
// leader, which names the old epoch, fails.
func (l *Log) takeLog(ctx context.Context, tx pgx.Tx) error {
	var end position
	var before, now string
	err := tx.QueryRow(ctx, l.sql("select next, tip, written, {system} from {name}_log for update")).Scan(&end.next, &end.tip, &before, &now)
	switch {
	case err != nil:
		return err
	case !end.equal(l.at):
		return errMoved
	}
	l.mu.Lock()
	l.promoted = before != "" && before != now && !l.cfg.Synchronous
	l.mu.Unlock()
	_, err = tx.Exec(ctx, l.sql("update {name}_log set epoch = $1, holder = $2, system = $3"), l.epoch, l.holder, now)
	if err == nil { // no record stays for this process any more
		_, err = tx.Exec(ctx, l.sql("delete from {name}_member where member = $1"), l.member)
	}
	return err
}

// endingBlockers calls f, which locks a row from the database session pid. If another
// session keeps the row locked for longer than patience, endingBlockers ends that session.
func (l *Log) endingBlockers(ctx context.Context, pid int, patience time.Duration, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for backoff.Pause(ctx, patience) {
			// The session belongs to a process that stopped in the middle of a write, or whose
			// connection is dead without the database having noticed.
			tag, err := l.pool.Exec(ctx, "select pg_terminate_backend(b) from unnest(pg_blocking_pids($1::int)) b", pid)
			switch {
			case err != nil && ctx.Err() == nil:
				l.log.Warn("pglog: the session that has the log locked cannot be ended", "err", err)
			case tag.RowsAffected() > 0:
				l.log.Warn("pglog: another session had the log locked, and was ended")
			}
		}
	}()
	return f()
}

// renew renews the lease of this process until ctx ends or the lease is lost.
func (l *Log) renew(ctx context.Context) {
	for backoff.Pause(ctx, l.cfg.Lease/renewals) {
		if l.broken() != nil {
			return
		}
		var tag pgconn.CommandTag
		err := l.attempt(ctx, 0, 0, func(ctx context.Context) (err error) {
			tag, err = l.pool.Exec(ctx, l.sql(`
				update {name}_lease set beat = beat + 1
				where epoch = $1 and holder = $2 and (select system from {name}_log) = {system}`), l.epoch, l.holder)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Warn("pglog: the lease was not renewed", "err", err)
		case tag.RowsAffected() == 0:
			_ = l.fail(fmt.Errorf("%w: the lease has another holder, or the database has become another one", journal.ErrFenced))
			return
		}
	}
}
