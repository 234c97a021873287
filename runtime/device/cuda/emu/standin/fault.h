/* Faults of the stand-ins on demand.
 *
 * MTC_FAKE_FAIL=NAME:N:RESULT makes the N-th call, of those whose names begin with NAME (all where it is
 * empty), return RESULT and do nothing; N+ every one from the N-th on. A change of the variable counts
 * anew, on a GPU that is well. MTC_FAKE_CALLS names a file that gets a line for each call that could fail so.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int faults; /* counts changes of the variable */

static int fault(const char *name) {
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	static char last[96], prefix[64];
	static int calls, at, on, result, log = -1;
	const char *s = getenv("MTC_FAKE_FAIL"), *file = getenv("MTC_FAKE_CALLS");
	if (!s && !file && !last[0]) return 0;
	int rc = 0;
	pthread_mutex_lock(&mu);
	if (file) {
		char line[80];
		if (log < 0) log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (write(log, line, snprintf(line, sizeof line, "%s\n", name)) < 0) log = -1;
	}
	if (!s) s = "";
	if (strcmp(s, last)) {
		const char *n = strchr(s, ':');
		snprintf(last, sizeof last, "%s", s);
		calls = at = on = 0;
		faults++;
		if (n && strchr(n + 1, ':')) {
			snprintf(prefix, sizeof prefix, "%.*s", (int)(n - s), s);
			at = atoi(n + 1);
			n = strchr(n + 1, ':');
			on = n[-1] == '+';
			result = atoi(n + 1);
		}
	}
	if (at && !strncmp(name, prefix, strlen(prefix))) {
		calls++;
		if (calls == at || (on && calls > at)) rc = result;
	}
	pthread_mutex_unlock(&mu);
	return rc;
}

/* FAULT stands at the start of a call. */
#define FAULT do { int rc_ = fault(__func__); if (rc_) return rc_; } while (0)
