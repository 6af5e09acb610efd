// Package far lets a process use a simulated chain that runs in another process. It
// is for tests that kill the processes of executors, because the chain must outlive
// them.
package far

import (
	"context"
	"errors"
	"net/http"
	"net/rpc"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

// Handler serves a chain to the test processes that use it through [Chain]. If a process
// is killed during a call, the call is carried out nevertheless, as by a real node.
func Handler(c eoa.Chain) http.Handler {
	server := rpc.NewServer()
	if err := server.RegisterName("Chain", service{c}); err != nil {
		panic(err)
	}
	return server
}

// service has the methods of a chain in the form that package net/rpc requires.
type service struct{ chain eoa.Chain }

func (s service) Look(a common.Address, l *eoa.Look) (err error) {
	*l, err = s.chain.Look(context.Background(), a)
	return err
}

func (s service) Ask(q eoa.Questions, a *eoa.Answers) (err error) {
	*a, err = s.chain.Ask(context.Background(), q)
	return err
}

func (s service) Send(raws [][]byte, out *[]eoa.Sent) error {
	*out = s.chain.Send(context.Background(), raws)
	return nil
}

// Chain is the URL of a chain that another process serves with [Handler]. It
// implements all of eoa.Chain except Estimate.
type Chain string

func (c Chain) call(method string, question, answer any) error {
	client, err := rpc.DialHTTP("tcp", strings.TrimPrefix(string(c), "http://"))
	if err != nil {
		return err
	}
	return errors.Join(client.Call("Chain."+method, question, answer), client.Close())
}

// Look implements eoa.Chain.
func (c Chain) Look(_ context.Context, a common.Address) (l eoa.Look, err error) {
	return l, c.call("Look", a, &l)
}

// Ask implements eoa.Chain.
func (c Chain) Ask(_ context.Context, q eoa.Questions) (a eoa.Answers, err error) {
	return a, c.call("Ask", q, &a)
}

// Estimate implements eoa.Chain. It always fails, so requests of such tests must
// set Gas.
func (c Chain) Estimate(_ context.Context, _ common.Address, requests []*eoa.Request) []eoa.Estimated {
	out := make([]eoa.Estimated, len(requests))
	for i := range out {
		out[i].Err = errors.New("far: no estimates: set Request.Gas")
	}
	return out
}

// Send implements eoa.Chain. If the call fails, all results are eoa.Unknown,
// because the chain may have received the transactions.
func (c Chain) Send(_ context.Context, raws [][]byte) []eoa.Sent {
	out := make([]eoa.Sent, len(raws))
	if err := c.call("Send", raws, &out); err != nil {
		return make([]eoa.Sent, len(raws))
	}
	return out
}
