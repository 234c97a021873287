// Package main drives a headless Chromium through the pages of `mtc inspect --html`: real key
// presses and clicks, light and dark, print, and screenshots to look at. It speaks the DevTools
// protocol over the browser's pipe, so that it needs nothing but the browser.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// browser is a Chromium and one page in it.
type browser struct {
	cmd     *exec.Cmd
	out     *os.File
	in      chan message
	session string
	id      int
	// Complaints are what the page wrote to its console as an error, exceptions, and requests
	// that leave the machine.
	complaints []string
}

type message struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct{ Message string }
	err    error
}

// start opens the browser with an empty page.
func start(path, profile string) (*browser, error) {
	toBrowser, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	fromBrowser, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
		"--no-first-run", "--disable-extensions", "--disable-background-networking", "--force-device-scale-factor=1",
		"--user-data-dir="+profile, "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{toBrowser, w} // descriptors 3 and 4
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	toBrowser.Close()
	w.Close()
	b := &browser{cmd: cmd, out: out, in: make(chan message, 1024)}
	go func() {
		r := bufio.NewReaderSize(fromBrowser, 1<<20)
		for {
			text, err := r.ReadBytes(0)
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = errors.New("the browser has ended")
				}
				b.in <- message{err: err}
				return
			}
			var m message
			if err := json.Unmarshal(text[:len(text)-1], &m); err != nil {
				b.in <- message{err: err}
				return
			}
			b.in <- m
		}
	}()
	return b, b.attach()
}

func (b *browser) attach() error {
	var created struct{ TargetID string }
	if err := b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &created); err != nil {
		return err
	}
	var attached struct{ SessionID string }
	if err := b.call("Target.attachToTarget", map[string]any{"targetId": created.TargetID, "flatten": true}, &attached); err != nil {
		return err
	}
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		if err := b.call(domain+".enable", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// call sends a command and waits for its answer; what happens meanwhile is noted.
func (b *browser) call(method string, params, result any) error {
	b.id++
	m := map[string]any{"id": b.id, "method": method}
	if params != nil {
		m["params"] = params
	}
	if b.session != "" {
		m["sessionId"] = b.session
	}
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if _, err := b.out.Write(append(text, 0)); err != nil {
		return err
	}
	timeout := time.After(60 * time.Second)
	for {
		select {
		case m := <-b.in:
			switch {
			case m.err != nil:
				return m.err
			case m.ID == 0:
				b.note(m)
			case m.ID == b.id && m.Error != nil:
				return fmt.Errorf("%s: %s", method, m.Error.Message)
			case m.ID == b.id:
				if result == nil {
					return nil
				}
				return json.Unmarshal(m.Result, result)
			}
		case <-timeout:
			return fmt.Errorf("%s: no answer", method)
		}
	}
}

func (b *browser) note(m message) {
	var p struct {
		Type             string
		Args             []struct{ Value, Description any }
		ExceptionDetails struct {
			Text      string
			Exception struct{ Description string }
		}
		Entry   struct{ Level, Text string }
		Request struct{ URL string }
	}
	_ = json.Unmarshal(m.Params, &p)
	switch m.Method {
	case "Runtime.consoleAPICalled":
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.complaints = append(b.complaints, fmt.Sprintf("console.%s: %v", p.Type, p.Args))
		}
	case "Runtime.exceptionThrown":
		b.complaints = append(b.complaints, "exception: "+p.ExceptionDetails.Text+" "+p.ExceptionDetails.Exception.Description)
	case "Log.entryAdded":
		if p.Entry.Level == "error" || p.Entry.Level == "warning" {
			b.complaints = append(b.complaints, "log: "+p.Entry.Text)
		}
	case "Network.requestWillBeSent":
		if u := p.Request.URL; !strings.HasPrefix(u, "file:") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "about:") {
			b.complaints = append(b.complaints, "request: "+u)
		}
	}
}

// eval runs a script in the page and returns its value.
func (b *browser) eval(script string, result any) error {
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	if err := b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true, "awaitPromise": true}, &r); err != nil {
		return err
	}
	if r.ExceptionDetails != nil {
		return fmt.Errorf("%s: %s %s", script, r.ExceptionDetails.Text, r.ExceptionDetails.Exception.Description)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(r.Result.Value, result)
}

// frame waits until what was asked for is drawn.
func (b *browser) frame() error {
	return b.eval("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(() => r(1))))", nil)
}

// key presses and releases a key.
func (b *browser) key(key string) error {
	text := key
	if len(key) > 1 {
		text = ""
	}
	for _, kind := range []string{"keyDown", "keyUp"} {
		p := map[string]any{"type": kind, "key": key}
		if text != "" && kind == "keyDown" {
			p["text"] = text
		}
		if err := b.call("Input.dispatchKeyEvent", p, nil); err != nil {
			return err
		}
	}
	return b.frame()
}

// mouse sends events of the left button at a point.
func (b *browser) mouse(x, y float64, kinds ...string) error {
	for _, kind := range kinds {
		p := map[string]any{"type": kind, "x": x, "y": y}
		if kind != "mouseMoved" {
			p["button"], p["clickCount"] = "left", 1
		}
		if err := b.call("Input.dispatchMouseEvent", p, nil); err != nil {
			return err
		}
	}
	return b.frame()
}

func (b *browser) close() {
	_ = b.call("Browser.close", nil, nil)
	b.out.Close()
	done := make(chan struct{})
	go func() { _ = b.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = b.cmd.Process.Kill()
	}
}
