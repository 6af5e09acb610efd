package pglog

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
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

// Log is a builder's log in PostgreSQL, which several processes can open. It
// implements builder.SharedLog and journal.Journal. Create it with [Open].
type Log struct {
	cfg  Config
	log  *slog.Logger
	pool *pgxpool.Pool

	member   string // the name of this process among those that follow
	epoch    int64
	holder   []byte
	promoted bool

	writing sync.Mutex // of the goroutine that writes or follows, which owns the field below
	at      position   // behind the last entry that this process has read or written

	mu    sync.Mutex
	leads bool
	err   error         // of all later writes, nil while they are possible
	lost  chan struct{} // closed when err is set

	background context.Context // of the goroutine that renews the lease
	stop       context.CancelFunc
	renewing   sync.WaitGroup
}

var _ journal.Journal = (*Log)(nil)

// position is a position in the log: the number of the next entry, and a hash over all
// entries before it. If two processes have the same position, the hash shows that they
// have read the same entries.
type position struct {
	next int64
	tip  []byte
}

// Open opens a log, and creates its tables if they do not exist. The log can then
// be read; this process can write to it after [Log.Lead] has returned nil. Errors
// wrap ErrInvalidConfig or ErrVersion, or they are those of ctx and of the
// database.
func Open(ctx context.Context, cfg Config) (*Log, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	pool, err := connect(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	l := &Log{cfg: cfg, log: cfg.Logger, pool: pool, holder: make([]byte, 16), at: position{tip: []byte{}}, lost: make(chan struct{})}
	_, _ = rand.Read(l.holder) // never fails
	l.member = cmp.Or(cfg.Address, hex.EncodeToString(l.holder))
	l.background, l.stop = context.WithCancel(context.Background())
	if err = l.join(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return l, nil
}

// join creates the tables if necessary, and makes this process a member of the log.
func (l *Log) join(ctx context.Context) error {
	began := time.Now()
	for failures := 0; ; failures++ {
		err := l.attempt(ctx, failures, 0, func(ctx context.Context) error {
			if err := l.createTables(ctx); err != nil {
				return err
			}
			return l.report(ctx, 0)
		})
		// If the database is too slow to answer, try again for Config.Patience.
		late := errors.Is(err, context.DeadlineExceeded) || pgconn.Timeout(err)
		if !late || ctx.Err() != nil || time.Since(began) >= l.cfg.Patience {
			return err
		}
	}
}

// leastConnect is the minimum time for a host of the database to accept a connection. On a busy
// machine this takes much longer than the answer to a query.
const leastConnect = 3 * time.Second

// leastConns is the minimum size of the pool of connections. A write, a renewal of the
// lease, a reader, and the statement that ends an old leader's session each need a
// connection at the same time.
const leastConns = 4

// connect opens a pool of connections that remember warnings.
func connect(ctx context.Context, c *Config) (*pgxpool.Pool, error) {
	cfg, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = max(cfg.MaxConns, leastConns)
	if cfg.ConnConfig.ConnectTimeout == 0 {
		// The URL may have several hosts. A machine that is gone must not delay the use
		// of the others for long.
		cfg.ConnConfig.ConnectTimeout = max(c.Lease, leastConnect)
	}
	// Prepare no statements, because a pooler in transaction mode may pass the next
	// statement to a different session.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	cfg.ConnConfig.OnNotice = func(c *pgconn.PgConn, n *pgconn.Notice) {
		if n.SeverityUnlocalized == "WARNING" {
			c.CustomData()[warning] = n.Message
		}
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}

// warning is the key of the database's last warning in the data of a connection.
const warning = "jamq warning"

// Promoted reports whether acknowledged records may be lost, because the database
// had a different identity at the last write before this process led. That happens
// if a standby was promoted or a dump was restored. Promoted is always false with
// Config.Synchronous, and until this process leads. It does not notice if an old
// snapshot of the database's disk was restored.
func (l *Log) Promoted() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.promoted
}

// Lost returns a channel that is closed when this process can no longer write to the log, for
// example because another process leads.
func (l *Log) Lost() <-chan struct{} { return l.lost }

// attempt calls f with a limit for the time until the database answers.
func (l *Log) attempt(ctx context.Context, failures, size int, f func(context.Context) error) error {
	const slowest, doublings = 4 << 20, 16 // bytes per second
	// The limit includes the transfer of size bytes, and doubles with each earlier
	// failure.
	limit := l.cfg.answerTime() + time.Duration(size/slowest)*time.Second
	limit = min(limit<<min(failures, doublings), l.cfg.Patience)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := f(limited)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		// One connection did not answer in time. The others may lead to the same dead machine,
		// so the pool opens new ones.
		l.pool.Reset()
		return fmt.Errorf("pglog: no answer of the database for %v: %w", limit, err)
	}
	return err
}

