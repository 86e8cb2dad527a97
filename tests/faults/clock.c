/* Moves the system clock of a process by the seconds in the file $FAULTS_CLOCK, at any time: for LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define LONGEST_UPTIME 1000000000 /* Later times are of the system clock, not of the monotonic one. */

static const volatile long *seconds;

__attribute__((constructor)) static void map_file(void) {
    const char *path = getenv("FAULTS_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *content = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    seconds = content == MAP_FAILED ? NULL : content;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && seconds && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += *seconds;
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec precise;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}

static struct timespec unmoved(const struct timespec *end) {
    struct timespec result = *end;
    if (seconds && result.tv_sec > LONGEST_UPTIME)
        result.tv_sec -= *seconds;
    return result;
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *end) {
    static int (*wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec until = unmoved(end);
    if (!wait)
        wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return wait(condition, mutex, &until);
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict end) {
    static int (*wait)(cnd_t *, mtx_t *, const struct timespec *);
    struct timespec until = unmoved(end);
    if (!wait)
        wait = dlsym(RTLD_NEXT, "cnd_timedwait");
    return wait(condition, mutex, &until);
}
