package storetest

import (
	"github.com/stretchr/testify/require"

	"github.com/jamq/jamq/eoa"
)

// drop checks that a dropped record leaves its key, state and digest, and
// nothing else.
func (c *suite) drop() {
	records := c.submit(req("a"), req("b"), req("open"))
	l := c.acquire("w")
	head := eoa.Head{Started: true, Next: 3}
	for i := range records {
		records[i] = prepared(records[i], uint64(i))
	}
	_, err := c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Records: records})
	require.NoError(c, err)
	records[0].State, records[1].State = eoa.Final, eoa.Failed
	head.Version++
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Records: records[:2]})
	require.NoError(c, err)
	head.Version++
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Drop: records}) // the open one stays
	require.NoError(c, err)

	for i, state := range []eoa.State{eoa.Final, eoa.Failed} {
		old := &records[i]
		want := eoa.Record{Request: eoa.Request{Key: old.Key}, ID: old.ID, State: state}
		require.Equal(c, want, c.get(old.Key))
		again := c.submit(old.Request)[0]
		require.Equal(c, []any{old.ID, state}, []any{again.ID, again.State}, "the same request")
		other := old.Request
		other.Gas += 10_000
		_, err = c.s.Submit(c.ctx, c.a, c.now, other)
		require.ErrorIs(c, err, eoa.ErrKeyReused)
		_, err = c.s.ByHash(c.ctx, c.a, old.Attempts[0].Hash)
		require.ErrorIs(c, err, eoa.ErrUnknownRequest)
	}
	list, err := c.s.List(c.ctx, c.a, 0, 10)
	require.NoError(c, err)
	require.Len(c, list, 1)
	require.Len(c, c.load(l).Open, 1)
	head.Version++
	_, err = c.s.Commit(c.ctx, l, c.now, eoa.Batch{Head: head, Drop: records[:2]})
	require.NoError(c, err, "once more")
	require.Equal(c, eoa.Final, c.get("a").State)
	require.Greater(c, c.submit(req("new"))[0].ID, records[2].ID)
}
