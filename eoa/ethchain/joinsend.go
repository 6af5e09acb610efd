package ethchain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa"
)

// answer has the results of a send to one endpoint.
type answer struct {
	end  int // index of the endpoint
	sent []eoa.Sent
}

// errNoAnswer is the failure of an endpoint that did not answer a send.
var errNoAnswer = errors.New("ethchain: no answer to a send")

// Send implements [eoa.Chain].
func (j *Joined) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	working, doubted, resting := j.order()
	targets := append(working, doubted...) // the choice may be wrong
	if len(targets) == 0 {
		targets = resting
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(targets))
	for _, i := range targets {
		go func() { answers <- answer{i, sendTo(ctx, j.ends[i].chain, raws)} }()
	}
	began := time.Now()
	var grace <-chan time.Time
	all := make([][]eoa.Sent, 0, len(targets))
	for range targets {
		select {
		case a := <-answers:
			j.note(a.end, failure(a.sent))
			all = append(all, a.sent)
			if grace == nil && !slices.ContainsFunc(a.sent, func(s eoa.Sent) bool { return s.Result != eoa.Accepted }) {
				timer := time.NewTimer(max(time.Since(began), leastGrace))
				defer timer.Stop()
				grace = timer.C
			}
		case <-grace:
			cancel() // the others end now, and count as failed
			grace = nil
			a := <-answers
			j.note(a.end, failure(a.sent))
			all = append(all, a.sent)
		}
	}
	return merge(all, len(raws))
}

// sendTo sends to one endpoint. A panic of its code is a failure: here it would
// end the process.
func sendTo(ctx context.Context, chain eoa.BlobChain, raws [][]byte) (sent []eoa.Sent) {
	defer func() {
		if value := recover(); value != nil {
			sent = []eoa.Sent{{Text: fmt.Sprintf("ethchain: panic of Send: %v", value)}}
		}
	}()
	return chain.Send(ctx, raws)
}

// failure returns an error if an endpoint answered none of several sends.
func failure(sent []eoa.Sent) error {
	for _, s := range sent {
		switch {
		case s.Result != eoa.Unknown || s.Reason == eoa.ReasonNonceTooLow:
			return nil
		case s.Reason == eoa.ReasonBusy:
			return &eoa.BusyError{RetryAfter: s.RetryAfter, Err: errors.New(s.Text)}
		}
	}
	if len(sent) == 0 || sent[0].Text == "" {
		return errNoAnswer
	}
	return errors.New(sent[0].Text)
}

// mildest lists the reasons of rejections. Those that can pass without a change
// of the transaction come first.
var mildest = []eoa.Reason{eoa.ReasonNonceGap, eoa.ReasonFull, eoa.ReasonReplacement, eoa.ReasonFunds, eoa.ReasonUnderpriced, eoa.ReasonFeeCap,
	eoa.ReasonGasLimit, eoa.ReasonInvalid}

// merge combines the results of n sends to several endpoints. A transaction is
// accepted if any endpoint accepted it, unknown if any other result is unknown,
// and rejected only if all endpoints rejected it. The reason is then the first one
// of mildest, because a later attempt may succeed at that endpoint.
func merge(all [][]eoa.Sent, n int) []eoa.Sent {
	out := make([]eoa.Sent, n)
	for i := range out {
		busy := true
		for k, sent := range all {
			s := eoa.Sent{}
			if i < len(sent) {
				s = sent[i]
			}
			busy = busy && s.Reason == eoa.ReasonBusy
			if k == 0 || outweighs(s, out[i]) {
				out[i] = s
			}
		}
		if !busy && out[i].Reason == eoa.ReasonBusy { // others can be used
			out[i].Reason, out[i].RetryAfter = eoa.ReasonNone, 0
		}
	}
	return out
}

// outweighs reports whether merge takes the answer a of one endpoint in place of
// the answer b of another.
func outweighs(a, b eoa.Sent) bool {
	weight := func(s eoa.Sent) int {
		switch {
		case s.Result == eoa.Accepted:
			return 5 * len(mildest)
		case s.Result == eoa.Rejected:
			return len(mildest) - slices.Index(mildest, s.Reason)
		case s.Reason == eoa.ReasonBusy:
			return 3 * len(mildest)
		}
		return 4 * len(mildest)
	}
	return weight(a) > weight(b)
}
