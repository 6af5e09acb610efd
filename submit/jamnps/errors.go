package jamnps

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jamnps: invalid config")
	// ErrKey is returned for a key of the wrong length.
	ErrKey = errors.New("jamnps: invalid key")
	// ErrCertificate is returned for a certificate that JAMNP-S does not allow.
	ErrCertificate = errors.New("jamnps: invalid certificate")
	// ErrTooLarge is returned if a message exceeds its maximum size.
	ErrTooLarge = errors.New("jamnps: message too large")
	// ErrMalformed is returned if a peer's message violates the protocol, or if
	// a bundle's segments or proofs do.
	ErrMalformed = errors.New("jamnps: malformed")
	// ErrRefused is returned if the peer resets the stream because it rejects
	// the message or does not have the requested data.
	ErrRefused = errors.New("jamnps: refused by the peer")
	// ErrDisconnected is returned if there is no connection, or if it broke
	// before the peer answered. In the second case it is unknown whether the
	// peer has carried out the request.
	ErrDisconnected = errors.New("jamnps: not connected")
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("jamnps: client is closed")
	// ErrHistoryLost is returned if there are more than FeedConfig.MaxGap blocks
	// between the feed's chain and the final blocks of FeedConfig.FinalPeers peers. It
	// is also returned if those peers take back the finality of a block for longer
	// than FeedConfig.LostAfter slots, because their final blocks are on chains
	// without it. The error names the block of a peer and the finalized one.
	ErrHistoryLost = errors.New("jamnps: history lost")
	// ErrNoState is returned if the requested state does not contain the value
	// that the caller needs.
	ErrNoState = errors.New("jamnps: not in the state")
)
