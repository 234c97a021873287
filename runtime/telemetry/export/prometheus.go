package export

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/megatrain/mtc/runtime/telemetry"
)

// Limits of a connection: nobody can hold the process by keeping one open.
const (
	requestBytes = 8 << 10
	requestTime  = 5 * time.Second
	connections  = 16
)

// Prometheus answers GET /metrics with the newest values, in the text format that Prometheus
// reads. It speaks as much of HTTP/1.1 as that takes, one request a connection: the standard
// library's server would double the size of a program.
type Prometheus struct {
	listener net.Listener
	model    string
	slots    chan struct{}

	mu      sync.Mutex
	step    telemetry.Step
	eval    telemetry.Eval
	skipped int64
}

// Address completes an address to listen on: a port alone, `9090` or `:9090`, is one of this
// machine, that no other can reach. Naming a host, or 0.0.0.0, is asking for more.
func Address(text string) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 16); err == nil {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return "", fmt.Errorf("`%s` is no address: write PORT or HOST:PORT", text)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("`%s` is no port", port)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// OpenPrometheus listens on an address.
func OpenPrometheus(address, model string) (*Prometheus, error) {
	full, err := Address(address)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", full)
	if err != nil {
		return nil, err
	}
	p := &Prometheus{listener: l, model: model, slots: make(chan struct{}, connections)}
	go p.serve()
	return p, nil
}

// Addr is where it listens.
func (p *Prometheus) Addr() string { return p.listener.Addr().String() }

// Step keeps a step's values.
func (p *Prometheus) Step(s telemetry.Step) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step = s
	if s.Skipped {
		p.skipped++
	}
	return nil
}

// Eval keeps an evaluation's values.
func (p *Prometheus) Eval(e telemetry.Eval) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.eval = e
	return nil
}

// Close stops listening.
func (p *Prometheus) Close() error { return p.listener.Close() }

func (p *Prometheus) serve() {
	for {
		c, err := p.listener.Accept()
		if ne, ok := err.(net.Error); ok && ne.Timeout() {
			continue
		}
		if err != nil {
			return // closed
		}
		select {
		case p.slots <- struct{}{}:
			go func() {
				defer func() { <-p.slots }()
				p.answer(c)
			}()
		default:
			c.Close()
		}
	}
}

// answer reads one request and answers it.
func (p *Prometheus) answer(c net.Conn) {
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(requestTime)); err != nil {
		return
	}
	in := bufio.NewReaderSize(c, requestBytes)
	line, err := in.ReadSlice('\n')
	if err != nil {
		return
	}
	fields := strings.Fields(string(line))
	for total := len(line); ; {
		header, err := in.ReadSlice('\n')
		if total += len(header); err != nil || total > requestBytes {
			return
		}
		if len(strings.TrimRight(string(header), "\r\n")) == 0 {
			break
		}
	}
	status, kind, body := "404 Not Found", "text/plain; charset=utf-8", "the metrics are at /metrics\n"
	path := ""
	if len(fields) == 3 {
		path, _, _ = strings.Cut(fields[1], "?")
	}
	switch {
	case len(fields) != 3 || !strings.HasPrefix(fields[2], "HTTP/1."):
		status, body = "400 Bad Request", ""
	case fields[0] != "GET" && fields[0] != "HEAD":
		status, body = "405 Method Not Allowed", ""
	case path == "/metrics":
		status, kind, body = "200 OK", "text/plain; version=0.0.4; charset=utf-8", p.text()
	}
	head := fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", status, kind, len(body))
	if len(fields) > 0 && fields[0] == "HEAD" {
		body = ""
	}
	_, _ = c.Write([]byte(head + body))
}

// text is the values in Prometheus's format. What has not been measured is left out.
func (p *Prometheus) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var b strings.Builder
	label := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(p.model)
	put := func(name, kind, help string, value float64) {
		text := strconv.FormatFloat(value, 'g', -1, 64)
		fmt.Fprintf(&b, "# HELP mtc_%s %s\n# TYPE mtc_%s %s\nmtc_%s{model=\"%s\"} %s\n", name, help, name, kind, name, label, text)
	}
	if s := p.step; s.Step > 0 {
		put("step", "gauge", "Training steps done.", float64(s.Step))
		put("loss", "gauge", "Mean cross-entropy of the last step, in nats.", s.Loss)
		put("learning_rate", "gauge", "Learning rate of the last step.", s.LR)
		put("gradient_norm", "gauge", "Global norm of the last gradient before clipping.", s.GradNorm)
		put("tokens_total", "counter", "Target tokens trained on.", float64(s.Tokens))
		put("tokens_per_second", "gauge", "Speed of the last step.", s.TokensPerSecond())
		put("step_seconds", "gauge", "Wall time of the last step.", s.Seconds)
		put("skipped_steps_total", "counter", "Steps without an update, of this process.", float64(p.skipped))
	}
	if e := p.eval; e.Tokens > 0 {
		put("eval_step", "gauge", "Steps done at the last evaluation.", float64(e.Step))
		put("eval_loss", "gauge", "Mean cross-entropy of the last evaluation, in nats.", e.Loss)
	}
	return b.String()
}
