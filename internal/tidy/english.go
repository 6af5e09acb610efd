package tidy

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
)

// A phrase is a pattern of English that a reader stumbles over.
type phrase struct {
	pattern *regexp.Regexp
	// except is a continuation behind which the pattern is good English.
	except *regexp.Regexp
	rule   string
}

var phrases = []phrase{
	{
		pattern: regexp.MustCompile(`(?:^|[.;:,(]\s+|\b(?:of|for|to|by|from|with|and|or|is|are|than|that)\s)(?:[Ww]ho|[Ww]hoever|[Ww]hat)\s[a-z]+`),
		except:  regexp.MustCompile(`(?:[Ww]ho|[Ww]hoever|[Ww]hat)\sto$`),
		rule:    "give the clause a noun as its subject: a caller that, the value that",
	},
	{
		pattern: regexp.MustCompile(`\b(?:is|are|was|were|be|been)\s+told\b|\btells?\s+of\b|\btold\s+of\b`),
		rule:    "say what happens: it receives, it is called with, it returns",
	},
	{
		pattern: regexp.MustCompile(`\banew\b|\bfor ever\b|\bas ever\b|\ball the same\b|\bso many\b|\bso long\b|\bso much\b|\bof late\b`),
		rule:    "use the plain word: again, forever, nevertheless, this many",
	},
	{
		pattern: regexp.MustCompile(`\bto be had\b|\bnowhere\b|\bof (?:its|their|ones?|one's|our) own\b`),
		rule:    "use the plain word: available, not anywhere, its own timer",
	},
	{
		pattern: regexp.MustCompile(`(?:;|,|\bor|and|\.)\s+[Ee]lse\b(?:\s\w+)?`),
		except:  regexp.MustCompile(`[Ee]lse\sif$`),
		rule:    `use "otherwise"`,
	},
	{
		pattern: regexp.MustCompile(`\b[Ww]here\s+(?:an?|the|no|nothing|it|they|one|some|there|that|this|any|all|its|somebody|nobody)\b`),
		rule:    `a condition begins with "if" or "when"; "where" is for places`,
	},
	{
		pattern: regexp.MustCompile(`(?i)\b(?:some|no|every|any)body\b`),
		rule:    "name the actor: caller, host, peer, node, worker, another process",
	},
	{
		pattern: regexp.MustCompile(`\bbut for\b|\blest\b`),
		rule:    `use "except" or "so that … not"`,
	},
	{
		pattern: regexp.MustCompile(`\b(?:asked for|waited for|looked at|looked for|cared for|seen to it|sees to it|spoken of|speaks? of|heard of|hears? of)\b`),
		rule:    "name the actor and the act: the node requests, the caller waits for",
	},
	{
		pattern: regexp.MustCompile(`\bword about\b|\bsays (?:that|so|what|how|which|when|whether|why|where|nothing|who)\b|\bwithout a word\b`),
		rule:    "say what is returned, logged or defined, and by which function",
	},
}

// English finds phrases of compressed English in comments, in documents, and
// in the texts of errors, log lines, flags and metrics. Code and quotations
// are left out.
func English(tree *Tree) []Finding {
	var all []Finding
	for _, f := range tree.Files {
		for _, p := range tree.comments(f) {
			all = append(all, awkward(p)...)
		}
		if !f.Test() {
			for _, p := range tree.messages(f) {
				all = append(all, awkward(p)...)
			}
		}
	}
	for _, d := range tree.Documents {
		for _, p := range d.paragraphs() {
			all = append(all, awkward(p)...)
		}
	}
	return all
}

var quoted = regexp.MustCompile("`[^`]*`|\"[^\"]*\"|“[^”]*”")

// awkward returns the phrases in a passage, each with the line that it begins
// in.
func awkward(p passage) []Finding {
	var all []Finding
	text := strings.Join(p.text, " ")
	text = quoted.ReplaceAllStringFunc(text, func(code string) string {
		return strings.Repeat("_", len(code)) // keeps the offsets
	})
	for _, phrase := range phrases {
		for _, at := range phrase.pattern.FindAllStringIndex(text, -1) {
			found := text[at[0]:at[1]]
			if phrase.except != nil && phrase.except.MatchString(found) {
				continue
			}
			all = append(all, Finding{Path: p.path, Line: p.lineAt(at[0]), Check: "english",
				Text: fmt.Sprintf("%q: %s", strings.TrimLeft(found, " .,;:("), phrase.rule)})
		}
	}
	return all
}

// lineAt returns the line of an offset in the text joined with spaces.
func (p passage) lineAt(offset int) int {
	for i, text := range p.text {
		if offset <= len(text) {
			return p.lines[i]
		}
		offset -= len(text) + 1
	}
	return p.lines[len(p.lines)-1]
}

// speaking are the names of functions whose first text is read by people.
var speaking = map[string]bool{
	"New": true, "Errorf": true, // errors
	"Debug": true, "Info": true, "Warn": true, "Error": true, "Log": true, // log lines
	"Bool": true, "BoolVar": true, "Int": true, "IntVar": true, "Uint64": true, "String": true, "StringVar": true,
	"Duration": true, "DurationVar": true, "Float64": true, "Func": true, "Var": true, // flags
	"NewDesc": true, // metrics
}

// constantText returns the text of a string literal or of a sum of them. A part
// of a sum that is not a literal is left out.
func constantText(expr ast.Expr) (text string, isText bool) {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		if expr.Kind != token.STRING {
			return "", false
		}
		text, err := strconv.Unquote(expr.Value)
		return text, err == nil
	case *ast.BinaryExpr:
		left, isLeft := constantText(expr.X)
		right, isRight := constantText(expr.Y)
		return left + right, expr.Op == token.ADD && (isLeft || isRight)
	}
	return "", false
}

// messages returns the texts of errors, log lines, flags and metrics.
func (t *Tree) messages(f *File) []passage {
	var all []passage
	add := func(expr ast.Expr) {
		if text, isText := constantText(expr); isText {
			all = append(all, passage{path: f.Path, lines: []int{t.line(expr.Pos())}, text: []string{strings.ReplaceAll(text, "\n", " ")}})
		}
	}
	ast.Inspect(f.Syntax, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			if selector, isSelector := node.Fun.(*ast.SelectorExpr); isSelector && speaking[selector.Sel.Name] {
				for _, argument := range node.Args {
					add(argument)
				}
			}
		case *ast.KeyValueExpr:
			if key, isName := node.Key.(*ast.Ident); isName && key.Name == "Help" {
				add(node.Value)
			}
		}
		return true
	})
	return all
}
