// A library that the CUDA driver loads into a program (CUDA_INJECTION64_PATH) and that writes
// every kernel and copy the device ran, through CUPTI, to the file $MTC_TRACE:
//
//   name <TAB> start ns <TAB> end ns <TAB> stream <TAB> grid <TAB> block
//
// Buffers are flushed every 100 ms, because a Go program leaves without running exit handlers.
// tools/cuda/trace/report.py sums the file up.
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <pthread.h>
#include <unistd.h>

static FILE *out;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

static void CUPTIAPI want(uint8_t **buffer, size_t *size, size_t *records) {
	*size = 256 << 10;
	*records = 0;
	if (posix_memalign((void **)buffer, 8, *size)) *size = 0;
}

static void one(CUpti_Activity *r) {
	if (r->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL || r->kind == CUPTI_ACTIVITY_KIND_KERNEL) {
		CUpti_ActivityKernel10 *k = (CUpti_ActivityKernel10 *)r;
		fprintf(out, "%s\t%llu\t%llu\t%u\t%dx%dx%d\t%d\n", k->name ? k->name : "?", (unsigned long long)k->start,
			(unsigned long long)k->end, k->streamId, k->gridX, k->gridY, k->gridZ, k->blockX * k->blockY * k->blockZ);
	} else if (r->kind == CUPTI_ACTIVITY_KIND_MEMCPY) {
		CUpti_ActivityMemcpy6 *m = (CUpti_ActivityMemcpy6 *)r;
		fprintf(out, "copy%d\t%llu\t%llu\t%u\t%llu\t0\n", m->copyKind, (unsigned long long)m->start,
			(unsigned long long)m->end, m->streamId, (unsigned long long)m->bytes);
	}
}

static void CUPTIAPI done(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
	CUpti_Activity *r = NULL;
	pthread_mutex_lock(&mu);
	while (valid && cuptiActivityGetNextRecord(buffer, valid, &r) == CUPTI_SUCCESS) one(r);
	fflush(out);
	pthread_mutex_unlock(&mu);
	free(buffer);
}

static void *flush(void *unused) {
	for (;;) {
		usleep(100000);
		cuptiActivityFlushAll(0);
	}
	return unused;
}

int InitializeInjection(void) {
	const char *path = getenv("MTC_TRACE");
	if (!path || !(out = fopen(path, "w"))) {
		fprintf(stderr, "trace: $MTC_TRACE names no file that can be written\n");
		return 0;
	}
	CUptiResult r = cuptiActivityRegisterCallbacks(want, done);
	if (!r) r = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
	if (!r) r = cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
	pthread_t thread;
	if (!r) pthread_create(&thread, NULL, flush, NULL);
	if (r) fprintf(stderr, "trace: CUPTI error %d\n", r);
	return 1;
}
