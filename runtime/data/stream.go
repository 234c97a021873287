package data

import (
	"fmt"
	"sort"

	"github.com/megatrain/mtc/runtime/data/packed"
)

// stream is tokens one after another, and which of them are learned.
type stream interface {
	Tokens() int64
	// read fills dst, and learn unless it is nil, with what stands from off on.
	read(dst []int32, learn []bool, off int64) error
	source() string // for messages
}

func (c *Corpus) read(dst []int32, learn []bool, off int64) error {
	for i := range learn {
		learn[i] = true
	}
	return c.Read(dst, off)
}

// joined is documents of a packed folder one after another.
type joined struct {
	set  *packed.Set
	docs []int64
	end  []int64 // tokens of documents 0..i
}

func join(set *packed.Set, docs []int64) *joined {
	j := &joined{set: set, docs: docs, end: make([]int64, len(docs))}
	total := int64(0)
	for i, d := range docs {
		total += set.Len(d)
		j.end[i] = total
	}
	return j
}

// Tokens is the number of tokens.
func (j *joined) Tokens() int64 {
	if len(j.end) == 0 {
		return 0
	}
	return j.end[len(j.end)-1]
}

func (j *joined) source() string { return j.set.Dir }

func (j *joined) read(dst []int32, learn []bool, off int64) error {
	if off < 0 || off+int64(len(dst)) > j.Tokens() {
		panic(fmt.Sprintf("data: read of tokens [%d, %d) of %d", off, off+int64(len(dst)), j.Tokens()))
	}
	i := sort.Search(len(j.end), func(i int) bool { return j.end[i] > off })
	for len(dst) > 0 {
		start := int64(0)
		if i > 0 {
			start = j.end[i-1]
		}
		n := min(int64(len(dst)), j.end[i]-off)
		var l []bool
		if learn != nil {
			l, learn = learn[:n], learn[n:]
		}
		if err := j.set.Read(j.docs[i], off-start, dst[:n], l); err != nil {
			return err
		}
		dst, off = dst[n:], off+n
		i++
	}
	return nil
}
