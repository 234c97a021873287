package cost

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/megatrain/mtc/runtime/jsontext"
)

//go:embed profiles/*.json
var profiles embed.FS

// This is the name of the profile that `mtc bench` measured on this machine.
const This = "this"

// names of the shipped profiles, the fastest first.
var names = []string{"h200", "gh200", "h100-sxm", "a100-80g", "l40s", "rtx4090", "rtx3090"}

// Names lists the shipped profiles.
func Names() []string { return append([]string(nil), names...) }

// Shipped returns a shipped profile; nil when there is none of that name.
func Shipped(name string) *Machine {
	text, err := profiles.ReadFile("profiles/" + name + ".json")
	if err != nil {
		return nil
	}
	m, err := Parse(text)
	if err != nil {
		panic(err) // the tests read them all
	}
	return m
}

// Parse reads a profile and checks it.
func Parse(text []byte) (*Machine, error) {
	m := &Machine{}
	err := jsontext.Read(text, m, jsontext.Whole|jsontext.Known)
	if err == nil {
		err = jsontext.Explain(text, m.Check())
	}
	if err != nil {
		return nil, err
	}
	return m, nil
}

// JSON is a profile as text.
func (m *Machine) JSON() []byte {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // numbers are finite (Check)
	}
	text = innermost.ReplaceAllFunc(text, func(b []byte) []byte {
		return spaces.ReplaceAll(b, []byte(" "))
	})
	return append(text, '\n')
}

// Objects without others in them stand on a line of their own: points, figures.
var (
	innermost = regexp.MustCompile(`\{[^{}]*\}`)
	spaces    = regexp.MustCompile(`\n\s*`)
)

// CacheFile is where `mtc bench` keeps what it measured on this machine for a target.
func CacheFile(target string) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "mtc", "machine-"+target+".json"), nil
}

// Cached is the measured profile of this machine for a target; nil when there is none.
func Cached(target string) (*Machine, error) {
	path, err := CacheFile(target)
	if err != nil {
		return nil, nil // without a home there is no cache
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // a home that is /dev/null, say
		return nil, nil
	}
	if err != nil {
		return nil, unread(path, err)
	}
	m, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m.Path = path
	return m, nil
}

// UnknownError says that no machine has a name.
type UnknownError struct {
	Name  string
	Names []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("there is no machine %q; known are %s", e.Name, strings.Join(e.Names, ", "))
}

// Find returns the machine that a user names: a shipped profile, "this" for the one that was
// measured here for the target, or the path of a profile's file.
func Find(name, target string) (*Machine, error) {
	if m := Shipped(name); m != nil {
		return m, nil
	}
	if name == This {
		m, err := Cached(target)
		if err == nil && m == nil {
			err = fmt.Errorf("nothing was measured on this machine for %s yet", target)
		}
		return m, err
	}
	if !strings.ContainsAny(name, `./\`) {
		return nil, &UnknownError{name, append(Names(), This)}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, unread(name, err)
	}
	m, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s is not a profile of a machine: %w", name, err)
	}
	m.Path = name
	return m, nil
}

// where is a profile's file, for errors.
func (m *Machine) where() string {
	if m.Path == "" {
		return ""
	}
	return " (" + m.Path + ")"
}

// unread is the error of a profile that cannot be read.
func unread(path string, err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s cannot be read: %w", path, err)
}
