package jamnps

import "errors"

var (
	// ErrInvalidConfig is wrapped by every error of a Validate method of this package.
	ErrInvalidConfig = errors.New("jamnps: invalid config")
	// ErrKey is returned if a key has the wrong length.
	ErrKey = errors.New("jamnps: invalid key")
	// ErrCertificate is returned for a certificate that JAMNP-S does not allow, for example
	// because its name does not belong to its key.
	ErrCertificate = errors.New("jamnps: invalid certificate")
	// ErrTooLarge is returned if a message, sent or received, exceeds its maximum size.
	ErrTooLarge = errors.New("jamnps: message too large")
	// ErrMalformed is returned if a peer's message violates the protocol, or if a segment
	// of a bundle has the wrong size or lacks a proof.
	ErrMalformed = errors.New("jamnps: malformed")
	// ErrRefused is returned if the peer resets the stream. This means that the peer
	// rejects the message or does not have the requested data.
	ErrRefused = errors.New("jamnps: refused by the peer")
	// ErrDisconnected is returned if the client cannot connect to a peer, or if the
	// connection breaks before the peer has answered. In the second case, the peer may or
	// may not have carried out the request.
	ErrDisconnected = errors.New("jamnps: not connected")
	// ErrClosed is returned by all calls after Close.
	ErrClosed = errors.New("jamnps: client is closed")
	// ErrHistoryLost is returned if the feed cannot continue from the blocks that it has
	// delivered. This happens in two cases:
	//
	//   - More than FeedConfig.MaxGap blocks lie between the delivered blocks and the
	//     final blocks of FeedConfig.FinalPeers peers, and the other peers are too few
	//     to make a block final.
	//   - For more than FeedConfig.LostAfter slots, the final blocks of FinalPeers
	//     peers are more than MaxGap blocks away or on chains without the finalized
	//     block, and fewer than FinalPeers peers agree with the finalized block.
	//
	// The error names each such peer and its block.
	ErrHistoryLost = errors.New("jamnps: history lost")
	// ErrNoState is returned if the state from a peer lacks the value that the caller
	// needs, or if no delivered header proves that state.
	ErrNoState = errors.New("jamnps: not in the state")
)
