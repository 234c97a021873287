package ir

// Copy is the model with values, units and graphs of its own, as the passes change them that give sizes and element types and
// choose what is made again. What those leave alone is shared: calls, weights, parameters, routers.
func (m *Model) Copy() *Model {
	out := *m
	value := copier(2 * len(m.Values))
	out.Values = copies(m.Values, value)
	out.Units = copies(m.Units, func(u *Unit) *Unit {
		x := *u
		x.Inputs, x.Outputs, x.Graph = copies(u.Inputs, value), copies(u.Outputs, value), u.Graph.copy()
		return &x
	})
	return &out
}

// copy is the graph with values and nodes of its own.
func (g *Graph) copy() *Graph {
	out := *g
	value := copier(len(g.Inputs) + len(g.Nodes))
	out.Inputs = copies(g.Inputs, value)
	nodes := make([]Node, len(g.Nodes))
	out.Nodes = make([]*Node, len(g.Nodes))
	for i, n := range g.Nodes {
		nodes[i] = *n
		c := &nodes[i]
		c.Inputs, c.Out = copies(n.Inputs, value), value(n.Out)
		c.Out.Node = c
		out.Nodes[i] = c
	}
	out.Outputs = copies(g.Outputs, value)
	return &out
}

// copier gives each of about n values its copy, the same one whenever it is asked.
func copier(n int) func(*Value) *Value {
	values := make(map[*Value]*Value, n)
	return func(v *Value) *Value {
		c := values[v]
		if c == nil {
			x := *v
			c = &x
			values[v] = c
		}
		return c
	}
}

func copies[E any](list []E, of func(E) E) []E {
	if list == nil {
		return nil
	}
	out := make([]E, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}
