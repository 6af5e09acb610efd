package account

import "time"

// DropOld drops the ended records that the rules do not keep. newest is the highest id
// known.
func (v *View) DropOld(c *Rules, now time.Time, newest uint64, records []Record) Batch {
	b := v.Batch()
	for i := range records {
		if c.Retention.drops(now, newest, &records[i]) {
			b.Drop = append(b.Drop, records[i])
		}
	}
	return b
}
