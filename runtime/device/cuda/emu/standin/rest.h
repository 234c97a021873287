/* rest sleeps for so many microseconds whatever signals come: Go's runtime sends its threads some at any time,
 * and usleep ends at the first. */
#include <errno.h>
#include <time.h>

static void rest(long us) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += us % 1000000 * 1000;
	t.tv_sec += us / 1000000 + t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {}
}
