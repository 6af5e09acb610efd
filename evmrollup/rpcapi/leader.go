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

// This file passes calls on to the replica that leads. The other replicas of a cluster have the
// blocks and states, but no pool.

// leader is the way to the replica that leads. It is safe for concurrent use.
type leader struct {
	node   *node.Node
	secret []byte // of the tokens of all replicas

	mu     sync.Mutex
	client *rpc.Client // nil if there is none
}

// replicaAgent is the user agent of calls that a replica passes on. A replica that does not lead
// refuses them, so that two replicas which take each other for the leader do not pass a call on to
// each other without end.
const replicaAgent = "jamq-replica"

// codeFollows is the code of the error for a call that another replica has passed on to one that
// does not lead either.
const codeFollows = -32010

var errFollows = codedError{errors.New("this replica does not lead"), codeFollows}

// errNoLeader is returned if no replica has led in the time of a request.
var errNoLeader = errors.New("no replica leads now; try again")

// retryLeader is the pause before the leader is looked up again.
const retryLeader = 50 * time.Millisecond

// call calls a method of the leader. It tries again while a new leader is being found, until ctx
// ends or this node leads; in these two cases it returns errNoLeader. attempts is the number of
// calls that may have reached a leader.
func (l *leader) call(ctx context.Context, result any, method string, args ...any) (attempts int, err error) {
	if rpc.PeerInfoFromContext(ctx).HTTP.UserAgent == replicaAgent {
		return 0, errFollows
	}
	for l.node.Follows() {
		if client := l.find(ctx); client != nil {
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

// find returns a client of the leader, or nil.
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

// drop forgets a client that did not reach a leader.
func (l *leader) drop(client *rpc.Client) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.client == client {
		l.client = nil
		client.Close()
	}
}

// send gives a transaction to the pool, which is that of the leader. If the lead moves meanwhile,
// the transaction may be in the log already, and the next leader knows it.
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

// isMoving reports whether an error means that the lead has moved during a call.
func isMoving(err error) bool {
	return errors.Is(err, errNoLeader) || errors.Is(err, builder.ErrLog) || errors.Is(err, builder.ErrStopped) || errors.Is(err, mempool.ErrNotRecovered)
}

// send passes a transaction on. again reports whether an earlier attempt may have succeeded.
func (l *leader) send(ctx context.Context, tx *types.Transaction) (again bool, err error) {
	raw, err := tx.MarshalBinary()
	if err != nil {
		return false, err
	}
	var hash common.Hash
	attempts, err := l.call(ctx, &hash, sendMethod, hexutil.Bytes(raw))
	return attempts > 1, err
}

// serveCopy gives the blocks and states of this replica to one that joins. If it fails, the other
// one sees that the copy ends too early.
func (a *api) serveCopy(w http.ResponseWriter, _ *http.Request) {
	if err := a.node.WriteCopy(w); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// askLeader passes a call about the pool on to the leader, and returns its answer. asked is false
// if this node leads, also if it has begun to lead meanwhile, and must answer itself.
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
