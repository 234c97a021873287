package compiler

import (
	"fmt"
	"strings"

	"github.com/megatrain/mtc/compiler/ir"
	"github.com/megatrain/mtc/runtime/ops/moe"
	"github.com/megatrain/mtc/runtime/plan"
)

// routerValues are the constants of a model's routers, "layer[1].moe.rate", in the words of their text. Of
// routers that are equal and of one call the first one's stand for all.
func routerValues(m *ir.Model) []plan.Value {
	var out []plan.Value
	seen := map[string]bool{}
	for _, r := range m.Routers {
		var list []plan.Value
		key := []string{r.Span.Line()}
		add := func(name string, text any) {
			list = append(list, plan.Value{Name: r.Path + "." + name, Text: fmt.Sprint(text)})
			key = append(key, fmt.Sprint(text))
		}
		number := func(name string) { add(name, r.Attr[name].Num()) }
		kind := routerKind(r)
		add("router", kind)
		if kind == "topk" {
			add("k", r.Attr["k"].Int)
			add("scores", map[bool]string{false: "softmax", true: "sigmoid"}[r.Attr["sigmoid"].Bool])
			add("renorm", r.Attr["renorm"].Bool)
			add("balance", balanceText(r))
			number("zloss")
			number("scale")
		} else {
			number("rate")
			number("ema")
			add("first cutoff", r.Attr["start"].Num())
		}
		switch kind {
		case "threshold":
			add("warmup", warmupText(r))
			add("capacity", noneBelow(r.Attr["capacity"].Num()))
		case "expert_choice":
			add("pool", poolText(r))
		}
		if at := strings.Join(key, "\n"); !seen[at] {
			seen[at] = true
			out = append(out, list...)
		}
	}
	return out
}

func routerKind(r *ir.Router) string {
	switch {
	case r.Attr["kind"].Int == moe.TopK:
		return "topk"
	case r.Attr["choice"].Int < 0:
		return "expert_choice"
	}
	return "threshold"
}

func balanceText(r *ir.Router) string {
	switch r.Attr["balance"].Int {
	case moe.AuxMicro:
		return fmt.Sprintf("aux(%v, scope = micro)", r.Attr["alpha"].Num())
	case moe.AuxStep:
		return fmt.Sprintf("aux(%v, scope = step)", r.Attr["alpha"].Num())
	case moe.LossFree:
		return fmt.Sprintf("lossfree(%v)", r.Attr["u"].Num())
	case moe.QuantileTop:
		return "quantile"
	}
	return "none"
}

func warmupText(r *ir.Router) string {
	switch {
	case r.Attr["choice"].Int > 0:
		return fmt.Sprintf("expert_choice(%d, pool = %s)", r.Attr["choice"].Int, poolText(r))
	case r.Attr["causal"].Int > 0:
		return fmt.Sprintf("causal(%d)", r.Attr["causal"].Int)
	}
	return "none"
}

func poolText(r *ir.Router) string {
	switch r.Attr["pool"].Int {
	case moe.Sequence:
		return "sequence"
	case moe.Micro:
		return "micro"
	}
	return "step"
}

func noneBelow(x float64) string {
	if x < 0 {
		return "none"
	}
	return fmt.Sprint(x)
}
