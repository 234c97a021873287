package jinja

import "strings"

// Bounds. Templates come with models from anywhere: what they make and how long they take is
// bounded, whatever they do.
const (
	maxItems  = 1 << 20 // of a list
	maxDepth  = 200     // of a template's text and of what it calls
	maxNested = 1000    // of lists in lists
)

// maxSteps bounds the work: statements, calls, items, and what else work counts: about ten seconds.
// maxOutput bounds a text, rendered or on the way, in bytes. Tests lower both.
var (
	maxSteps        = 10_000_000
	maxOutput int64 = 256 << 20
)

func (r *renderer) step(line int) { r.work(1, line) }

// work counts steps.
func (r *renderer) work(n int, line int) {
	if r.steps += n; r.steps > maxSteps {
		throw(line, "the template runs for too long")
	}
}

// fits refuses a text of too many bytes before it is made, and counts the work of making it.
func (r *renderer) fits(bytes, line int) {
	if bytes < 0 || int64(bytes) > maxOutput {
		throw(line, "a text that is too long")
	}
	r.work(bytes>>8, line)
}

// list is fits for a list.
func (r *renderer) list(items, line int) {
	if items < 0 || items > maxItems {
		throw(line, "a list that is too long")
	}
	r.work(items>>4, line)
}

// replaced is strings.Replace.
func (r *renderer) replaced(s, from, to string, n int64, line int) string {
	places := int64(strings.Count(s, from))
	if n >= 0 {
		places = min(places, n)
	}
	if grow := int64(len(to) - len(from)); grow > 0 && places > (maxOutput-int64(len(s)))/grow {
		throw(line, "a text that is too long")
	}
	r.fits(len(s), line)
	return strings.Replace(s, from, to, int(places))
}

// joinedBy is strings.Join.
func (r *renderer) joinedBy(parts []string, sep string, line int) string {
	total := max(0, len(parts)-1) * len(sep) // at most 2^20 times 2^28
	for _, p := range parts {
		if total += len(p); int64(total) > maxOutput {
			break
		}
	}
	r.fits(total, line)
	return strings.Join(parts, sep)
}
