package pglog

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jamq/jamq/journal"
)

// Log is a log in PostgreSQL whose process has the lead. It implements builder.Log and
// journal.Journal.
type Log struct {
	cfg  Config
	log  *slog.Logger
	pool *pgxpool.Pool

	epoch    int64
	holder   []byte
	promoted bool

	writing sync.Mutex // of the goroutine that writes, which owns the fields below
	at      position

	mu   sync.Mutex
	err  error         // of all later calls, nil while the log can be written
	lost chan struct{} // closed when err is set

	stopRenewing context.CancelFunc
	renewing     sync.WaitGroup
}

var _ journal.Journal = (*Log)(nil)

// position is the end of a log: the position of the next record and the hash over all records.
type position struct {
	next int64
	tip  []byte
}

// Open opens a log and waits until this process leads, or ctx ends. It creates the tables if there
// are none. Errors wrap ErrInvalidConfig, ErrVersion, or are those of ctx and of the database.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	pool, err := connect(ctx, cfg.URL)
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, log: cfg.Logger, pool: pool, holder: make([]byte, 16), lost: make(chan struct{})}
	_, _ = rand.Read(l.holder) // never fails
	if err = l.createTables(ctx); err == nil {
		err = l.lead(ctx)
	}
	if err != nil {
		pool.Close()
		return nil, err
	}
	renew, stop := context.WithCancel(context.Background())
	l.stopRenewing = stop
	l.renewing.Go(func() { l.renew(renew) })
	return l, nil
}

// leastConns is the least size of the pool: one connection each for a write, a renewal, a reader,
// and the one that ends the session of an old leader.
const leastConns = 4

// connect opens a pool whose connections remember warnings, and prepare no statements, because a
// pooler in transaction mode gives the next statement to another session.
func connect(ctx context.Context, url string) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = max(cfg.MaxConns, leastConns)
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warning] = n.Message
		}
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// warning is the key of the last warning in the data of a connection.
const warning = "jamq warning"

// Epoch returns the number of this lead. It is higher than that of every earlier lead.
func (l *Log) Epoch() uint64 { return uint64(l.epoch) }

// Promoted reports whether the database has another identity than at the last lead, because a
// standby was promoted or a copy was restored. Acknowledged records can be lost then, unless the
// standby was a synchronous one.
func (l *Log) Promoted() bool { return l.promoted }

// Lost returns a channel that is closed when the log can no longer be written, for example because
// another process leads.
func (l *Log) Lost() <-chan struct{} { return l.lost }

// Close gives the lead away and closes the log.
func (l *Log) Close() error {
	l.fail(journal.ErrClosed)
	l.writing.Lock() // a write that runs ends first
	defer l.writing.Unlock()
	l.stopRenewing()
	l.renewing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Lease)
	defer cancel()
	_, err := l.pool.Exec(ctx, l.sql("update {name}_lease set expires = '-infinity' where epoch = $1 and holder = $2"), l.epoch, l.holder)
	if err != nil {
		l.log.Warn("pglog: the lead ends with the lease", "err", err)
	}
	l.pool.Close()
	return nil
}

// Replay calls f with each record in order: see journal.Journal. It covers the records that were
// there when it began. The error wraps journal.ErrCorrupt if they are not those that were written.
func (l *Log) Replay(f func(record []byte) error) error {
	if err := l.usable(); errors.Is(err, journal.ErrClosed) {
		return err
	}
	ctx := context.Background()
	tx, err := l.pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(ctx) }()
	var first, next int64
	var base, tip []byte
	if err := tx.QueryRow(ctx, l.sql("select first, next, base, tip from {name}_log")).Scan(&first, &next, &base, &tip); err != nil {
		return err
	}
	rows, err := tx.Query(ctx, l.sql("select position, body from {name}_record order by position"))
	if err != nil {
		return err
	}
	defer rows.Close()
	at := position{first, base}
	for rows.Next() {
		var number int64
		var body []byte
		if err := rows.Scan(&number, &body); err != nil {
			return err
		}
		if number != at.next {
			return fmt.Errorf("%w: record %d follows, want %d", journal.ErrCorrupt, number, at.next)
		}
		at = at.extend(body)
		if err := f(body); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if at.next != next || !bytes.Equal(at.tip, tip) {
		return fmt.Errorf("%w: the records end at %d with hash %x, want %d and %x", journal.ErrCorrupt, at.next, at.tip, next, tip)
	}
	return nil
}

// extend returns the position after more records.
func (p position) extend(records ...[]byte) position {
	for _, record := range records {
		h := sha256.New()
		h.Write(p.tip)
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(record))))
		h.Write(record)
		p = position{p.next + 1, h.Sum(nil)}
	}
	return p
}

// usable returns the error of all calls, nil while the log can be written.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail makes all later writes fail, and returns their error.
func (l *Log) fail(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = err
		close(l.lost)
	}
	if errors.Is(err, journal.ErrClosed) {
		l.err = err // also if the log has failed before
	}
	return l.err
}

// retryPause is the first wait after a failed attempt to reach the database, and mostRetryPause
// the longest.
const retryPause, mostRetryPause = 10 * time.Millisecond, time.Second
