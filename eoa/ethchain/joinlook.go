package ethchain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/jamq/jamq/eoa"
)

const (
	// surveyEvery is the time between two looks at all endpoints for an account.
	// Without the others, an endpoint whose head stands still looks like one of a
	// chain that makes no blocks. surveyGap is the least time between two of them
	// for any accounts, so that many accounts ask the endpoints no more often.
	surveyEvery, surveyGap = 10 * time.Second, time.Second
	// surveyGrace is how long the other endpoints may take for a look when one
	// has answered.
	surveyGrace = 2 * time.Second
	// stillAfter is how long the head of an endpoint may stand still while that of
	// another one moves away from it.
	stillAfter = 20 * time.Second
	// doubtFor is how long a contradiction counts if no later survey of the same
	// account finds it again.
	doubtFor = time.Minute
	// maxFinalLag is the number of blocks that the finalized block of an endpoint
	// may be behind that of others: two epochs of Ethereum.
	maxFinalLag = 64
)

// sighting is the look of one endpoint.
type sighting struct {
	end  int // index of the endpoint
	look eoa.Look
}

// Look implements eoa.Chain.
func (j *Joined) Look(ctx context.Context, a common.Address) (eoa.Look, error) {
	return j.look(ctx, a, func(ctx context.Context, c eoa.BlobChain) (eoa.Look, error) { return c.Look(ctx, a) })
}

// LookBlobs implements [eoa.BlobChain].
func (j *Joined) LookBlobs(ctx context.Context, a common.Address) (eoa.Look, error) {
	return j.look(ctx, a, func(ctx context.Context, c eoa.BlobChain) (eoa.Look, error) { return c.LookBlobs(ctx, a) })
}

// look returns the look of the current endpoint if it is up to date and agrees
// with the knowledge of the executor. Otherwise, for an account that is new to the
// executor, and every surveyEvery, look asks all endpoints that work, and takes
// the best one.
func (j *Joined) look(ctx context.Context, a common.Address, ask func(context.Context, eoa.BlobChain) (eoa.Look, error)) (eoa.Look, error) {
	known, isKnown := eoa.KnownOf(ctx)
	all := j.beginSurvey(a, isKnown && !known.Started)
	var got []sighting
	if all {
		got = j.survey(ctx, ask, nil)
	}
	bad := false
	var err error
	if len(got) == 0 {
		err = j.try(ctx, func(ctx context.Context, i int) (bool, error) {
			l, err := ask(ctx, j.ends[i].chain)
			if err == nil {
				got = []sighting{{i, l}}
				bad = !j.sees(i, l.Number) || !fits(&known, &l)
			}
			return err == nil, err
		})
	}
	if len(got) == 0 {
		return eoa.Look{}, err
	}
	if bad && !all { // the newest one wins between equals
		got = j.survey(ctx, ask, got)
		slices.SortStableFunc(got, func(x, y sighting) int { return cmp.Compare(y.look.Number, x.look.Number) })
	}
	best := j.settle(a, &known, got)
	best.look.Doubt = j.doubtAbout(a)
	return best.look, nil
}

// survey asks all endpoints that work at the same time, except the one that has
// answered already. It returns the answers in the order of the endpoints, the
// current one first. An endpoint that hangs delays it by surveyGrace.
func (j *Joined) survey(ctx context.Context, ask func(context.Context, eoa.BlobChain) (eoa.Look, error), got []sighting) []sighting {
	working, doubted, _ := j.order()
	ends := slices.DeleteFunc(append(working, doubted...), func(i int) bool {
		return slices.ContainsFunc(got, func(s sighting) bool { return s.end == i })
	})
	part, cancel := share(ctx, 2) // the other half is for those that rest
	defer cancel()
	answers := gather(part, ends, len(got) > 0, surveyGrace, func(ctx context.Context, i int) (eoa.Look, error) {
		return ask(ctx, j.ends[i].chain)
	}, func(eoa.Look) bool { return true })
	for _, a := range answers {
		if errors.Is(ctx.Err(), context.Canceled) {
			break // not the endpoints' fault
		}
		if j.note(a.end, a.err); a.err == nil {
			j.sees(a.end, a.value.Number)
			got = append(got, sighting{a.end, a.value})
		}
	}
	at := func(s sighting) int { return slices.Index(ends, s.end) }
	slices.SortStableFunc(got, func(x, y sighting) int { return cmp.Compare(at(x), at(y)) })
	return got
}

// beginSurvey reports whether look must ask all endpoints: always if the account
// is new, and otherwise if the last survey is too old.
func (j *Joined) beginSurvey(a common.Address, isNew bool) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	last, before := j.surveyed[a]
	due := isNew || before && now.Sub(last) >= surveyEvery && now.Sub(j.lastSurvey) >= surveyGap
	if due || !before { // the first look of an account asks one endpoint
		j.surveyed[a] = now
	}
	if due {
		j.lastSurvey = now
	}
	return due
}

