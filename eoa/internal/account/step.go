package account

import (
	"fmt"
	"slices"
	"time"
)

// This file has the decisions of a step in the order in which a step makes them. Each
// of them calls the rules in the files below, and changes only the notes of the view
// that a crash may lose.

// Obey carries out the orders of users. records are the current records that the
// orders name, by key.
func (v *View) Obey(now time.Time, orders []Order, records map[string]Record) Batch {
	return v.carryOut(now, orders, records)
}

// Trust decides whether a look can be believed. If it returns an error, nothing may
// be decided on the look. If the doubt lasts, the batch stops the account.
func (v *View) Trust(c *Rules, now time.Time, look *Look) (Batch, error) {
	b, why := v.doubts(c, now, look)
	switch {
	case why != "":
		return b, fmt.Errorf("%s: count %d, want %d to %d", why, look.Latest, v.Head.Floor, v.Head.Next)
	case v.behind(c, now, look):
		return b, fmt.Errorf("node is behind: head %d, finalized %d", look.Number, look.Finalized)
	}
	return b, nil
}

// Ask returns the queries that Observe needs answered.
func (v *View) Ask(look *Look) Questions { return v.questions(look) }

// Observe decides what a look that can be trusted and the answers mean: which records
// are mined, confirmed, final, reorganized away or superseded, and which need another
// nonce.
func (v *View) Observe(c *Rules, now time.Time, look *Look, answers *Answers) Batch {
	return v.confirm(c, now, look, answers)
}

// Stop stops the account because the store lost writes.
func (v *View) Stop(now time.Time, evidence string) Batch { return v.rolledBack(now, evidence) }

// Due returns the attempts that must be sent now, in nonce order, at most limit.
func (v *View) Due(c *Rules, now time.Time, limit int) []Outgoing { return v.toSend(c, now, limit) }

// Hear decides what the results of sends mean.
func (v *View) Hear(c *Rules, now time.Time, out []Outgoing, results []Sent) Batch {
	return v.takeResults(c, now, out, results)
}

// Bump returns the replacements that are due. A job may have Gas 0; it must be
// estimated first.
func (v *View) Bump(c *Rules, now time.Time) ([]Job, Batch) { return v.bumps(c, now) }

// Hold returns the replacements that can be signed. The batch delays those without
// gas, and those that would revert.
func (v *View) Hold(c *Rules, now time.Time, jobs []Job, reverting []Refusal) ([]Job, Batch) {
	for _, j := range jobs {
		if j.Gas == 0 {
			reverting = append(reverting, Refusal{j.Record, NoEstimate})
		}
	}
	return slices.DeleteFunc(jobs, func(j Job) bool { return j.Gas == 0 }), v.postpone(c, now, reverting)
}

// Choose returns the pending requests that may be sent now, best first. The batch ends
// requests whose deadline has passed and noops that are not needed.
func (v *View) Choose(c *Rules, now time.Time, pending []Record) ([]Job, Batch) {
	return v.choose(c, now, pending)
}

// GasLimit returns the gas limit of a transaction that needs an estimated amount of
// gas.
func (v *View) GasLimit(c *Rules, r *Record, estimate uint64) uint64 {
	return v.gasLimit(c, r, estimate)
}

// Assign gives nonces and prices to chosen jobs, and returns those to be signed, in
// nonce order. The batch fails the requests that would revert, delays those that
// cannot be paid or estimated, and adds noops for the nonces without a known
// transaction.
func (v *View) Assign(c *Rules, now time.Time, jobs []Job, reverting []Refusal, pending []Record) ([]Job, Batch) {
	refused := v.refuse(c, now, reverting)
	assigned, later := v.assign(c, jobs)
	delayed := v.postpone(c, now, later)
	return assigned, *Join(Join(&refused, delayed), v.fill(pending, assigned))
}

// Sign makes signatures durable, and delays the requests that could not be signed. The
// batch must be committed before any of the bytes are sent.
func (v *View) Sign(c *Rules, now time.Time, signed []Signed, failed []Refusal) Batch {
	delayed := v.postpone(c, now, failed)
	return *Join(&delayed, v.prepared(now, signed))
}

// Drop drops the ended records that the rules do not keep. newest is the highest id
// known.
func (v *View) Drop(c *Rules, now time.Time, newest uint64, records []Record) Batch {
	return v.dropOld(c, now, newest, records)
}

// Problems returns the reasons for which the account makes no progress, without Since.
func (v *View) Problems(c *Rules, now time.Time) []Problem { return v.findProblems(c, now) }
