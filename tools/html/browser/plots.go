package main

import (
	"fmt"
	"strings"
)

// plotChecks are those of pages of figures without scripts, as `mtc inspect --moe` writes them.
var plotChecks = []check{
	{"opens without a complaint, a request or a script", plotsDrawn},
	{"every figure is drawn within its frame", plotsWithin},
	{"text stands out from its background, in both themes", contrast},
	{"nothing is cut off or wider than the page", fits},
}

func plotsDrawn(t *tab) error {
	var r struct{ Figures, Lines, Scripts, Unnamed float64 }
	err := t.eval(`({ figures: document.querySelectorAll("figure svg").length, lines: document.querySelectorAll("polyline").length,
		scripts: document.scripts.length + performance.getEntriesByType("resource").length,
		unnamed: [...document.querySelectorAll("svg")].filter(s => !s.getAttribute("aria-label")).length })`, &r)
	if err != nil {
		return err
	}
	if r.Figures < 5 || r.Lines < 8 || r.Scripts > 0 || r.Unnamed > 0 {
		return fmt.Errorf("%+v", r)
	}
	if err := t.system("dark"); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	return t.shot("dark")
}

// plotsWithin asks that each curve, bar and text lies within its figure, and no coordinate is no number.
func plotsWithin(t *tab) error {
	var bad []string
	err := t.eval(`[...document.querySelectorAll("svg")].flatMap(s => {
		const frame = s.getBoundingClientRect();
		return [...s.querySelectorAll("polyline,rect,circle,text,line")].filter(e => {
			const b = e.getBoundingClientRect();
			return b.left < frame.left - 1 || b.right > frame.right + 1 || b.top < frame.top - 1 || b.bottom > frame.bottom + 1 ||
				/NaN|Inf|undefined/.test(e.outerHTML) || e.tagName === "polyline" && b.width < 50;
		}).map(e => s.getAttribute("aria-label") + ": " + e.outerHTML.slice(0, 80));
	}).slice(0, 5)`, &bad)
	if err == nil && len(bad) > 0 {
		err = fmt.Errorf("%s", strings.Join(bad, "; "))
	}
	return err
}
