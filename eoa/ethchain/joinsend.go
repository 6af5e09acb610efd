package ethchain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jamq/jamq/eoa"
)

// errNoAnswer is the failure of an endpoint that did not answer a send.
var errNoAnswer = errors.New("ethchain: no answer to a send")

// Send implements [eoa.Chain].
func (j *Joined) Send(ctx context.Context, raws [][]byte) []eoa.Sent {
	working, doubted, resting := j.order()
	targets := append(working, doubted...) // the choice may be wrong
	if len(targets) == 0 {
		targets = resting
	}
	answers := gather(ctx, targets, false, leastGrace, func(ctx context.Context, i int) ([]eoa.Sent, error) {
		return j.ends[i].chain.Send(ctx, raws), nil
	}, func(sent []eoa.Sent) bool {
		return !slices.ContainsFunc(sent, func(s eoa.Sent) bool { return s.Result != eoa.Accepted })
	})
	var trusted, others [][]eoa.Sent
	for _, a := range answers {
		if a.err != nil {
			a.value = []eoa.Sent{{Text: a.err.Error()}}
		}
		if j.note(a.end, failure(a.value)); len(working) > 0 && slices.Contains(doubted, a.end) {
			others = append(others, a.value)
		} else {
			trusted = append(trusted, a.value)
		}
	}
	return mergeDoubted(merge(trusted, len(raws)), others)
}

// mergeDoubted adds the results of endpoints that contradict others. A
// transaction that one of them accepts may be on a node. Their refusals say
// nothing about the chain that the others are on.
func mergeDoubted(out []eoa.Sent, doubted [][]eoa.Sent) []eoa.Sent {
	for _, sent := range doubted {
		for i := range min(len(out), len(sent)) {
			if sent[i].Result == eoa.Accepted && out[i].Result != eoa.Accepted {
				out[i] = sent[i]
			}
		}
	}
	return out
}

// answer is the answer of one endpoint to a call.
type answer[T any] struct {
	end   int // index of the endpoint
	value T
	err   error
}

// gather calls f for several endpoints at the same time, and returns the answers
// in the order in which they arrive. Once an answer is good, the other endpoints
// may take as long as that one did, and at least grace; so they may from the
// beginning if late is set. Then their calls are cancelled. A panic of f is an
// error, because here it would end the process.
func gather[T any](ctx context.Context, ends []int, late bool, grace time.Duration, f func(context.Context, int) (T, error), good func(T) bool) []answer[T] {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer[T], len(ends))
	for _, i := range ends {
		go func() {
			a := answer[T]{end: i}
			defer func() { answers <- a }()
			defer func() {
				if value := recover(); value != nil {
					a.err = fmt.Errorf("ethchain: panic of endpoint %d: %v", i, value)
				}
			}()
			a.value, a.err = f(ctx, i)
		}()
	}
	began := time.Now()
	var limit *time.Timer
	defer func() {
		if limit != nil {
			limit.Stop()
		}
	}()
	all := make([]answer[T], 0, len(ends))
	for range ends {
		if late && limit == nil {
			limit = time.AfterFunc(max(time.Since(began), grace), cancel)
		}
		a := <-answers
		late = late || a.err == nil && good(a.value)
		all = append(all, a)
	}
	return all
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
