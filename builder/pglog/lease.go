package pglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/journal"
)

// renewals is how often a lease is renewed before it ends.
const renewals = 3

// errMoved is returned if the lead or the end of the log is not as it was seen last.
var errMoved = errors.New("pglog: it has moved")

// takeLead takes the lead if it is as it was seen last, and this process has read the whole log.
// The row of the log gets the new epoch in the same transaction, so that the old leader can append
// nothing afterwards. If it returns true and an error, this process cannot use the lead.
func (l *Log) takeLead(ctx context.Context, from Lead) (led bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Patience)
	defer cancel()
	warned, err := l.withConn(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			if err = l.takeLease(ctx, tx, from); err != nil {
				return err
			}
			return l.takeLog(ctx, tx)
		})
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
	// The standby may not have the new epoch. A leader without an acknowledged write of its epoch
	// must not act.
	return true, l.write(l.at, func(context.Context, *pgxpool.Conn) (bool, error) { return false, nil })
}

// takeLease takes the lease from its holder.
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

// takeLog writes the epoch into the row of the log. If the row stays locked, because the old leader
// has stopped in the middle of an append, takeLog ends the session that has locked it.
func (l *Log) takeLog(ctx context.Context, tx pgx.Tx) error {
	var pid int
	if err := tx.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid); err != nil {
		return err
	}
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.endBlockers(watching, pid)
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
	l.promoted = before != "" && before != now
	l.mu.Unlock()
	_, err = tx.Exec(ctx, l.sql("update {name}_log set epoch = $1, holder = $2, system = $3"), l.epoch, l.holder, now)
	if err == nil { // no record stays for this process any more
		_, err = tx.Exec(ctx, l.sql("delete from {name}_member where member = $1"), l.member)
	}
	return err
}

// endBlockers ends the sessions for which a session of this process waits for long. The lease has
// ended, so they can be sessions of an old leader only.
func (l *Log) endBlockers(ctx context.Context, pid int) {
	const patience = 50 * time.Millisecond
	for backoff.Pause(ctx, patience) {
		tag, err := l.pool.Exec(ctx, "select pg_terminate_backend(b) from unnest(pg_blocking_pids($1::int)) b", pid)
		switch {
		case err != nil && ctx.Err() == nil:
			l.log.Warn("pglog: the session of the old leader cannot be ended", "err", err)
		case tag.RowsAffected() > 0:
			l.log.Warn("pglog: the old leader has the log locked; its session was ended")
		}
	}
}

// renew renews the lease until ctx ends, the log can no longer be written, another process has the
// lease, or the database has become another one, so that this process has to take the lead again.
func (l *Log) renew(ctx context.Context) {
	for backoff.Pause(ctx, l.cfg.Lease/renewals) {
		if l.broken() != nil {
			return
		}
		attempt, cancel := context.WithTimeout(ctx, l.cfg.Lease)
		tag, err := l.pool.Exec(attempt, l.sql(`
			update {name}_lease set beat = beat + 1
			where epoch = $1 and holder = $2 and (select system from {name}_log) = {system}`), l.epoch, l.holder)
		cancel()
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
