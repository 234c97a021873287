package main

import (
	"encoding/base64"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	path := flag.String("chromium", "chromium", "the browser")
	out := flag.String("out", ".", "folder for screenshots")
	flag.Parse()
	if err := run(*path, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path, out string, pages []string) error {
	profile, err := os.MkdirTemp("", "mtc-browser-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(profile)
	b, err := start(path, profile)
	if err != nil {
		return err
	}
	defer b.close()
	failed := 0
	var traces []string
	for _, page := range pages {
		if filepath.Ext(page) == ".json" {
			traces = append(traces, page)
			continue
		}
		full, err := filepath.Abs(page)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(page), ".html")
		list := checks
		if strings.HasPrefix(name, "routing") {
			list = plotChecks
		}
		for _, c := range list {
			b.complaints = nil
			err := b.open("file://" + full)
			if err == nil {
				err = c.run(&tab{browser: b, out: filepath.Join(out, name)})
			}
			if err == nil && len(b.complaints) > 0 {
				err = fmt.Errorf("%s", strings.Join(b.complaints, "\n"))
			}
			if err != nil {
				failed++
				fmt.Printf("FAIL %s: %s: %v\n", name, c.name, err)
				continue
			}
			fmt.Printf("ok   %s: %s\n", name, c.name)
		}
	}
	err = b.traces(traces)
	if failed > 0 {
		err = fmt.Errorf("%d checks failed", failed)
	}
	return err
}

// open loads a page and waits for its first drawing.
func (b *browser) open(url string) error {
	for _, c := range []struct {
		method string
		params map[string]any
	}{
		{"Emulation.setEmulatedMedia", map[string]any{"media": "", "features": []map[string]string{{"name": "prefers-color-scheme", "value": "light"}}}},
		{"Emulation.setDeviceMetricsOverride", map[string]any{"width": 1400, "height": 1000, "deviceScaleFactor": 1, "mobile": false}},
		{"Page.navigate", map[string]any{"url": url}},
	} {
		if err := b.call(c.method, c.params, nil); err != nil {
			return err
		}
	}
	for range 200 {
		var drawn bool
		if err := b.eval(`document.readyState === "complete" && location.href !== "about:blank" && (!!document.getElementById("canvas")?.dataset.to || !document.getElementById("canvas") && !!document.querySelector("svg"))`, &drawn); err == nil && drawn {
			return b.frame()
		}
		if err := b.eval("new Promise(r => setTimeout(() => r(1), 50))", nil); err != nil {
			continue // between two pages
		}
	}
	return fmt.Errorf("the page is not drawn; %s", strings.Join(b.complaints, "; "))
}

// tab is the page under test.
type tab struct {
	*browser
	out string // screenshots begin so
}

// span is the part of time that is shown, in seconds.
func (t *tab) span() (from, to float64, err error) {
	var v [2]float64
	err = t.eval("[Number(canvas.dataset.from), Number(canvas.dataset.to)]", &v)
	return v[0], v[1], err
}

func (t *tab) text(script string) (string, error) {
	var s string
	err := t.eval("String("+script+")", &s)
	return s, err
}

// shot takes a picture of the whole page.
func (t *tab) shot(name string) error {
	var size struct {
		CSSContentSize struct{ Width, Height float64 }
	}
	if err := t.call("Page.getLayoutMetrics", nil, &size); err != nil {
		return err
	}
	var shot struct{ Data string }
	err := t.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": size.CSSContentSize.Width, "height": min(size.CSSContentSize.Height, 2400), "scale": 1}}, &shot)
	if err != nil {
		return err
	}
	return t.save(name+".png", shot.Data)
}

func (t *tab) save(name, data string) error {
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return err
	}
	return os.WriteFile(t.out+"-"+name, raw, 0o644)
}
