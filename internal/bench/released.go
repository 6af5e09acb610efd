package main

import (
	_ "embed"
	"encoding/json"
	"os"
)

// figures are the values of a workload by contender.
type figures map[string]float64

// history has the figures of the last release, by scale ("full" or "quick") and
// workload. The peers are in it because only a ratio to a peer that was
// measured in the same run can be compared with another run.
type history map[string]map[string]figures

// releasedFile is written by -record.
const releasedFile = "released.json"

//go:embed released.json
var releasedJSON []byte

// readReleased returns the figures of the last release.
func readReleased() (h history) {
	must(json.Unmarshal(releasedJSON, &h))
	return h
}

// record adds the figures of a table at a scale.
func (h history) record(scale string, t table) {
	if h[scale] == nil {
		h[scale] = make(map[string]figures)
	}
	for _, r := range t.rows {
		f := make(figures)
		for _, name := range t.columns {
			if v := t.value(r, name); v != 0 {
				f[name] = v
			}
		}
		h[scale][r.what] = f
	}
}

// write writes the file in the working directory.
func (h history) write() error {
	text, err := json.MarshalIndent(h, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(releasedFile, append(text, '\n'), 0o644)
}
