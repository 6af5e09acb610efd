package codec

// The sequences of an extrinsic, and the parts of blocks and reports that a builder does
// not read.
type (
	Tickets            = tickets
	Preimages          = preimages
	Guarantees         = guarantees
	Assurances         = assurances
	TicketEnvelope     = ticketEnvelope
	Verdict            = verdict
	Vote               = vote
	Culprit            = culprit
	Fault              = fault
	EpochMark          = epochMark
	ValidatorKeys      = validatorKeys
	TicketsMark        = ticketsMark
	TicketBody         = ticketBody
	ValidatorSignature = validatorSignature
	WorkDigest         = workDigest
	Outcome            = outcome
	Disputes           = disputes
)

const (
	Done       = done
	OutOfGas   = outOfGas
	Panicked   = panicked
	BadExports = badExports
	Oversize   = oversize
	BadCode    = badCode
	BigCode    = bigCode
)
