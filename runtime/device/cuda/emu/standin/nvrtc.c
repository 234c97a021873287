/* A stand-in for libnvrtc.so: kernels are compiled for this processor by the program that
 * MTC_EMUCC names (emucc), to be run by driver.c. A "cubin" of it is the word "emulated", the
 * length of a shared library, and the library.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fault.h"

typedef struct { char *text, *log, *image; size_t log_size, size; } prog_t;

static char *slurp(const char *path, size_t *n) {
	FILE *f = fopen(path, "rb");
	*n = 0;
	if (!f) return 0;
	fseek(f, 0, SEEK_END);
	*n = ftell(f);
	rewind(f);
	char *b = calloc(1, *n + 1);
	*n = fread(b, 1, *n, f);
	fclose(f);
	return b;
}

int nvrtcVersion(int *major, int *minor) { FAULT; *major = 13; *minor = 99; return 0; }
const char *nvrtcGetErrorString(int e) { return e ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS"; }
int nvrtcCreateProgram(prog_t **p, const char *text, const char *name, int n, const char *const *headers, const char *const *names) {
	FAULT;
	*p = calloc(1, sizeof **p);
	(*p)->text = strdup(text);
	return 0;
}
int nvrtcDestroyProgram(prog_t **p) {
	FAULT;
	free((*p)->text);
	free((*p)->log);
	free((*p)->image);
	free(*p);
	*p = 0;
	return 0;
}
int nvrtcCompileProgram(prog_t *p, int n, const char *const *options) {
	FAULT;
	char dir[] = "/tmp/mtc-nvrtc-XXXXXX", in[64], out[64], log[64], all[256];
	const char *cc = getenv("MTC_EMUCC");
	if (!cc || !mkdtemp(dir)) return 6;
	snprintf(in, sizeof in, "%s/k.cu", dir);
	snprintf(out, sizeof out, "%s/k.so", dir);
	snprintf(log, sizeof log, "%s/log", dir);
	FILE *f = fopen(in, "w");
	if (!f) {
		rmdir(dir);
		p->log = strdup(strerror(errno));
		p->log_size = strlen(p->log);
		return 6;
	}
	fputs(p->text, f);
	fclose(f);
	const char *argv[64] = {cc, in, out};
	int argc = 3;
	for (int i = 0; i < n && argc < 63; i++)
		if (!strncmp(options[i], "-D", 2)) argv[argc++] = options[i];
	pid_t pid = vfork();
	if (pid == 0) {
		if (!freopen(log, "w", stderr)) _exit(127);
		execv(cc, (char *const *)argv);
		_exit(127);
	}
	int status = -1;
	if (pid > 0) waitpid(pid, &status, 0);
	p->log = slurp(log, &p->log_size);
	size_t size;
	char *lib = slurp(out, &size);
	if (lib && status == 0) {
		p->size = size + 16;
		p->image = malloc(p->size);
		memcpy(p->image, "emulated", 8);
		memcpy(p->image + 8, &(uint64_t){size}, 8);
		memcpy(p->image + 16, lib, size);
	}
	free(lib);
	snprintf(all, sizeof all, "%s", dir);
	unlink(in);
	unlink(out);
	unlink(log);
	rmdir(all);
	return p->image ? 0 : 6;
}
int nvrtcGetProgramLogSize(prog_t *p, size_t *n) { FAULT; *n = p->log_size + 1; return 0; }
int nvrtcGetProgramLog(prog_t *p, char *to) { FAULT; memcpy(to, p->log ? p->log : "", p->log_size); to[p->log_size] = 0; return 0; }
int nvrtcGetCUBINSize(prog_t *p, size_t *n) { FAULT; *n = p->size; return 0; }
int nvrtcGetCUBIN(prog_t *p, char *to) { FAULT; memcpy(to, p->image, p->size); return 0; }
