package main

import (
	"fmt"
	"regexp"
	"strings"
)

// check is something that must hold of a page.
type check struct {
	name string
	run  func(*tab) error
}

var checks = []check{
	{"opens without a complaint or a request", opens},
	{"keys zoom, pan and select", keys},
	{"a click selects a task and shows its line", click},
	{"wheel and drag", wheel},
	{"search and filter", search},
	{"the list of tasks holds only what is in view", list},
	{"dark, by the system and by the button", dark},
	{"text stands out from its background, in both themes", contrast},
	{"nothing is cut off or wider than the page", fits},
	{"print", printed},
}

func opens(t *tab) error {
	if from, to, err := t.span(); err != nil || from != 0 || !(to > 0) {
		return fmt.Errorf("shows %v to %v, %v", from, to, err)
	}
	return t.shot("light")
}

func keys(t *tab) error {
	// Tab reaches the canvas.
	reached := false
	for range 60 {
		if err := t.key("Tab"); err != nil {
			return err
		}
		at, err := t.text("document.activeElement.id")
		if err != nil {
			return err
		}
		if reached = at == "canvas"; reached {
			break
		}
	}
	if !reached {
		// A synthetic Tab does not move the focus everywhere.
		if err := t.eval("document.getElementById('canvas').focus()", nil); err != nil {
			return err
		}
	}
	from0, to0, err := t.span()
	if err != nil {
		return err
	}
	step := func(key string, ok func(from, to float64) bool) error {
		if err := t.key(key); err != nil {
			return err
		}
		from, to, err := t.span()
		if err == nil && !ok(from, to) {
			err = fmt.Errorf("after %s the view is %v to %v", key, from, to)
		}
		return err
	}
	var from1, to1 float64
	for _, s := range []struct {
		key string
		ok  func(from, to float64) bool
	}{
		{"+", func(f, t float64) bool { from1, to1 = f, t; return t-f < 0.7*(to0-from0) }},
		{"ArrowRight", func(f, t float64) bool { return f > from1 && t > to1 }},
		{"ArrowLeft", func(f, _ float64) bool { return f < from1+1e-3*(to0-from0) }},
		{"-", func(f, t float64) bool { return t-f > to1-from1 }},
		{"0", func(f, t float64) bool { return f == from0 && t == to0 }},
	} {
		if err := step(s.key, s.ok); err != nil {
			return err
		}
	}
	if err := t.key("n"); err != nil {
		return err
	}
	a, err := t.text("canvas.dataset.task")
	if err != nil || a == "" {
		return fmt.Errorf("n selects nothing: %v", err)
	}
	if err := t.key("n"); err != nil {
		return err
	}
	if b, err := t.text("canvas.dataset.task"); err != nil || b == a || b == "" {
		return fmt.Errorf("n again goes from task %s to %s, %v", a, b, err)
	}
	if err := step("z", func(f, to float64) bool { return to-f < to0-from0 }); err != nil {
		return err
	}
	if err := t.key("Escape"); err != nil {
		return err
	}
	if b, err := t.text("canvas.dataset.task"); err != nil || b != "" {
		return fmt.Errorf("key Escape leaves task %s, %v", b, err)
	}
	return nil
}

// middle is a point of the compute lane where a task is: it zooms to the lane's first one.
func (t *tab) middle() (x, y float64, err error) {
	if err = t.eval("canvas.focus()", nil); err != nil {
		return 0, 0, err
	}
	for _, key := range []string{"n", "n", "z", "Escape"} {
		if err = t.key(key); err != nil {
			return 0, 0, err
		}
	}
	var box struct{ X, Y, Width float64 }
	err = t.eval("(() => { const b = canvas.getBoundingClientRect(); return { x: b.x, y: b.y, width: b.width }; })()", &box)
	return box.X + 84 + (box.Width-98)*0.5, box.Y + 24 + 22 + 15, err
}

// ofTemplate matches the title of a task that runs a function of a template, which has kernels and a text.
var ofTemplate = regexp.MustCompile(`: (forward|backward|loss|recompute)`)

