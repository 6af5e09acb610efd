package riverjobs_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// pooler is a PostgreSQL pooler in transaction mode, as PgBouncer has it: each
// transaction of a client gets any of a few sessions of the server, and another
// one the next time.
type pooler struct {
	t        *testing.T
	sessions chan *pgconn.HijackedConn
}

// startPooler returns the folder of a pooler's Unix socket. The pooler has n
// sessions of the server.
func startPooler(t *testing.T, server *pgconn.Config, n int) (dir string) {
	p := &pooler{t, make(chan *pgconn.HijackedConn, n)}
	for range n {
		conn, err := pgconn.ConnectConfig(t.Context(), server)
		require.NoError(t, err)
		session, err := conn.Hijack()
		require.NoError(t, err)
		t.Cleanup(func() { _ = session.Conn.Close() })
		p.sessions <- session
	}
	dir = t.TempDir()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "unix", filepath.Join(dir, ".s.PGSQL.5432"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return dir
}

// serve passes the messages of a client to a session, until the session is
// outside of a transaction.
func (p *pooler) serve(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	client := pgproto3.NewBackend(conn, conn)
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	client.Send(&pgproto3.BackendKeyData{SecretKey: make([]byte, 4)})
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	var session *pgconn.HijackedConn
	for client.Flush() == nil {
		message, err := client.Receive()
		if err != nil {
			return
		}
		if session == nil {
			session = <-p.sessions
		}
		session.Frontend.Send(message)
		if session.Frontend.Flush() != nil {
			return
		}
		switch message.(type) {
		case *pgproto3.Query, *pgproto3.Sync:
		default:
			continue // the server answers after a Sync
		}
		status := byte(0)
		for status == 0 {
			answer, err := session.Frontend.Receive()
			if err != nil {
				return
			}
			client.Send(answer)
			if ready, is := answer.(*pgproto3.ReadyForQuery); is {
				status = ready.TxStatus
			}
		}
		if status == 'I' {
			p.sessions <- session
			session = nil
		}
	}
}
