//go:build cuda

// Package nvrtc compiles CUDA C++ to machine code with NVIDIA's runtime compiler. The library
// is opened when it is first used, so nothing but the loader is needed to link, and neither a
// driver nor a GPU to compile.
package nvrtc

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>

typedef void* prog_t;
static int (*p_version)(int*, int*);
static const char* (*p_error)(int);
static int (*p_create)(prog_t*, const char*, const char*, int, const char* const*, const char* const*);
static int (*p_destroy)(prog_t*);
static int (*p_compile)(prog_t, int, const char* const*);
static int (*p_log_size)(prog_t, size_t*);
static int (*p_log)(prog_t, char*);
static int (*p_cubin_size)(prog_t, size_t*);
static int (*p_cubin)(prog_t, char*);

// nvrtc_open returns NULL when all is well, else what is wrong.
static const char* nvrtc_open(const char* path) {
	void* h = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!h) return dlerror();
#define SYM(to, name) if (!(*(void**)&to = dlsym(h, name))) return dlerror()
	SYM(p_version, "nvrtcVersion");
	SYM(p_error, "nvrtcGetErrorString");
	SYM(p_create, "nvrtcCreateProgram");
	SYM(p_destroy, "nvrtcDestroyProgram");
	SYM(p_compile, "nvrtcCompileProgram");
	SYM(p_log_size, "nvrtcGetProgramLogSize");
	SYM(p_log, "nvrtcGetProgramLog");
	SYM(p_cubin_size, "nvrtcGetCUBINSize");
	SYM(p_cubin, "nvrtcGetCUBIN");
#undef SYM
	return 0;
}
static int nvrtc_version(int* major, int* minor) { return p_version(major, minor); }
static void nvrtc_preload(const char* path) { dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static const char* nvrtc_error(int code) { return p_error(code); }

// nvrtc_compile makes *cubin (NULL when it fails) and *log, both for free().
static int nvrtc_compile(const char* name, const char* text, const char* header, const char* header_name,
		int nopts, char** opts, char** cubin, size_t* cubin_size, char** log) {
	prog_t p;
	const char* headers[1] = {header};
	const char* names[1] = {header_name};
	*cubin = 0; *log = 0; *cubin_size = 0;
	int rc = p_create(&p, text, name, 1, headers, names);
	if (rc) return rc;
	rc = p_compile(p, nopts, (const char* const*)opts);
	size_t n = 0;
	if (p_log_size(p, &n) == 0 && n > 1 && (*log = malloc(n))) p_log(p, *log);
	if (rc == 0 && (rc = p_cubin_size(p, cubin_size)) == 0) {
		*cubin = malloc(*cubin_size ? *cubin_size : 1);
		rc = *cubin ? p_cubin(p, *cubin) : 1; // NVRTC_ERROR_OUT_OF_MEMORY
	}
	p_destroy(&p);
	return rc;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/megatrain/mtc/runtime/device/cuda/libs"
)

// ErrMissing says that the library is not on this machine.
var ErrMissing = errors.New("no library of its names loads")

var open = sync.OnceValues(func() (version [2]int, err error) {
	var why []string
	for _, path := range libs.NVRTC.Candidates() {
		// NVRTC opens its builtins by their bare name, which the loader knows only once they
		// are loaded when they lie outside its own paths.
		if filepath.IsAbs(path) {
			builtins, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "libnvrtc-builtins.so.*"))
			for _, b := range builtins {
				c := C.CString(b)
				C.nvrtc_preload(c)
				C.free(unsafe.Pointer(c))
			}
		}
		c := C.CString(path)
		msg := C.nvrtc_open(c)
		C.free(unsafe.Pointer(c))
		if msg == nil {
			var major, minor C.int
			rc := C.nvrtc_version(&major, &minor)
			if rc == 0 {
				return [2]int{int(major), int(minor)}, nil
			}
			msg = C.nvrtc_error(rc)
		}
		why = append(why, C.GoString(msg))
	}
	return version, fmt.Errorf("%w (%s)", ErrMissing, libs.NVRTC.Why(why))
})

// Version opens the library and returns its version, such as 13, 0.
func Version() (major, minor int, err error) {
	v, err := open()
	return v[0], v[1], err
}

// Error is a text that does not compile.
type Error struct {
	Name string
	Code string
	Log  string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s does not compile: %s\n%s", e.Name, e.Code, strings.TrimRight(e.Log, "\n\x00"))
}

// Compile compiles text, called name in messages, which may include the one header given. The
// options name a real architecture, so the result is a cubin. log may hold warnings.
func Compile(name, text, headerName, header string, options []string) (cubin []byte, log string, err error) {
	if _, err := open(); err != nil {
		return nil, "", err
	}
	var keep []unsafe.Pointer
	str := func(s string) *C.char {
		c := C.CString(s)
		keep = append(keep, unsafe.Pointer(c))
		return c
	}
	opts := (**C.char)(C.malloc(C.size_t(len(options)+1) * C.size_t(unsafe.Sizeof((*C.char)(nil)))))
	keep = append(keep, unsafe.Pointer(opts))
	defer func() {
		for _, p := range keep {
			C.free(p)
		}
	}()
	list := unsafe.Slice(opts, len(options)+1)
	for i, o := range options {
		list[i] = str(o)
	}
	var out, logText *C.char
	var size C.size_t
	rc := C.nvrtc_compile(str(name), str(text), str(header), str(headerName), C.int(len(options)), opts, &out, &size, &logText)
	if logText != nil {
		log = C.GoString(logText)
		C.free(unsafe.Pointer(logText))
	}
	if out != nil {
		cubin = C.GoBytes(unsafe.Pointer(out), C.int(size))
		C.free(unsafe.Pointer(out))
	}
	if rc != 0 {
		return nil, log, &Error{Name: name, Code: C.GoString(C.nvrtc_error(rc)), Log: log}
	}
	return cubin, log, nil
}
