/* libcuda.a: what programs link in the place of the driver's library.
 *
 * It defines every function of cuda.h as a jump through a table that is filled from
 * libcuda.so.1 when the program starts. So a program starts on a machine that has no driver,
 * and can say so. symbols.inc holds one line X(name, number) for each function but cuInit.
 *
 * cuInit always returns success, because a package that is initialised before main ends the
 * process otherwise; mtc_cuda_driver tells the truth.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define X(name, n) #name,
static const char *const names[] = {
#include "symbols.inc"
};
#undef X
#define COUNT (sizeof names / sizeof *names)

__attribute__((visibility("hidden"))) void *mtc_cuda_slots[COUNT];

#if defined(__x86_64__)
#define X(name, n) \
	__asm__(".text\n.globl " #name "\n.type " #name ", @function\n" #name ":\n" \
		"\tjmp *mtc_cuda_slots+8*" #n "(%rip)\n.size " #name ", .-" #name "\n");
#elif defined(__aarch64__)
#define X(name, n) \
	__asm__(".text\n.globl " #name "\n.type " #name ", %function\n" #name ":\n" \
		"\tadrp x16, mtc_cuda_slots+8*" #n "\n\tldr x16, [x16, :lo12:mtc_cuda_slots+8*" #n "]\n\tbr x16\n");
#else
#error "the link stub of libcuda knows amd64 and arm64"
#endif
#include "symbols.inc"
#undef X

static int status = -1;
static const char *why = "not opened";
static int (*real_init)(unsigned int);

static int no_library(void) { return 34; }   /* CUDA_ERROR_STUB_LIBRARY */
static int no_function(void) { return 500; } /* CUDA_ERROR_NOT_FOUND */

__attribute__((constructor)) static void fill(void) {
	static const char *const paths[] = {
		"libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
		"/usr/local/nvidia/lib/libcuda.so.1", "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
	};
	void *lib = NULL;
	const char *hide = getenv("MTC_CUDA_HIDE"); /* for tests: see runtime/device/cuda/libs */
	int hidden = hide && strstr(hide, "libcuda");
	if (hidden)
		why = "libcuda.so.1 is hidden by MTC_CUDA_HIDE";
	for (size_t i = 0; i < sizeof paths / sizeof *paths && !lib && !hidden; i++) {
		lib = dlopen(paths[i], RTLD_NOW | RTLD_LOCAL);
		if (!lib && i == 0)
			why = strdup(dlerror());
	}
	for (size_t i = 0; i < COUNT; i++) {
		mtc_cuda_slots[i] = lib ? dlsym(lib, names[i]) : (void *)no_library;
		if (!mtc_cuda_slots[i])
			mtc_cuda_slots[i] = (void *)no_function;
	}
	if (lib) {
		why = "";
		status = 500;
		real_init = (int (*)(unsigned int))dlsym(lib, "cuInit");
	}
}

int cuInit(unsigned int flags) {
	if (real_init)
		status = real_init(flags);
	return 0;
}

/* mtc_cuda_driver is cuInit's result, or -1 when there is no library; *reason is the loader's. */
int mtc_cuda_driver(const char **reason) {
	*reason = why;
	return status;
}
