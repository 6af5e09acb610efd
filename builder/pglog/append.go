package pglog

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/journal"
)

// mine is the SQL condition that every write to the log contains. It is true only if this
// process still leads, if no other process has written in the meantime, and if the
// database is still the same. A former leader therefore cannot write. $1 to $4 are the
// arguments that fence returns.
const mine = `id = 1 and epoch = $1 and holder = $2 and next = $3 and tip = $4 and system = {system}`

func (l *Log) fence(more ...any) []any {
	return append([]any{l.epoch, l.holder, l.at.next, l.at.tip}, more...)
}

// Append implements journal.Journal. If the database cannot be reached, Append keeps
// trying for at most Config.Patience. If the database answers that its disk is full,
// Append keeps trying without a limit.
//
// Errors wrap journal.ErrTooLarge, journal.ErrClosed, journal.ErrFenced or ErrUnknown,
// or come from the database. After any error except journal.ErrTooLarge, this process
// can no longer write to the log.
func (l *Log) Append(records ...[]byte) error {
	if err := journal.CheckSize(records); err != nil {
		return err
	}
	if err := l.usable(); err != nil || len(records) == 0 { // also while Lead runs
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	entry := appendEntry(nil, records)
	to := l.at.extend(entry)
	return l.write(to, len(entry), func(ctx context.Context, conn *pgxpool.Conn) (bool, error) {
		tag, err := conn.Exec(ctx, l.sql(`
			{tag} with fence as (update {name}_log set next = $5, tip = $6, written = system where `+mine+` returning 1)
			insert into {name}_entry (position, body) select $3, $7 from fence`),
			l.fence(to.next, to.tip, entry)...)
		return tag.RowsAffected() == 1, err
	})
}

// Replace implements journal.Journal. Errors are those of Append.
func (l *Log) Replace(records ...[]byte) error {
	if err := journal.CheckSize(records); err != nil {
		return err
	}
	if err := l.usable(); err != nil {
		return err
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	if err := l.usable(); err != nil {
		return err
	}
	from := l.at.replaced()
	to := from
	size := 0
	entries := make([][]byte, len(records)) // one for each record, because they can be large
	for i := range records {
		entries[i] = appendEntry(nil, records[i:i+1])
		to = to.extend(entries[i])
		size += len(entries[i])
	}
	return l.write(to, size, func(ctx context.Context, conn *pgxpool.Conn) (fits bool, err error) {
		err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			var keep int64 // position of the first entry that others may still need
			err := tx.QueryRow(ctx, l.sql(`select least(first, (select min(position) from {name}_member where seen > clock_timestamp() - $1::interval)) from {name}_log`),
				l.cfg.Keep).Scan(&keep)
			if err == nil {
				_, err = tx.Exec(ctx, "select set_config('application_name', $1, true)", l.tag())
			}
			if err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, l.sql("update {name}_log set first = next + 1, next = $5, base = $6, tip = $7, written = system where "+mine), l.fence(to.next, from.tip, to.tip)...)
			if err != nil || tag.RowsAffected() == 0 {
				return err
			}
			fits = true
			if err := l.trim(ctx, tx, keep); err != nil {
				return err
			}
			_, err = tx.Exec(ctx, l.sql("insert into {name}_replaced values ($1, $2, $3, $4)"), l.at.next, from.tip, to.next, to.tip)
			if err != nil {
				return err
			}
			_, err = tx.CopyFrom(ctx, pgx.Identifier{l.cfg.Name + "_entry"}, []string{"position", "body"}, pgx.CopyFromSlice(len(entries), func(i int) ([]any, error) {
				return []any{from.next + int64(i), entries[i]}, nil
			}))
			return err
		})
		return fits, err
	})
}

// trim removes the entries before a position, because no process needs them any more.
func (l *Log) trim(ctx context.Context, tx pgx.Tx, before int64) error {
	_, err := tx.Exec(ctx, l.sql("delete from {name}_entry where position < $1"), before)
	if err == nil {
		_, err = tx.Exec(ctx, l.sql("delete from {name}_replaced where position < $1"), before)
	}
	return err
}

