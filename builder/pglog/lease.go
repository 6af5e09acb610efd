package pglog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/internal/backoff"
)

// lead waits until this process has the lead. It asks again when the lease of the present leader
// ends, and several times before, because a leader that stops gives its lead away.
func (l *Log) lead(ctx context.Context) error {
	told := false
	for {
		led, err := l.takeLead(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isPermanent(err):
			return err
		case err != nil:
			l.log.Warn("pglog: the lead cannot be taken yet", "err", err)
		case led:
			l.log.Info("pglog: this process leads", "log", l.cfg.Name, "epoch", l.epoch, "records", l.at.next, "promoted", l.promoted)
			return nil
		case !told:
			l.log.Info("pglog: another process leads; waiting", "log", l.cfg.Name)
			told = true
		}
		if !backoff.Pause(ctx, l.cfg.Lease/renewals) {
			return ctx.Err()
		}
	}
}

// renewals is how often a lease is renewed before it ends, and how often others look.
const renewals = 3

// takeLead takes the lead if the lease has ended. The row of the log gets the new epoch in the same
// transaction, so that the old leader can append nothing afterwards.
func (l *Log) takeLead(ctx context.Context) (led bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.cfg.Patience)
	defer cancel()
	warned, err := l.withConn(ctx, func(conn *pgxpool.Conn) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) (err error) {
			led, err = l.takeLease(ctx, tx)
			if err != nil || !led {
				return err
			}
			return l.takeLog(ctx, tx)
		})
	})
	switch {
	case err != nil || !led:
		return false, err
	case warned == "":
		return true, nil
	}
	// The standby may not have the new epoch. A leader without an acknowledged write of its epoch
	// must not act.
	return true, l.write(l.at, func(context.Context, *pgxpool.Conn) (bool, error) { return false, nil })
}

// takeLease takes the lease if it has ended.
func (l *Log) takeLease(ctx context.Context, tx pgx.Tx) (led bool, err error) {
	err = tx.QueryRow(ctx, l.sql(`
		update {name}_lease set epoch = epoch + 1, holder = $1, address = $2, expires = clock_timestamp() + $3
		where expires <= clock_timestamp() returning epoch`), l.holder, l.cfg.Address, l.cfg.Lease).Scan(&l.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
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
	var before, now string
	err := tx.QueryRow(ctx, l.sql("select next, tip, system, {system} from {name}_log for update")).Scan(&l.at.next, &l.at.tip, &before, &now)
	if err != nil {
		return err
	}
	l.promoted = before != "" && before != now
	_, err = tx.Exec(ctx, l.sql("update {name}_log set epoch = $1, holder = $2, system = $3"), l.epoch, l.holder, now)
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

// renew renews the lease until ctx ends or another process has it.
func (l *Log) renew(ctx context.Context) {
	for backoff.Pause(ctx, l.cfg.Lease/renewals) {
		attempt, cancel := context.WithTimeout(ctx, l.cfg.Lease)
		tag, err := l.pool.Exec(attempt, l.sql("update {name}_lease set expires = clock_timestamp() + $3 where epoch = $1 and holder = $2"), l.epoch, l.holder, l.cfg.Lease)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.log.Warn("pglog: the lease was not renewed", "err", err)
		case tag.RowsAffected() == 0:
			_ = l.fail(fmt.Errorf("%w: the lease has another holder", ErrFenced))
			return
		}
	}
}

// Lead describes the process that leads, for others.
type Lead struct {
	// Epoch counts the leads of the log from 1. It is 0 if no process has led yet.
	Epoch uint64
	// Address is Config.Address of the process.
	Address string
	// Ends is when the lease ends unless it is renewed, by the clock of the database. A process
	// that has closed its log has a lease that ended long ago.
	Ends time.Time
}

// Leader returns the process that leads a log, or has led it last. cfg needs URL and Name only. The
// tables must be there.
func Leader(ctx context.Context, cfg Config) (lead Lead, err error) {
	pool, err := connect(ctx, cfg.URL)
	if err != nil {
		return lead, fmt.Errorf("%w: %w", ErrInvalidConfig, err)
	}
	defer pool.Close()
	if !validName.MatchString(cfg.Name) {
		return lead, fmt.Errorf("%w: Name is %.60q", ErrInvalidConfig, cfg.Name)
	}
	l := &Log{cfg: cfg, pool: pool}
	err = pool.QueryRow(ctx, l.sql("select epoch, address, greatest(expires, 'epoch') from {name}_lease")).Scan(&lead.Epoch, &lead.Address, &lead.Ends)
	return lead, err
}
