package tidy

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	linkPattern = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	markPattern = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links finds links in documents to a file of this repository that does not
// exist, or to a heading that its document does not have. Links to other hosts
// are not checked.
func Links(tree *Tree) []Finding {
	var all []Finding
	for _, d := range tree.Documents {
		for _, p := range d.paragraphs() {
			for i, text := range p.text {
				for _, match := range linkPattern.FindAllStringSubmatch(quoted.ReplaceAllString(text, ""), -1) {
					if problem := tree.brokenLink(d, match[1]); problem != "" {
						all = append(all, Finding{Path: d.Path, Line: p.lines[i], Check: "links", Text: problem})
					}
				}
			}
		}
	}
	return all
}

// brokenLink returns the problem of a link in a document, "" for none.
func (t *Tree) brokenLink(from *Document, link string) string {
	if strings.Contains(link, ":") {
		return "" // another host
	}
	file, heading, _ := strings.Cut(link, "#")
	target := from.Path
	if file != "" {
		target = path.Join(path.Dir(from.Path), file)
		if _, err := fs.Stat(t.root, target); err != nil {
			return "there is no file " + target
		}
	}
	if heading == "" {
		return ""
	}
	for _, d := range t.Documents {
		if d.Path == target && !d.hasHeading(heading) {
			return target + " has no heading #" + heading
		}
	}
	return ""
}

// hasHeading reports whether a heading has the given anchor: its text in lower
// case without punctuation, with a hyphen for each space.
func (d *Document) hasHeading(anchor string) bool {
	for _, line := range d.Lines {
		text := strings.TrimLeft(line, "#")
		if text == line {
			continue
		}
		text = markPattern.ReplaceAllString(strings.ToLower(strings.TrimSpace(text)), "")
		if strings.ReplaceAll(text, " ", "-") == anchor {
			return true
		}
	}
	return false
}