func click(t *tab) error {
	x, y, err := t.middle()
	if err != nil {
		return err
	}
	if err := t.mouse(x, y, "mouseMoved"); err != nil {
		return err
	}
	if tip, err := t.text("document.getElementById('tip').hidden ? '' : document.getElementById('tip').textContent"); err != nil || !strings.Contains(tip, ":") {
		return fmt.Errorf("no tip over a task: %q, %v", tip, err)
	}
	if err := t.mouse(x, y, "mousePressed", "mouseReleased"); err != nil {
		return err
	}
	title, err := t.text("document.querySelector('#task h3')?.textContent")
	if err == nil && !ofTemplate.MatchString(title) { // an update, say: in the middle of the whole step there is another
		if err := t.eval("document.getElementById('fit').click()", nil); err != nil {
			return err
		}
		if err := t.mouse(x, y, "mousePressed", "mouseReleased"); err != nil {
			return err
		}
		title, err = t.text("document.querySelector('#task h3')?.textContent")
	}
	if err != nil || !strings.HasPrefix(title, "Task ") {
		return fmt.Errorf("a click shows %q, %v", title, err)
	}
	// The line of the .mt that the task names is marked, and in view.
	var r struct {
		Line, Marked string
		Seen         bool
	}
	err = t.eval(`(() => {
		const on = document.querySelector("#panel .on"), p = document.getElementById("panel").getBoundingClientRect();
		const b = on ? on.getBoundingClientRect() : { top: 0, bottom: 0 };
		const line = [...document.querySelectorAll("#task dt")].find(e => e.textContent === "line");
		return { line: line ? line.nextSibling.textContent : "", marked: on ? on.dataset.n : "", seen: b.top >= p.top && b.bottom <= p.bottom };
	})()`, &r)
	if err != nil || r.Marked == "" || !r.Seen || !strings.HasSuffix(r.Line, ":"+r.Marked) {
		return fmt.Errorf("the task is from %s, marked is line %q, in view: %v, %v", r.Line, r.Marked, r.Seen, err)
	}
	if err := t.shot("selected"); err != nil {
		return err
	}
	// A kernel of the task leads to a line of its own.
	kernel, err := t.text(`(() => {
		const dt = [...document.querySelectorAll("#task dt")].find(e => e.textContent === "kernels");
		const b = dt && dt.nextSibling.querySelector("button");
		if (!b) return "none";
		b.click();
		const on = document.querySelector("#panel .on");
		return b.textContent.endsWith(":" + (on ? on.dataset.n : "")) ? "good" : b.textContent + " shows line " + (on ? on.dataset.n : "none");
	})()`)
	if err != nil || kernel != "good" {
		return fmt.Errorf("kernels: %s, %v", kernel, err)
	}
	// And its function, where one was generated.
	if err := t.eval("document.getElementById('tab-go').click()", nil); err != nil {
		return err
	}
	on, err := t.text("document.querySelector('#panel .on')?.textContent ?? document.getElementById('panel').textContent")
	if err != nil || !strings.HasPrefix(on, "func ") && !strings.Contains(on, "There is no text") {
		return fmt.Errorf("the generated function is %q, %v", on, err)
	}
	return nil
}

