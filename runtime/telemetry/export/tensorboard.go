package export

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/megatrain/mtc/runtime/telemetry"
)

// TensorBoard writes an event file: records of the TFRecord format,
//
//	uint64 length, uint32 masked CRC-32C of it, data, uint32 masked CRC-32C of the data
//
// each holding one Event of TensorFlow's event.proto. Only what scalars need of the protocol
// buffers is written, by hand.
type TensorBoard struct {
	f   *os.File
	now func() time.Time
}

// OpenTensorBoard begins an event file in dir for the steps after done. The first record after
// the version says where the session begins, so that TensorBoard drops what an earlier file of
// the folder has from there on.
func OpenTensorBoard(dir string, done int64) (*TensorBoard, error) {
	return openTensorBoard(dir, done, time.Now)
}

func openTensorBoard(dir string, done int64, now func() time.Time) (*TensorBoard, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	// Files of one second differ in the process, and are told apart by the last number.
	var f *os.File
	for n := 0; ; n++ {
		name := fmt.Sprintf("events.out.tfevents.%010d.%s.%d.%d", now().Unix(), filepath.Base(host), os.Getpid(), n)
		if f, err = os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666); !errors.Is(err, os.ErrExist) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	t := &TensorBoard{f: f, now: now}
	version := t.event(0)
	version = bytesField(version, 3, []byte("brain.Event:2"))
	start := t.event(done + 1)
	start = bytesField(start, 7, intField(nil, 1, 1)) // session_log: START
	if err = t.write(version); err == nil {
		err = t.write(start)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return t, nil
}

// Step writes the scalars of a step.
func (t *TensorBoard) Step(s telemetry.Step) error {
	return t.scalars(s.Step, []scalar{
		{"train/loss", s.Loss}, {"train/lr", s.LR}, {"train/grad_norm", s.GradNorm},
		{"train/tokens_per_s", s.TokensPerSecond()}, {"train/tokens", float64(s.Tokens)},
	})
}

// Eval writes the scalars of an evaluation.
func (t *TensorBoard) Eval(e telemetry.Eval) error {
	return t.scalars(e.Step, []scalar{{"eval/loss", e.Loss}, {"eval/perplexity", math.Exp(e.Loss)}})
}

// Close ends the file.
func (t *TensorBoard) Close() error { return t.f.Close() }

type scalar struct {
	tag   string
	value float64
}

func (t *TensorBoard) scalars(step int64, list []scalar) error {
	var summary []byte
	for _, s := range list {
		value := bytesField(nil, 1, []byte(s.tag))
		value = append(value, 2<<3|5) // simple_value, a float
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(s.value)))
		summary = bytesField(summary, 1, value)
	}
	return t.write(bytesField(t.event(step), 5, summary))
}

// event begins an Event: wall_time (1, double) and step (2).
func (t *TensorBoard) event(step int64) []byte {
	e := []byte{1<<3 | 1}
	now := t.now()
	e = binary.LittleEndian.AppendUint64(e, math.Float64bits(float64(now.UnixNano())/1e9))
	return intField(e, 2, uint64(step))
}

func intField(b []byte, field int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(b, uint64(field)<<3), v)
}

func bytesField(b []byte, field int, v []byte) []byte {
	b = binary.AppendUvarint(b, uint64(field)<<3|2)
	return append(binary.AppendUvarint(b, uint64(len(v))), v...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the CRC as the format stores it: rotated and shifted, so that a CRC of data that
// holds CRCs stays a good one.
func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// write writes a record, at once, so that a reader of the growing file sees whole ones.
func (t *TensorBoard) write(event []byte) error {
	r := binary.LittleEndian.AppendUint64(nil, uint64(len(event)))
	r = binary.LittleEndian.AppendUint32(r, masked(r))
	r = append(r, event...)
	r = binary.LittleEndian.AppendUint32(r, masked(event))
	_, err := t.f.Write(r)
	return err
}
