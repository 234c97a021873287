package telemetry

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestStepLine(t *testing.T) {
	for _, c := range []struct {
		s     Step
		steps int64
		left  time.Duration
		want  string
	}{
		{Step{Step: 120, Loss: 2.34561, LR: 6e-4, GradNorm: 0.8123, Count: 8192, Seconds: 0.8123}, 1000, 200 * time.Second,
			"step  120/1000  loss 2.3456  norm 0.81  lr 6.0e-4  812 ms  10.1k tok/s  3m20s"},
		{Step{Step: 1, Loss: 11.0325, LR: 3e-6, GradNorm: 123.456, Count: 524288, Seconds: 3.2}, 19073, -1,
			"step     1/19073  loss 11.033  norm  123  lr 3.0e-6  3200 ms  164k tok/s"},
		{Step{Step: 5, Loss: math.NaN(), LR: 0, GradNorm: math.Inf(1), Count: 64, Seconds: 0.0012, Skipped: true}, 5, 0,
			"step 5/5  loss    nan  norm +inf  lr 0.0e0  1.20 ms  53.3k tok/s  skipped"},
		{Step{Step: 12000, Loss: 3.27412, LR: 5.93e-4, GradNorm: 0.512, Count: 524288, Seconds: 3.2}, 19073, 1000 * time.Minute,
			"step 12000/19073  loss 3.2741  norm 0.51  lr 5.9e-4  3200 ms  164k tok/s  16h40m"},
	} {
		got := c.s.Line(c.steps, c.left)
		if got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
		if n := utf8.RuneCountInString(got); n > Width {
			t.Errorf("%d columns: %s", n, got)
		}
	}
}

func TestEvalLine(t *testing.T) {
	got := Eval{Step: 250, Loss: 1.7712, Tokens: 1234567, Seconds: 12.5}.Line(1000)
	if want := "eval  250/1000  loss 1.7712  perplexity 5.878  over 1,234,567 tokens  12500 ms"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFixedFits(t *testing.T) {
	for v, want := range map[float64]string{0: "0.0000", 2.34567: "2.3457", 9.99999: "10.000", 123.456: "123.46", 99999.9: "100000", 1e9: "1.0e+09", -1.5: "-1.500"} {
		if got := fixed(v, 6); got != want {
			t.Errorf("%v: got %q, wanted %q", v, got, want)
		}
	}
}

func TestThousands(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 999: "999", 999.6: "1.00k", 10085: "10.1k", 99960: "100k", 163840: "164k", 1.25e6: "1.25M", 3e13: "30T"} {
		if got := thousands(v); got != want {
			t.Errorf("%v: got %q, wanted %q", v, got, want)
		}
	}
}

func TestDurationsBytesAndGroups(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 59400 * time.Millisecond: "59s", 59600 * time.Millisecond: "1m00s", 200 * time.Second: "3m20s",
		5*time.Hour + 7*time.Minute: "5h07m", 51 * time.Hour: "2d03h", 1100 * 24 * time.Hour: "3y005d", math.MaxInt64: "292y171d"} {
		if got := Duration(d); got != want {
			t.Errorf("%v: got %q, wanted %q", d, got, want)
		}
	}
	for s, want := range map[float64]string{1e12: "31,709 years", 9.3e9: "294y328d", 1e30: "3e+22 years"} {
		if got := Seconds(s); got != want {
			t.Errorf("%g s: got %q, wanted %q", s, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 3 << 50: "3072.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d: got %q, wanted %q", n, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", -1234567: "-1,234,567", -123: "-123"} {
		if got := Group(n); got != want {
			t.Errorf("%d: got %q, wanted %q", n, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	got := Table([]Setting{
		{"model", "nano"}, {"parameters", "1,234,567"}, {},
		{"data", "/usr/local/go/src/**/*.go: 9,214 files, 81,234,567 tokens (bytes); skipped: 3 hidden, 1 empty"},
		{"é", "ü"},
	})
	want := `+------------+-----------------------------------------------------------+
| model      | nano                                                      |
| parameters | 1,234,567                                                 |
+------------+-----------------------------------------------------------+
| data       | /usr/local/go/src/**/*.go: 9,214 files, 81,234,567 tokens |
|            | (bytes); skipped: 3 hidden, 1 empty                       |
| é          | ü                                                         |
+------------+-----------------------------------------------------------+
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for _, l := range strings.Split(Table([]Setting{{"x", strings.Repeat("y", 500)}}), "\n") {
		if utf8.RuneCountInString(l) > Width {
			t.Errorf("%d columns: %s", utf8.RuneCountInString(l), l)
		}
	}
}

func TestETA(t *testing.T) {
	var e ETA
	if e.Left(10) != -1 {
		t.Error("an estimate without a step")
	}
	e.Step(9) // the first step is slow
	if got := e.Left(10); got < 89*time.Second || got > 91*time.Second {
		t.Errorf("after one step of 9 s, 10 more take %v", got)
	}
	for range 30 {
		e.Step(1)
	}
	if got := e.Left(100); got < 99*time.Second || got > 101*time.Second {
		t.Errorf("after steps of 1 s, 100 more take %v", got)
	}
	e.Extra(31)
	if got := e.Left(100); got < 199*time.Second || got > 201*time.Second {
		t.Errorf("with 1 s of extra a step, 100 more take %v", got)
	}
	for range 200 {
		e.Step(2)
	}
	if got := e.Left(10); got < 20*time.Second || got > 23*time.Second {
		t.Errorf("after the speed changed to 2 s, 10 more take %v", got)
	}
}
