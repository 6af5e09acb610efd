package account

// NeedsGas reports whether the job's gas must be estimated.
func (j *Job) NeedsGas() bool { return j.Gas == 0 && !j.Noop }

// gasLimit returns the gas limit of a transaction that needs an estimated amount
// of gas: more by the margin, but not more than a block or a transaction may
// have if the estimate itself is below that. If a node has refused the limit of
// an earlier attempt, it is the estimate.
func (v *View) gasLimit(c *Rules, r *Record, estimate uint64) uint64 {
	if r.overGasLimit() > 0 {
		return estimate
	}
	limit := estimate + estimate/100*c.GasMargin
	for _, most := range []uint64{maxTxGas, v.seen.GasLimit} {
		if estimate <= most {
			limit = min(limit, most)
		}
	}
	return limit
}

// overGasLimit returns how many attempts a node has refused because of their gas
// limit.
func (r *Record) overGasLimit() int {
	n := 0
	for i := range r.Attempts {
		if Classify(r.Attempts[i].Why) == ReasonGasLimit {
			n++
		}
	}
	return n
}

func (v *View) noopGas(c *Rules) uint64 {
	if v.delegated(c) {
		return noopGasDelegated
	}
	return noopGas
}

// delegated reports whether the account has code, so that nodes take one of its
// transactions at a time.
func (v *View) delegated(c *Rules) bool { return c.Delegated || v.seen != nil && v.seen.Delegated }
