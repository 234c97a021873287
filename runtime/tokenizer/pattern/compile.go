package pattern

// compiler turns nodes into instructions.
type compiler struct {
	*parser
	code  []instr
	depth int // of loops that may be empty
	loops bool
}

func (c *compiler) add(in instr) int {
	if len(c.code) >= maxCode {
		c.fail("it is too long when its counts are written out")
	}
	c.code = append(c.code, in)
	return len(c.code) - 1
}

func (c *compiler) emit(n *node) {
	switch n.kind {
	case nClass:
		c.add(instr{op: opClass, set: n.set})
	case nSeq:
		for _, p := range n.parts {
			c.emit(p)
		}
	case nAlt:
		c.alternatives(n.parts)
	case nLoop:
		c.loop(n)
	case nAhead:
		at := c.add(instr{op: opAhead, neg: n.neg})
		c.emit(n.parts[0])
		c.add(instr{op: opMatch})
		c.code[at].x = len(c.code)
	case nBehind:
		c.add(instr{op: opBehind, neg: n.neg, set: n.set})
	case nBegin:
		c.add(instr{op: opBegin})
	case nEnd:
		c.add(instr{op: opEnd})
	}
}

func (c *compiler) alternatives(parts []*node) {
	var ends []int
	for i, p := range parts {
		if i == len(parts)-1 {
			c.emit(p)
			break
		}
		at := c.add(instr{op: opSplit})
		c.code[at].x = len(c.code)
		c.emit(p)
		ends = append(ends, c.add(instr{op: opJump}))
		c.code[at].y = len(c.code)
	}
	for _, e := range ends {
		c.code[e].x = len(c.code)
	}
}

func (c *compiler) loop(n *node) {
	if set := oneClass(n.parts[0]); set != nil && !n.lazy {
		op := opLoop
		if n.atomic {
			op = opTake
		}
		c.add(instr{op: op, lo: n.lo, hi: n.hi, set: set})
		return
	}
	if n.atomic {
		at := c.add(instr{op: opAtomic})
		plain := *n
		plain.atomic = false
		c.loop(&plain)
		c.add(instr{op: opMatch})
		c.code[at].x = len(c.code)
		return
	}
	for range n.lo {
		c.emit(n.parts[0])
	}
	if n.hi >= 0 {
		var ends []int
		for range n.hi - n.lo {
			ends = append(ends, c.choice(n.lazy))
			c.emit(n.parts[0])
		}
		for _, e := range ends {
			c.leave(e, n.lazy)
		}
		return
	}
	if c.depth >= len(machine{}.marks) {
		c.fail("loops are nested too deeply")
	}
	at := c.choice(n.lazy)
	c.loops = true
	mark := c.depth
	c.add(instr{op: opMark, x: mark})
	c.depth++
	c.emit(n.parts[0])
	c.depth--
	c.add(instr{op: opMoved, x: mark})
	c.add(instr{op: opJump, x: at})
	c.leave(at, n.lazy)
}

// choice begins an iteration that need not be: greedy ones prefer it.
func (c *compiler) choice(lazy bool) int {
	at := c.add(instr{op: opSplit})
	if lazy {
		c.code[at].y = len(c.code)
	} else {
		c.code[at].x = len(c.code)
	}
	return at
}

// leave is where the way around the iteration goes on.
func (c *compiler) leave(at int, lazy bool) {
	if lazy {
		c.code[at].x = len(c.code)
	} else {
		c.code[at].y = len(c.code)
	}
}
