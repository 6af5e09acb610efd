package rpcapi

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/jamq/jamq"
	"github.com/jamq/jamq/bundlequeue"
	"github.com/jamq/jamq/examples/refnode/node"
)

//go:embed status.html
var statusHTML string

var statusTemplate = template.Must(template.New("status").Parse(statusHTML))

// shownBlocks is how many of the newest blocks the page lists.
const shownBlocks = 20

// statusPage shows a browser where the node stands.
type statusPage struct{ node *node.Node }

type flowStep struct {
	Name  string
	Count int
}

type blockRow struct {
	Number  uint64
	Txs     int
	Status  string
	Version int
	Core    jamq.CoreIndex
	Slot    jamq.Slot
}

type pageData struct {
	ChainID                    string
	JAMSlot                    jamq.Slot
	Pool                       int
	Flow                       []flowStep
	Pending, Latest, Finalized uint64
	Root                       common.Hash
	Blocks                     []blockRow
}

func (p *statusPage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	data, err := p.collect(r)
	if err != nil {
		http.Error(w, "the node is stopping", http.StatusServiceUnavailable)
		return
	}
	var page bytes.Buffer
	if err := statusTemplate.Execute(&page, data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(page.Bytes()) // a browser that left is no error of ours
}

func (p *statusPage) collect(r *http.Request) (*pageData, error) {
	stats, err := p.node.QueueStats(r.Context())
	if err != nil {
		return nil, err
	}
	pending, queued := p.node.PoolCounts()
	head := p.node.Resolve(rpc.PendingBlockNumber)
	data := &pageData{
		ChainID:   p.node.ChainConfig().ChainID.String(),
		JAMSlot:   p.node.JAMSlot(),
		Pool:      pending + queued,
		Pending:   head.NumberU64(),
		Latest:    p.node.Resolve(rpc.LatestBlockNumber).NumberU64(),
		Finalized: p.node.Resolve(rpc.FinalizedBlockNumber).NumberU64(),
		Root:      p.node.CanonicalRoot(),
	}
	for state := bundlequeue.Queued; state < bundlequeue.Finalized; state++ {
		data.Flow = append(data.Flow, flowStep{state.String(), stats.Count[state]})
	}
	data.Flow = append(data.Flow, flowStep{bundlequeue.Finalized.String(), int(data.Finalized)})
	for n := head.NumberU64(); n > 0 && len(data.Blocks) < shownBlocks; n-- {
		b, progress := p.node.Resolve(rpc.BlockNumber(n)), p.node.Progress(n)
		if b == nil {
			break
		}
		data.Blocks = append(data.Blocks, blockRow{n, len(b.Transactions()), progress.Status, progress.Version, progress.Core, progress.At.Slot})
	}
	return data, nil
}