func wheel(t *tab) error {
	x, y, err := t.middle()
	if err != nil {
		return err
	}
	from0, to0, err := t.span()
	if err != nil {
		return err
	}
	if err := t.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseWheel", "x": x, "y": y, "deltaX": 0, "deltaY": -300}, nil); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	from1, to1, err := t.span()
	if err != nil || to1-from1 >= to0-from0 {
		return fmt.Errorf("the wheel leaves %v to %v, %v", from1, to1, err)
	}
	if err := t.mouse(x, y, "mouseMoved", "mousePressed"); err != nil {
		return err
	}
	if err := t.call("Input.dispatchMouseEvent", map[string]any{"type": "mouseMoved", "x": x - 120, "y": y, "button": "left", "buttons": 1}, nil); err != nil {
		return err
	}
	if err := t.mouse(x-120, y, "mouseReleased"); err != nil {
		return err
	}
	from2, to2, err := t.span()
	if err != nil || !(from2 > from1) {
		return fmt.Errorf("dragging goes from %v, %v to %v, %v; %v", from1, to1, from2, to2, err)
	}
	// Zooming stays fluent: the time of 20 drawings.
	var ms float64
	err = t.eval(`(async () => {
		const t0 = performance.now();
		for (let k = 0; k < 20; k++) {
			canvas.dispatchEvent(new WheelEvent("wheel", { deltaY: k < 10 ? -60 : 60, clientX: 500, cancelable: true }));
			await new Promise(r => requestAnimationFrame(r));
		}
		return performance.now() - t0;
	})()`, &ms)
	if err == nil && ms > 6000 {
		err = fmt.Errorf("20 drawings take %.0f ms", ms)
	}
	return err
}

func search(t *tab) error {
	if err := t.eval("document.getElementById('find').focus()", nil); err != nil {
		return err
	}
	if err := t.call("Input.insertText", map[string]any{"text": "backward"}, nil); err != nil {
		return err
	}
	found, err := t.text("document.getElementById('found').textContent")
	if err != nil || !strings.Contains(found, " of ") || strings.HasPrefix(found, "0 ") {
		return fmt.Errorf("found %q, %v", found, err)
	}
	if err := t.key("Enter"); err != nil {
		return err
	}
	if title, err := t.text("document.querySelector('#task h3')?.textContent"); err != nil || !strings.Contains(title, "backward") {
		return fmt.Errorf("key Enter selects %q, %v", title, err)
	}
	if err := t.key("Escape"); err != nil {
		return err
	}
	if err := t.eval("document.querySelector('#legend button').click()", nil); err != nil {
		return err
	}
	if pressed, err := t.text("document.querySelector('#legend button').getAttribute('aria-pressed')"); err != nil || pressed != "false" {
		return fmt.Errorf("the filter is %q, %v", pressed, err)
	}
	return nil
}

func list(t *tab) error {
	if err := t.eval("document.getElementById('tab-list').click()", nil); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	var n struct{ Rows, All int }
	if err := t.eval("({ rows: document.querySelectorAll('#panel .r').length, all: Number(document.querySelector('#panel .rows').getAttribute('aria-rowcount')) })", &n); err != nil {
		return err
	}
	if n.Rows == 0 || n.Rows > 80 || n.All < n.Rows {
		return fmt.Errorf("%d rows of %d exist", n.Rows, n.All)
	}
	if err := t.eval("document.getElementById('panel').scrollTop = 1e9", nil); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	last, err := t.text("[...document.querySelectorAll('#panel .r')].pop().getAttribute('aria-rowindex')")
	if err == nil && last != fmt.Sprint(n.All) {
		err = fmt.Errorf("the last row is %s of %d", last, n.All)
	}
	if err != nil {
		return err
	}
	return t.shot("list")
}

func dark(t *tab) error {
	theme := func(want string) error {
		if err := t.frame(); err != nil {
			return err
		}
		got, err := t.text("document.documentElement.dataset.theme")
		if err == nil && got != want {
			err = fmt.Errorf("the theme is %s, wanted %s", got, want)
		}
		return err
	}
	if err := t.system("dark"); err != nil {
		return err
	}
	if err := theme("dark"); err != nil {
		return err
	}
	var light float64
	if err := t.eval("(() => { const p = canvas.getContext('2d').getImageData(40, 5, 1, 1).data; return (p[0] + p[1] + p[2]) / 3; })()", &light); err != nil || light > 80 {
		return fmt.Errorf("the canvas is of brightness %v in the dark, %v", light, err)
	}
	if err := t.shot("dark"); err != nil {
		return err
	}
	if err := t.eval("document.getElementById('theme').click()", nil); err != nil {
		return err
	}
	return theme("light")
}