// fits reports whether a look agrees with the transactions of the account that
// the executor has assigned and seen finalized. If the account is exclusive,
// unknown transactions may be those of a store that lost writes, so that a look
// with them is as good as any other: the account stops then.
func fits(k *eoa.Known, l *eoa.Look) bool {
	return l.Latest >= k.Floor && (!k.Started || k.Exclusive || l.Latest <= k.Next)
}

// contradict reports whether no chain can have both looks, one after the other:
// the older one lacks transactions that are final in the newer one, or the newer
// one has fewer transactions, or less money after the same ones.
func contradict(older, newer *eoa.Look) bool {
	if older.Number > newer.Number {
		older, newer = newer, older
	}
	return older.Number >= newer.Finalized && older.Latest < newer.Final || compareAccount(older, newer) > 0 ||
		older.Number == newer.Number && compareAccount(older, newer) != 0
}

// compareAccount compares the transactions of the account in two looks, and then
// its balance. Both only grow on one chain, except that a transaction may lower
// the balance.
func compareAccount(x, y *eoa.Look) int {
	balance := 0
	if x.Balance != nil && y.Balance != nil {
		balance = x.Balance.Cmp(y.Balance)
	}
	return cmp.Or(cmp.Compare(x.Latest, y.Latest), balance)
}

// choose returns the best of several looks. An endpoint whose head stands still
// far below that of another one does not count, because it may be on a fork that
// the chain has left. The looks that agree with the knowledge of the executor
// come first. Of these, more transactions and then a higher balance win, even
// against a majority and at a lower height: an endpoint on a wrong fork can lack
// transactions of the account, but it cannot invent them, because it has no key.
// Of the rest, those that are up to date are better. Otherwise the first look
// wins.
func choose(k *eoa.Known, got []sighting, stands func(sighting) bool) sighting {
	got = slices.DeleteFunc(slices.Clone(got), stands)
	keep := func(pred func(*eoa.Look) bool) {
		some := slices.DeleteFunc(slices.Clone(got), func(s sighting) bool { return !pred(&s.look) })
		if len(some) > 0 {
			got = some
		}
	}
	keep(func(l *eoa.Look) bool { return fits(k, l) })
	most := slices.MaxFunc(got, func(x, y sighting) int { return compareAccount(&x.look, &y.look) })
	keep(func(l *eoa.Look) bool { return compareAccount(l, &most.look) == 0 })
	var highest, final uint64
	for i := range got {
		highest, final = max(highest, got[i].look.Number), max(final, got[i].look.Finalized)
	}
	keep(func(l *eoa.Look) bool { return l.Number+maxLag >= highest })
	keep(func(l *eoa.Look) bool { return l.Finalized+maxFinalLag >= final })
	return got[0]
}

// settle chooses the best look, makes its endpoint the current one, and
// remembers which others contradict it.
func (j *Joined) settle(a common.Address, k *eoa.Known, got []sighting) (best sighting) {
	j.mu.Lock()
	defer j.mu.Unlock()
	highest := slices.MaxFunc(got, func(x, y sighting) int { return cmp.Compare(x.look.Number, y.look.Number) })
	moved := j.ends[highest.end].moved
	best = choose(k, got, func(s sighting) bool {
		before := j.ends[s.end].moved
		return s.look.Number+maxLag < highest.look.Number && before.Before(moved) && time.Since(before) >= stillAfter
	})
	j.current, j.highest = best.end, best.look.Number
	for _, s := range got {
		e := &j.ends[s.end]
		wrong := s.end != best.end && (contradict(&s.look, &best.look) || fits(k, &best.look) && !fits(k, &s.look))
		switch {
		case wrong:
			e.doubt = fmt.Errorf("%w: endpoint %d has %v, endpoint %d has %v", ErrNode, s.end, describe(a, &s.look), best.end, describe(a, &best.look))
			e.doubtOf, e.doubtUntil = a, time.Now().Add(doubtFor)
		case e.doubtOf == a:
			e.doubt = nil
		}
	}
	return best
}

// describe returns what endpoints can contradict each other in.
func describe(a common.Address, l *eoa.Look) string {
	balance := "an unknown balance"
	if l.Balance != nil {
		balance = l.Balance.Dec() + " wei"
	}
	return fmt.Sprintf("%d transactions and %s of %v at block %d, and %d transactions at its final block %d", l.Latest, balance, a, l.Number, l.Final, l.Finalized)
}

// doubted reports whether an endpoint has contradicted another one, and no later
// survey has shown the opposite.
func (e *endpoint) doubted(now time.Time) bool { return e.doubt != nil && now.Before(e.doubtUntil) }

// doubtAbout returns the contradictions of the endpoints about an account, or
// nil.
func (j *Joined) doubtAbout(a common.Address) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range j.ends {
		if e := &j.ends[i]; e.doubted(time.Now()) && e.doubtOf == a {
			return e.doubt
		}
	}
	return nil
}
