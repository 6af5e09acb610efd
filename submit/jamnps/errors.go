package jamnps

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jamnps: invalid config")
	// ErrKey is returned if a key has the wrong length.
	ErrKey = errors.New("jamnps: invalid key")
	// ErrCertificate is returned if JAMNP-S does not allow a certificate, for
	// example because its name does not belong to its key.
	ErrCertificate = errors.New("jamnps: invalid certificate")
	// ErrTooLarge is returned if a message of the client or of a peer exceeds its maximum size.
	ErrTooLarge = errors.New("jamnps: message too large")
	// ErrMalformed is returned if a peer's message violates the protocol. It is also returned if a
	// segment of a bundle has the wrong size or lacks a proof.
	ErrMalformed = errors.New("jamnps: malformed")
	// ErrRefused is returned if the peer resets the stream, which means that it rejects the message
	// or does not have the requested data.
	ErrRefused = errors.New("jamnps: refused by the peer")
	// ErrDisconnected is returned if the client cannot connect to a peer, or if
	// the connection breaks before the peer has answered. In the second case,
	// it is unknown whether the peer has carried out the request.
	ErrDisconnected = errors.New("jamnps: not connected")
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("jamnps: client is closed")
	// ErrHistoryLost is returned if the feed cannot continue from the blocks
	// that it has delivered. This happens in two cases:
	//
	//   - More than FeedConfig.MaxGap blocks lie between the delivered blocks
	//     and the final blocks of FeedConfig.FinalPeers peers, and the
	//     remaining peers are too few to make a block final.
	//   - For longer than FeedConfig.LostAfter slots, the final blocks of
	//     FinalPeers peers are more than MaxGap blocks away or on chains
	//     without the finalized block, and fewer than FinalPeers peers agree
	//     with the finalized block.
	//
	// The error names each such peer and its block.
	ErrHistoryLost = errors.New("jamnps: history lost")
	// ErrNoState is returned if the state that a peer has sent lacks the value
	// that the caller needs, or if no delivered header proves that state.
	ErrNoState = errors.New("jamnps: not in the state")
)
