package pack

import (
	"fmt"
	"slices"
)

// fit makes a document fit --seq, and leaves out what has nothing to learn.
func (p *packer) fit(d document) []document {
	// Seq inputs and, one later, Seq targets.
	most := int(p.Seq) + 1
	if p.Seq == 0 || len(d.tokens) <= most || !(p.chats || p.Apart) {
		return []document{p.learned(d)}
	}
	long := &reason{kind: ofLength, detail: fmt.Sprintf("%d tokens, and %d fit", len(d.tokens), most)}
	switch p.Overlong {
	case "drop":
		d.bad = long
		return []document{d}
	case "cut":
		d.tokens, d.learn = d.tokens[:most], d.learn[:most]
		return []document{p.learned(d)}
	case "split":
		var out []document
		// Pieces overlap by the token that is the last target of one and the first input of the
		// next, so that every target is learned once.
		for at := 0; at+1 < len(d.tokens); at += most - 1 {
			end := min(at+most, len(d.tokens))
			part := document{line: d.line, tokens: d.tokens[at:end], learn: append([]bool(nil), d.learn[at:end]...)}
			part.learn[0] = part.learn[0] && at == 0
			out = append(out, p.learned(part))
		}
		return out
	}
	long.fatal = true
	d.bad = long
	return []document{d}
}

// learned leaves out a document whose targets are none of them learned. Nothing predicts the first
// token of one that is kept apart; in a stream the end of the document before it does.
func (p *packer) learned(d document) document {
	if p.chats || p.Apart {
		clear(d.learn[:min(1, len(d.learn))])
	}
	if !slices.Contains(d.learn, true) {
		d.bad = &reason{kind: ofNothing}
	}
	return d
}
