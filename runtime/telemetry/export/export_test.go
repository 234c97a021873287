package export

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/megatrain/mtc/runtime/telemetry"
)

var (
	step = telemetry.Step{Step: 3, Loss: 2.5, LR: 1e-3, GradNorm: 0.75, Tokens: 300, Count: 100, Seconds: 0.5}
	eval = telemetry.Eval{Step: 3, Loss: 2, Tokens: 50, Seconds: 0.25}
)

// loud keeps what is written to it; an exporter may warn from its own goroutine.
type loud struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *loud) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *loud) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// fake is an exporter that fails from a step on, or never returns.
type fake struct {
	failAt int64
	hang   chan struct{}
	seen   []int64
	closed bool
}

func (f *fake) Step(s telemetry.Step) error {
	if f.hang != nil {
		<-f.hang
	}
	f.seen = append(f.seen, s.Step)
	if s.Step == f.failAt {
		return errors.New("the disk is full")
	}
	return nil
}
func (f *fake) Eval(telemetry.Eval) error { return nil }
func (f *fake) Close() error              { f.closed = true; return nil }

func TestAFailingExporterIsToldOfOnceAndLeftBehind(t *testing.T) {
	var warn loud
	e := &fake{failAt: 2}
	f := Start("csv", &warn, func() (Exporter, error) { return e, nil })
	for k := range int64(5) {
		f.Step(telemetry.Step{Step: k + 1})
	}
	f.Close()
	if want := "note: --csv stops here, the run goes on: the disk is full\n"; warn.String() != want {
		t.Errorf("%q", warn.String())
	}
	if len(e.seen) != 2 || !e.closed {
		t.Errorf("steps %v, closed %t", e.seen, e.closed)
	}
	var other loud
	f = Start("tensorboard", &other, func() (Exporter, error) {
		return nil, errors.Join(errors.New("no such folder"), errors.New("nor a file"))
	})
	f.Step(step)
	f.Close()
	if want := "note: --tensorboard stops here, the run goes on: no such folder; nor a file\n"; other.String() != want {
		t.Errorf("a note is not one line: %q", other.String())
	}
	if strings.Count(other.String(), "no such folder") != 1 {
		t.Errorf("%q", other.String())
	}
}

// The run does not wait for an exporter that hangs, neither at a step nor for long at the end.
func TestAHangingExporterHoldsNobodyUp(t *testing.T) {
	var warn loud
	e := &fake{hang: make(chan struct{})}
	f := Start("csv", &warn, func() (Exporter, error) { return e, nil })
	start := time.Now()
	for k := range int64(3 * waiting) {
		f.Step(telemetry.Step{Step: k + 1})
	}
	if d := time.Since(start); d > 20*time.Second {
		t.Errorf("the steps took %v", d)
	}
	if !strings.Contains(warn.String(), "1024 lines behind") || strings.Count(warn.String(), "note") != 1 {
		t.Errorf("%q", warn.String())
	}
	close(e.hang)
	f.Close()
}

// records reads an event file and checks every CRC, with a CRC of its own making.
func records(t *testing.T, path string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := crc32.MakeTable(0x82f63b78)
	good := func(data []byte, stored []byte) bool {
		c := crc32.Checksum(data, table)
		return binary.LittleEndian.Uint32(stored) == (c>>15|c<<17)+0xa282ead8
	}
	var out [][]byte
	for len(b) > 0 {
		n := binary.LittleEndian.Uint64(b)
		if !good(b[:8], b[8:12]) || !good(b[12:12+n], b[12+n:]) {
			t.Fatal("a CRC is wrong")
		}
		out = append(out, b[12:12+n])
		b = b[16+n:]
	}
	return out
}

