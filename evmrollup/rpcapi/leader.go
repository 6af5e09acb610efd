package rpcapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq/builder"
	"github.com/jamq/jamq/builder/mempool"
	"github.com/jamq/jamq/evmrollup/guard"
	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/internal/backoff"
	"github.com/jamq/jamq/txpool"
)

// The functions in this file pass calls on to the leader of the cluster. The other
// replicas have the blocks and states, but no pool and no queue.

// leader passes calls on to the leader of the cluster. It is safe for concurrent use.
type leader struct {
	node   *node.Node
	secret []byte // of the tokens of all replicas

	mu     sync.Mutex
	client *rpc.Client // nil if there is none
}

// replicaAgent is the user agent of a call that one replica passes on to another. A
// replica that is not the leader refuses such a call. Otherwise, two replicas that each
// consider the other one the leader would pass a call back and forth forever.
const replicaAgent = "jamq-replica"

// codeFollows is the error code for a call that was passed on to a replica that is not
// the leader either.
const codeFollows = -32010

var errFollows = codedError{errors.New("this replica does not lead"), codeFollows}

// errNoLeader is returned if no replica was the leader while the request waited.
var errNoLeader = errors.New("no replica leads now; try again")

// retryLeader is the pause before a replica looks for the leader again.
const retryLeader = 50 * time.Millisecond

// call calls a method of the leader, and tries again while the replicas choose one.
func (l *leader) call(ctx context.Context, result any, method string, args ...any) (attempts int, err error) {
	if rpc.PeerInfoFromContext(ctx).HTTP.UserAgent == replicaAgent {
		return 0, errFollows
	}
	for l.node.Follows() {
		if client := l.find(ctx); client != nil {
			// The call may reach a leader, even if no answer comes back.
			attempts++
			err := client.CallContext(ctx, result, method, args...)
			coded := rpc.Error(nil)
			if err == nil || errors.As(err, &coded) && coded.ErrorCode() != codeFollows {
				return attempts, err
			}
			l.drop(client)
		}
		if !backoff.Pause(ctx, retryLeader) {
			break
		}
	}
	return attempts, errNoLeader
}

// find returns a client that is connected to the leader, or nil if no leader can be
// reached.
func (l *leader) find(ctx context.Context) *rpc.Client {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client != nil {
		return l.client
	}
	url, err := l.node.Leader(ctx)
	if err != nil || url == "" {
		return nil
	}
	l.client, err = rpc.DialOptions(ctx, url, rpc.WithHeader("User-Agent", replicaAgent), rpc.WithHTTPAuth(guard.Auth(l.secret)))
	if err != nil {
		return nil
	}
	return l.client
}

// drop closes a client that no longer reaches the leader, so that find connects again.
func (l *leader) drop(client *rpc.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == client {
		l.client = nil
		client.Close()
	}
}

// send adds a transaction to the pool, which only the leader has. If another replica
// becomes the leader during the call, the transaction may already be in the log, and
// the new leader then refuses it as known. In this case, the error counts as success.
func (a *api) send(ctx context.Context, tx *types.Transaction) error {
	if a.leader == nil {
		return a.node.SendTransaction(tx)
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.RequestTime)
	defer cancel()
	for tried := false; ; {
		var again bool
		var err error
		if a.node.Follows() {
			again, err = a.leader.send(ctx, tx)
		} else {
			err = a.node.SendTransaction(tx)
		}
		tried = tried || again
		switch {
		case tried && err != nil && strings.Contains(err.Error(), txpool.ErrAlreadyKnown.Error()):
			return nil
		case !isMoving(err):
			return err
		}
		tried = true
		if !backoff.Pause(ctx, retryLeader) {
			return errNoLeader
		}
	}
}

// isMoving reports whether a call failed only because another replica was becoming the
// leader. The caller can then repeat the call at the new leader.
func isMoving(err error) bool {
	return errors.Is(err, errNoLeader) || errors.Is(err, builder.ErrLog) || errors.Is(err, builder.ErrStopped) || errors.Is(err, mempool.ErrNotRecovered)
}

// send passes a transaction on to the leader. again is true if an earlier attempt in
// this call may already have added the transaction.
func (l *leader) send(ctx context.Context, tx *types.Transaction) (again bool, err error) {
	raw, err := tx.MarshalBinary()
	if err != nil {
		return false, err
	}
	var hash common.Hash
	attempts, err := l.call(ctx, &hash, sendMethod, hexutil.Bytes(raw))
	return attempts > 1, err
}

// serveCopy sends this replica's blocks and states to a replica that joins the cluster.
// If that fails, serveCopy aborts the HTTP answer, so that the other replica notices
// that the copy is incomplete.
func (a *api) serveCopy(w http.ResponseWriter, _ *http.Request) {
	if err := a.node.WriteCopy(w); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// askLeader passes a call about the pool or the queue on to the leader and returns the
// answer. asked is false if this node must answer the call itself, because it is the
// leader or has become the leader during the call.
func askLeader[T any](ctx context.Context, a *api, method string, args ...any) (answer T, asked bool, err error) {
	if !a.node.Follows() {
		return answer, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.cfg.RequestTime)
	defer cancel()
	_, err = a.leader.call(ctx, &answer, method, args...)
	if errors.Is(err, errNoLeader) && !a.node.Follows() {
		return answer, false, nil
	}
	return answer, true, err
}