// write changes the log by calling change, until the outcome is known.
func (l *Log) write(to position, size int, change func(context.Context, *pgxpool.Conn) (fits bool, err error)) error {
	// While the database answers that its disk is full, the write is tried again without a
	// limit. After any other failure, write gives up when Config.Patience is over. After Close
	// it waits for the lease at most.
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	patience := time.AfterFunc(l.cfg.Patience, giveUp)
	defer patience.Stop()
	closed := func() { patience.Reset(min(l.cfg.Lease, l.cfg.Patience)) }
	defer context.AfterFunc(l.background, closed)()
	written := false // the log ends at to, but perhaps only in the memory of this database
	var last error
	for failures := 0; ; {
		var warned string
		err := l.attempt(ctx, failures, size, func(ctx context.Context) (err error) {
			warned, err = l.withConn(ctx, func(conn *pgxpool.Conn) (err error) {
				if failures > 0 {
					err = l.endAttempts(ctx, conn)
				}
				if err == nil && !written {
					written, err = change(ctx, conn)
					if err == nil && !written {
						written, err = l.isWritten(ctx, conn, to)
					}
				} else if err == nil {
					err = l.confirm(ctx, conn, to)
				}
				return err
			})
			return err
		})
		switch {
		case err == nil && warned == "":
			l.at = to
			return nil
		case err == nil:
			last = fmt.Errorf("%w: the commit was not acknowledged by the standby: %s", ErrUnknown, warned)
		case errors.Is(err, journal.ErrFenced), isPermanent(err):
			return l.fail(err)
		case isFull(err) && l.background.Err() == nil:
			patience.Reset(l.cfg.Patience)
			written, last = false, err
		default:
			written, last = false, err
		}
		failures++
		l.log.Warn("pglog: a write is tried again", "failures", failures, "err", last)
		if !backoff.Pause(ctx, backoff.Wait(retryPause, mostRetryPause, failures)) {
			return l.fail(fmt.Errorf("%w for %v: %w", ErrUnknown, l.cfg.Patience, last))
		}
	}
}

// tag returns the name that marks this process's writes among the database's sessions.
func (l *Log) tag() string { return "jamq " + hex.EncodeToString(l.holder) }

// endAttempts ends the database sessions of earlier attempts of a write.
func (l *Log) endAttempts(ctx context.Context, conn *pgxpool.Conn) error {
	// An earlier attempt may have lost its connection without the database having noticed. Its
	// session would keep the row of the log locked, so it is ended.
	_, err := conn.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity
		where pid <> pg_backend_pid() and state <> 'idle' and (application_name = $1 or position('/* ' || $1 || ' */' in query) > 0)`, l.tag())
	return err
}

// isWritten reports whether an earlier attempt of the same write has succeeded. This is
// unknown if the connection broke before the answer of the database arrived.
func (l *Log) isWritten(ctx context.Context, conn *pgxpool.Conn, to position) (bool, error) {
	var have position
	var epoch int64
	var holder []byte
	var now string
	err := conn.QueryRow(ctx, l.sql("select epoch, holder, next, tip, system from {name}_log")).Scan(&epoch, &holder, &have.next, &have.tip, &now)
	switch {
	case err != nil:
		return false, err
	case epoch != l.epoch || !bytes.Equal(holder, l.holder):
		return false, fmt.Errorf("%w: the epoch is %d, and that of this process is %d", journal.ErrFenced, epoch, l.epoch)
	case have.next == to.next && bytes.Equal(have.tip, to.tip):
		// The change is visible, but the standby may not have it yet.
		return true, l.confirm(ctx, conn, to)
	case have.next == l.at.next && bytes.Equal(have.tip, l.at.tip):
		return false, fmt.Errorf("%w: the database has become another one, perhaps by the promotion of a standby; it was %s", journal.ErrFenced, now)
	}
	return false, fmt.Errorf("%w: the log ends at entry %d, and this process has written %d", journal.ErrFenced, have.next, l.at.next)
}

// confirm makes another commit after one that the standby has not acknowledged.
func (l *Log) confirm(ctx context.Context, conn *pgxpool.Conn, at position) error {
	// If the standby acknowledges this commit, it has the earlier one too.
	tag, err := conn.Exec(ctx, l.sql("update {name}_log set tip = tip where "+mine), l.epoch, l.holder, at.next, at.tip)
	if err == nil && tag.RowsAffected() == 0 {
		return fmt.Errorf("%w since the last write", journal.ErrFenced)
	}
	return err
}

// withConn calls f with a connection, and returns the database's warning, if any.
func (l *Log) withConn(ctx context.Context, f func(*pgxpool.Conn) error) (warned string, err error) {
	conn, err := l.pool.Acquire(ctx)
	if err != nil {
		return "", err
	}
	defer conn.Release()
	data := conn.Conn().PgConn().CustomData()
	delete(data, warning)
	err = f(conn)
	// A warning is the only sign that the standby has not acknowledged a commit.
	warned, _ = data[warning].(string)
	return warned, err
}

// isFull reports whether the database has refused a write for lack of a resource.
func isFull(err error) bool {
	refused := new(pgconn.PgError)
	return errors.As(err, &refused) && strings.HasPrefix(refused.Code, "53")
}

// isPermanent reports whether another attempt is useless after an error of the
// database.
func isPermanent(err error) bool {
	refused := new(pgconn.PgError)
	if !errors.As(err, &refused) || len(refused.Code) < 2 {
		return false
	}
	// These SQLSTATE classes are temporary: connections, rolled-back transactions,
	// missing resources, interventions of operators, and objects in use.
	return !strings.Contains("08 25 40 53 55 57 58", refused.Code[:2])
}
