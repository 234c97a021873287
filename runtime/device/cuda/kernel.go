//go:build cuda

package cuda

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"gorgonia.org/cu"

	"github.com/megatrain/mtc/runtime/device"
	"github.com/megatrain/mtc/runtime/device/cuda/kit"
	"github.com/megatrain/mtc/runtime/device/cuda/libs"
	"github.com/megatrain/mtc/runtime/device/cuda/nvrtc"
	"github.com/megatrain/mtc/runtime/fault"
)

// kernels are the loaded functions of a device. A launch finds its own by the source's number
// and a short list of the constants that occurred.
type kernels struct {
	of [maxSources]atomic.Pointer[[]loaded]

	mu      sync.Mutex // what follows, and changes to of
	modules map[moduleKey]cu.Module
}

// maxSources bounds the sources of a process.
const maxSources = 1 << 11

// loaded is a source with its constants.
type loaded struct {
	spec   [4]int64
	f      functionHandle
	shared int32 // dynamic shared memory that it may ask for
}

// moduleKey is what a module is compiled of: sources with the same text share it.
type moduleKey struct {
	text string
	spec [4]int64
}

// defaultShared is what every kernel may have.
const defaultShared = 48 << 10

// get returns the function of a launch, compiled and loaded when it is the first.
func (ks *kernels) get(d *Device, k *device.Kernel, src *device.Source, a *device.Args, shared int32) (functionHandle, error) {
	spec := specOf(src, a)
	id := src.ID()
	if id >= maxSources {
		return nil, fmt.Errorf("more than %d kernels", maxSources-1)
	}
	if list := ks.of[id].Load(); list != nil {
		for i := range *list {
			if l := &(*list)[i]; l.spec == spec && shared <= l.shared {
				return l.f, nil
			}
		}
	}
	return ks.load(d, k, src, spec, shared)
}

func specOf(src *device.Source, a *device.Args) [4]int64 {
	if src.Spec == nil {
		return [4]int64{}
	}
	return src.Spec(a)
}

// load makes a function and puts it at the front of its source's list.
func (ks *kernels) load(d *Device, k *device.Kernel, src *device.Source, spec [4]int64, shared int32) (functionHandle, error) {
	ks.mu.Lock()
	defer ks.mu.Unlock()
	if shared > d.maxShared {
		return nil, newFault(codeKernel, "%s wants %d bytes of shared memory, and a block of %s has %d", k.Name, shared, d.name, d.maxShared).
			Help("this is a fault of mtc; please report it with the name of the GPU")
	}
	key := moduleKey{src.Text, spec}
	m, ok := ks.modules[key]
	if !ok {
		code, err := d.compile(k.Name, key)
		if err != nil {
			return nil, err
		}
		if m, err = ks.add(d, k.Name, key, code); err != nil {
			return nil, err
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.bind(); err != nil {
		return nil, err
	}
	fn, err := m.Function(src.Func)
	if err != nil {
		return nil, d.unloadable(k.Name, "its text has no function "+src.Func, called("cuModuleGetFunction", err))
	}
	l := loaded{spec, handleOfFunction(fn), defaultShared}
	if shared > l.shared {
		if err := d.allowShared(l.f, shared); err != nil {
			return nil, err
		}
		l.shared = shared
	}
	list := []loaded{l}
	if old := ks.of[src.ID()].Load(); old != nil {
		for _, o := range *old {
			if o.spec != spec { // the new one may have more shared memory
				list = append(list, o)
			}
		}
	}
	ks.of[src.ID()].Store(&list)
	return l.f, nil
}

// add loads machine code as the module of a key. Code from the disk that the driver refuses is
// compiled again.
func (ks *kernels) add(d *Device, name string, key moduleKey, code machineCode) (cu.Module, error) {
	m, err := d.loadModule(code.image)
	if c := codeOf(err); err != nil && code.path != "" && code.cached && c != codeOutOfMemory && !sticky(c) {
		_ = os.Remove(code.path)
		if code, err = d.compile(name, key); err == nil {
			m, err = d.loadModule(code.image)
		}
	}
	if err != nil {
		return m, d.unloadable(name, "its machine code does not load", err)
	}
	ks.modules[key] = m
	return m, nil
}

// unloadable tells why a kernel cannot be had: by the kernel itself, or by a GPU that has no memory or fails.
func (d *Device) unloadable(name, what string, err error) error {
	var known *fault.Error
	if code := codeOf(err); errors.As(err, &known) || sticky(code) || code == codeOutOfMemory {
		return d.told("the loading of "+name, err)
	}
	return newFault(codeKernel, "%s: %s", name, what).Wrap(err).
		Help("%s", cmp.Or(limits(), "a newer driver may take it; else this is a fault of mtc: please report it with the name of the GPU"))
}

func (ks *kernels) close() {
	for _, m := range ks.modules {
		_ = m.Unload()
	}
	ks.modules = nil
}

// machineCode is a compiled module.
type machineCode struct {
	image  []byte
	path   string // in the cache, "" without one
	cached bool   // it was found there
}

// compile returns the machine code of a key, from the disk or from NVRTC.
func (d *Device) compile(name string, key moduleKey) (machineCode, error) {
	major, minor, err := nvrtc.Version()
	if err != nil {
		return machineCode{}, missing(libs.NVRTC, err)
	}
	options := kit.Options(d.arch, d.opt.F32, key.spec)
	var c machineCode
	if dir := cacheDir(); dir != "" {
		h := sha256.New()
		fmt.Fprintf(h, "%d.%d\n%s\n%d\n%s%s", major, minor, strings.Join(options, "\n"), len(kit.Header), kit.Header, key.text)
		c.path = filepath.Join(dir, hex.EncodeToString(h.Sum(nil))+".cubin")
		if c.image, c.cached = kept(c.path); c.cached {
			return c, nil
		}
	}
	image, _, err := nvrtc.Compile(name+".cu", key.text, kit.HeaderName, kit.Header, options)
	if err != nil {
		return c, newFault(codeKernel, "a kernel does not compile for %s", d.arch).Wrap(err).
			Help("%s", cmp.Or(limits(), fmt.Sprintf("NVRTC %d.%d may be too old for this GPU; else this is a fault of mtc: please report it", major, minor)))
	}
	c.image = image
	if c.path != "" && keep(c.path, image) != nil {
		c.path = "" // a cache that cannot be written only costs time
	}
	return c, nil
}

// mostKept is more than a file of the cache has.
const mostKept = 1 << 28

// kept is what keep wrote, and whether all of it is there unaltered: a GPU runs what it gets.
func kept(path string) (data []byte, ok bool) {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() || st.Size() > mostKept {
		return nil, false // a pipe would be waited for
	}
	data, err = os.ReadFile(path)
	n := len(data) - sha256.Size
	if err != nil || n <= 0 {
		return nil, false
	}
	sum := sha256.Sum256(data[:n])
	return data[:n], bytes.Equal(sum[:], data[n:])
}

// keep writes a file whole or not at all, with a hash of what is in it.
func keep(path string, data []byte) error {
	sum := sha256.Sum256(data)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "tmp-*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		_, err = f.Write(sum[:])
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