// Close closes the log. If this process leads, it gives the lead away, so that
// another process can lead at once. If a write is running, Close may take up to
// Config.Lease longer.
func (l *Log) Close() error {
	if errors.Is(l.broken(), journal.ErrClosed) {
		return nil
	}
	l.fail(journal.ErrClosed)
	l.stop()
	l.writing.Lock()
	defer l.writing.Unlock()
	l.renewing.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), l.cfg.Lease)
	defer cancel()
	_, err := l.pool.Exec(ctx, l.sql("update {name}_lease set free = successor = '', beat = beat + 1 where epoch = $1 and holder = $2"), l.epoch, l.holder)
	if err == nil {
		_, err = l.pool.Exec(ctx, l.sql("delete from {name}_member where member = $1"), l.member)
	}
	if err != nil {
		l.log.Warn("pglog: the database was not told that this process has ended", "err", err)
	}
	l.pool.Close()
	return nil
}

// Replay calls f with each record in order: see journal.Journal. It reads the
// records that the log has when the call begins. The error wraps journal.ErrCorrupt
// if they are not the records that were written.
func (l *Log) Replay(f func(record []byte) error) error {
	if err := l.broken(); errors.Is(err, journal.ErrClosed) {
		return err
	}
	ctx, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	stalled := time.AfterFunc(l.cfg.Patience, giveUp) // unless the next entry arrives before
	defer stalled.Stop()
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
	rows, err := tx.Query(ctx, l.sql("select position, body from {name}_entry where position >= $1 order by position"), first)
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
			return fmt.Errorf("%w: entry %d follows, want %d", journal.ErrCorrupt, number, at.next)
		}
		at = at.extend(body)
		stalled.Stop()
		if err := readEntry(body, f); err != nil {
			return err
		}
		stalled.Reset(l.cfg.Patience)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if at.next != next || !bytes.Equal(at.tip, tip) {
		return fmt.Errorf("%w: the entries end at %d with hash %x, want %d and %x", journal.ErrCorrupt, at.next, at.tip, next, tip)
	}
	if l.usable() == nil {
		return nil // the process that leads knows the end of the log
	}
	l.writing.Lock()
	defer l.writing.Unlock()
	l.at = at
	return nil
}

// extend returns the position after one more entry.
func (p position) extend(entry []byte) position {
	h := sha256.New()
	h.Write(p.tip)
	h.Write(entry)
	return position{p.next + 1, h.Sum(nil)}
}

// appendEntry appends the entry for some records, each with its length before it.
func appendEntry(to []byte, records [][]byte) []byte {
	// All records of a call of Append form one entry, which costs the database less
	// than one entry for each record.
	for _, record := range records {
		to = append(binary.AppendUvarint(to, uint64(len(record))), record...)
	}
	return to
}

// readEntry calls f with each record of an entry. The error is that of f, or it wraps
// journal.ErrCorrupt.
func readEntry(entry []byte, f func(record []byte) error) error {
	for len(entry) > 0 {
		size, n := binary.Uvarint(entry)
		if n <= 0 || size > uint64(len(entry)-n) {
			return fmt.Errorf("%w: an entry is cut", journal.ErrCorrupt)
		}
		end := n + int(size)
		if err := f(entry[n:end:end]); err != nil {
			return err
		}
		entry = entry[end:]
	}
	return nil
}

// replaced returns the position before the first entry of a call of Replace.
func (p position) replaced() position {
	base := sha256.Sum256(append([]byte("replaced"), p.tip...))
	// A checkpoint takes up one position itself, so that no two entries ever have the same
	// position.
	return position{p.next + 1, base[:]}
}

// equal reports whether the same entries come before two positions.
func (p position) equal(q position) bool { return p.next == q.next && bytes.Equal(p.tip, q.tip) }

// usable returns the error for each write, or nil if writes are possible.
func (l *Log) usable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil && !l.leads {
		return fmt.Errorf("%w: this process follows", journal.ErrFenced)
	}
	return l.err
}

// broken returns the error that keeps this process from using the log, or nil.
func (l *Log) broken() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// fail makes all later writes fail, and returns the error of these writes.
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

// retryPause is the wait after the first failed attempt to reach the database. mostRetryPause is
// the longest wait between two attempts.
const retryPause, mostRetryPause = 10 * time.Millisecond, time.Second
