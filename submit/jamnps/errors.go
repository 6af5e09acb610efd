package jamnps

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jamnps: invalid config")
	// ErrKey: a key of the wrong length.
	ErrKey = errors.New("jamnps: invalid key")
	// ErrCertificate: a certificate that no peer may present.
	ErrCertificate = errors.New("jamnps: invalid certificate")
	// ErrTooLarge: a message is longer than allowed.
	ErrTooLarge = errors.New("jamnps: message too large")
	// ErrMalformed: a peer said something that the protocol does not allow.
	ErrMalformed = errors.New("jamnps: malformed")
	// ErrRefused: the peer reset the stream: it does not want what was sent, or does not have what was asked for.
	ErrRefused = errors.New("jamnps: refused by the peer")
	// ErrDisconnected: there is no connection, or it broke before the peer was done. Whether it did what it was asked is not known.
	ErrDisconnected = errors.New("jamnps: not connected")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("jamnps: client is closed")
	// ErrHistoryLost: the chain goes on from a block that the feed never saw and cannot fetch, or finality contradicts itself.
	ErrHistoryLost = errors.New("jamnps: history lost")
	// ErrNoState: the state that was asked for does not hold what was looked for.
	ErrNoState = errors.New("jamnps: not in the state")
)
