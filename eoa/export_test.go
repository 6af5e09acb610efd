package eoa

// Job is a transaction to be signed.
type Job = job