func (t *tab) system(scheme string) error {
	return t.call("Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// contrast asks for 4.5 to 1, as WCAG 2.1 does for text of this size (1.4.3).
func contrast(t *tab) error {
	for _, scheme := range []string{"light", "dark"} {
		if err := t.system(scheme); err != nil {
			return err
		}
		if err := t.frame(); err != nil {
			return err
		}
		var low []string
		err := t.eval(`(() => {
			const parse = c => (c.match(/[\d.]+/g) || []).map(Number);
			const lum = c => { const [r, g, b] = c.map(v => { v /= 255; return v <= 0.04045 ? v / 12.92 : Math.pow((v + 0.055) / 1.055, 2.4); }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
			const back = e => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] === 1) return c.slice(0, 3); } return [255, 255, 255]; };
			const bad = new Set();
			for (const e of document.querySelectorAll("body *")) {
				if (!e.checkVisibility() || ![...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())) continue;
				const a = lum(parse(e instanceof SVGElement ? getComputedStyle(e).fill : getComputedStyle(e).color).slice(0, 3)), b = lum(back(e));
				const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
				if (ratio < 4.5) bad.add(e.tagName + "." + e.className + " " + ratio.toFixed(1) + ": " + e.textContent.slice(0, 20));
			}
			return [...bad].slice(0, 5);
		})()`, &low)
		if err != nil {
			return err
		}
		if len(low) > 0 {
			return fmt.Errorf("%s: %s", scheme, strings.Join(low, "; "))
		}
	}
	return nil
}

func fits(t *tab) error {
	for _, width := range []int{1400, 900, 500} {
		if err := t.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": false}, nil); err != nil {
			return err
		}
		if err := t.frame(); err != nil {
			return err
		}
		var over float64
		if err := t.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth", &over); err != nil {
			return err
		}
		if over > 1 {
			what, _ := t.text("[...document.querySelectorAll('body *')].filter(e => !e.closest('#panel, #task') && e.getBoundingClientRect().right > innerWidth + 1 && e.getBoundingClientRect().width < 4000).map(e => e.tagName + '#' + e.id + '.' + e.className).slice(0, 5).join(' ')")
			return fmt.Errorf("at %d pixels the page is %.0f too wide: %s", width, over, what)
		}
		if err := t.shot(fmt.Sprint("w", width)); err != nil {
			return err
		}
	}
	return nil
}

func printed(t *tab) error {
	if err := t.system("dark"); err != nil {
		return err
	}
	if err := t.eval("document.getElementById('in').click()", nil); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	from, to, err := t.span()
	if err != nil {
		return err
	}
	var pdf struct{ Data string }
	if err := t.call("Page.printToPDF", map[string]any{"preferCSSPageSize": true}, &pdf); err != nil {
		return err
	}
	if len(pdf.Data) < 10_000 {
		return fmt.Errorf("the print has %d bytes", len(pdf.Data))
	}
	if err := t.save("print.pdf", pdf.Data); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	if f, to2, err := t.span(); err != nil || f != from || to2 != to {
		return fmt.Errorf("printing leaves the view at %v to %v, it was %v to %v; %v", f, to2, from, to, err)
	}
	if err := t.eval("window.dispatchEvent(new Event('beforeprint'))", nil); err != nil {
		return err
	}
	if err := t.call("Emulation.setEmulatedMedia", map[string]any{"media": "print"}, nil); err != nil {
		return err
	}
	if err := t.frame(); err != nil {
		return err
	}
	var r struct {
		Tools bool
		Back  string
	}
	if err := t.eval("({ tools: document.querySelector('.tools').checkVisibility(), back: getComputedStyle(document.documentElement).backgroundColor })", &r); err != nil {
		return err
	}
	if r.Tools || r.Back != "rgb(255, 255, 255)" {
		return fmt.Errorf("on paper the tools are shown: %v, the background is %s", r.Tools, r.Back)
	}
	return t.shot("print")
}