func TestEventFile(t *testing.T) {
	dir := t.TempDir()
	at := time.Unix(1700000000, 500000000)
	tb, err := openTensorBoard(dir, 2, func() time.Time { return at })
	if err != nil {
		t.Fatal(err)
	}
	second, err := openTensorBoard(dir, 2, func() time.Time { return at })
	if err != nil {
		t.Fatal("two files of one second:", err)
	}
	second.Close()
	if err := errors.Join(tb.Step(step), tb.Eval(eval), tb.Close()); err != nil {
		t.Fatal(err)
	}
	got := records(t, tb.f.Name())
	if len(got) != 4 || !strings.HasPrefix(filepath.Base(tb.f.Name()), "events.out.tfevents.1700000000.") {
		t.Fatalf("%d records in %s", len(got), tb.f.Name())
	}
	wall := binary.LittleEndian.AppendUint64([]byte{0x09}, math.Float64bits(1700000000.5))
	for i, want := range []string{"\x10\x00\x1a\x0dbrain.Event:2", "\x10\x03\x3a\x02\x08\x01", "\x10\x03\x2a", "\x10\x03\x2a"} {
		if !bytes.HasPrefix(got[i], append(append([]byte{}, wall...), want...)) {
			t.Errorf("record %d is %q", i, got[i])
		}
	}
	loss := "\x0a\x11\x0a\x0atrain/loss\x15" + string(binary.LittleEndian.AppendUint32(nil, math.Float32bits(2.5)))
	loss = strings.Replace(loss, "\x0a\x11", "\x0a\x11", 1)
	if !bytes.Contains(got[2], []byte(loss)) {
		t.Errorf("no train/loss in %q", got[2])
	}
	if !bytes.Contains(got[3], []byte("eval/loss\x15\x00\x00\x00\x40")) {
		t.Errorf("no eval/loss in %q", got[3])
	}
}

func TestCSVGoesOnWhereARunIsResumed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "run.csv")
	write := func(done int64, steps ...int64) {
		t.Helper()
		c, err := OpenCSV(path, done)
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range steps {
			s := step
			s.Step = k
			if err := c.Step(s); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(c.Eval(eval), c.Close()); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 1, 2, 3, 4)
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.WriteString("5,2.") // torn
	f.Close()
	write(2, 3)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	line := func(k int) string { return fmt.Sprintf("%d,2.5,,0.001,0.75,300,200,500,false\n", k) }
	if want := csvHeader + line(1) + line(2) + line(3) + "3,,2,,,,,250,\n"; string(text) != want {
		t.Errorf("got\n%swanted\n%s", text, want)
	}
	for name, foreign := range map[string]string{"notes": "my notes\n", "table": csvHeader + "total,1\n"} {
		other := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(other, []byte(foreign), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenCSV(other, 9); err == nil {
			t.Errorf("%s was taken for a table", name)
		}
		if text, _ := os.ReadFile(other); string(text) != foreign {
			t.Errorf("%s was changed", name)
		}
	}
}

func TestPrometheus(t *testing.T) {
	p, err := OpenPrometheus("0", `a "model"`)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if host, _, _ := net.SplitHostPort(p.Addr()); host != "127.0.0.1" {
		t.Errorf("it listens on %s", p.Addr())
	}
	skipped := step
	skipped.Skipped, skipped.Loss = true, math.NaN()
	p.Step(skipped)
	p.Eval(eval)
	res, err := http.Get("http://" + p.Addr() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain; version=0.0.4") {
		t.Errorf("%v, %v", res, err)
	}
	for _, want := range []string{"# TYPE mtc_loss gauge\nmtc_loss{model=\"a \\\"model\\\"\"} NaN\n", "mtc_step{model=", "} 300\n", "mtc_skipped_steps_total", "mtc_eval_loss"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for request, want := range map[string]string{
		"GET / HTTP/1.1\r\n\r\n": "HTTP/1.1 404", "POST /metrics HTTP/1.1\r\n\r\n": "HTTP/1.1 405", "nonsense\r\n\r\n": "HTTP/1.1 400",
		"HEAD /metrics?x HTTP/1.0\r\nA: b\r\n\r\n": "HTTP/1.1 200", "GET /" + strings.Repeat("x", 1<<14): "",
	} {
		c, err := net.Dial("tcp", p.Addr())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(c, request)
		text, _ := io.ReadAll(c)
		if !strings.HasPrefix(string(text), want) || want == "" && len(text) > 0 {
			t.Errorf("%.40q is answered with %.40q", request, text)
		}
		c.Close()
	}
	if _, err := OpenPrometheus(p.Addr(), "m"); err == nil {
		t.Error("one address was taken twice")
	}
}

func TestAddressesStayOnTheMachine(t *testing.T) {
	for text, want := range map[string]string{"9090": "127.0.0.1:9090", ":9090": "127.0.0.1:9090", "0.0.0.0:1": "0.0.0.0:1", "[::1]:80": "[::1]:80", "x": "", "host:x": "", "99999": ""} {
		if got, err := Address(text); got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}
