package main

import (
	"context"
	"errors"
	"net"
	"net/http"

	"github.com/jamq/jamq/evmrollup/node"
	"github.com/jamq/jamq/examples/refnode/ops"
)

// servers are the HTTP servers of a node: one for clients, and one for operators if
// the latter has an address.
type servers struct {
	// url is that of clients, and opsURL that of operators. They are equal if there
	// is one server for both.
	url, opsURL string
	// ended receives the error of a server that has stopped by itself.
	ended   chan error
	running []*http.Server
}

// startServers serves clients at the address in -http, and operators at that in
// -metrics, or at that in -http if -metrics is empty.
func startServers(o *options, clients http.Handler, n *node.Node, metrics *ops.Metrics) (s *servers, err error) {
	s = &servers{ended: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close(context.Background()))
		}
	}()
	operators := func(next http.Handler) http.Handler { return ops.Handler(n, metrics, o.profilesFor(), next) }
	if o.metrics == "" {
		s.url, err = s.start(o.http, operators(clients))
		s.opsURL = s.url
		return s, err
	}
	if s.url, err = s.start(o.http, clients); err == nil {
		s.opsURL, err = s.start(o.metrics, operators(http.NotFoundHandler()))
	}
	return s, err
}

// start starts a server and returns its URL.
func (s *servers) start(address string, h http.Handler) (url string, err error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime}
	s.running = append(s.running, server)
	go func() { s.ended <- server.Serve(listener) }()
	return "http://" + listener.Addr().String(), nil
}

// close waits for the requests that are being served, until ctx ends, and closes
// the servers.
func (s *servers) close(ctx context.Context) (err error) {
	for _, server := range s.running {
		if server.Shutdown(ctx) != nil {
			err = errors.Join(err, server.Close())
		}
	}
	return err
}
