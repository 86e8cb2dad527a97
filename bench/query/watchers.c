/* Watches one key over many connections at once, by server-sent events, and notes when each version came to each.
 *
 *     watchers PORT PATH COUNT
 *
 * A line "complete VERSION" is written when all have it. At the end of the input, "VERSION NANOSECONDS" for each that came,
 * by CLOCK_MONOTONIC. Ends with 1, and says why, when a connection ends before.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROOM = 64 * 1024, AT_ONCE = 256, VERSIONS = 1 << 20 };

struct watcher {
    int fd;
    size_t held;
    char buffer[ROOM];
};

struct arrival {
    long version;
    long long at;
};

static struct arrival *arrivals;
static size_t arrived, space;
static int counts[VERSIONS];
static int watchers;

static void fail(const char *what) {
    fprintf(stderr, "watchers: %s: %s\n", what, errno ? strerror(errno) : "the service ended it");
    exit(1);
}

static long long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void note(long version, long long at) {
    if (version < 0 || version >= VERSIONS) fail("a version that is too large");
    if (arrived == space) {
        space = space ? 2 * space : 1 << 16;
        if (!(arrivals = realloc(arrivals, space * sizeof *arrivals))) fail("memory");
    }
    arrivals[arrived++] = (struct arrival){version, at};
    if (++counts[version] == watchers) {
        printf("complete %ld\n", version);
        fflush(stdout);
    }
}

/* An event ends with an empty line. The answer's version stands before that of the record in it. */
static void take(struct watcher *one, long long at) {
    char *from = one->buffer, *end = one->buffer + one->held, *stop;
    while ((stop = memmem(from, end - from, "\n\n", 2))) {
        char *version;
        if (memmem(from, stop - from, "event: state", 12) && (version = memmem(from, stop - from, "\"version\":", 10)))
            note(strtol(version + 10, NULL, 10), at);
        from = stop + 2;
    }
    one->held = end - from;
    memmove(one->buffer, from, one->held);
}

static void hear(struct watcher *one) {
    for (;;) {
        errno = 0;
        ssize_t got = recv(one->fd, one->buffer + one->held, ROOM - one->held, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) fail("a connection");
        one->held += got;
        take(one, now());
        if (one->held == ROOM) fail("an event that is too long");
    }
}

static void start(struct watcher *one, int epoll, int port, const char *path) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = one};
    one->fd = socket(AF_INET, SOCK_STREAM, 0);
    one->held = 0;
    if (one->fd < 0 || connect(one->fd, (struct sockaddr *)&to, sizeof to)) fail("connecting");
    if (dprintf(one->fd, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path) < 0) fail("asking");
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, one->fd, &event)) fail("epoll");
}

int main(int count, char **words) {
    if (count != 4) fail("write watchers PORT PATH COUNT");
    watchers = atoi(words[3]);
    struct watcher *all = calloc(watchers, sizeof *all);
    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL}, found[AT_ONCE];
    int epoll = epoll_create1(0);
    if (!all || epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input)) fail("starting");
    for (int at = 0; at < watchers; at++) start(&all[at], epoll, atoi(words[1]), words[2]);
    for (;;) {
        int ready = epoll_wait(epoll, found, AT_ONCE, -1);
        if (ready < 0 && errno != EINTR) fail("waiting");
        for (int at = 0; at < ready; at++) {
            if (found[at].data.ptr) {
                hear(found[at].data.ptr);
                continue;
            }
            for (size_t each = 0; each < arrived; each++) printf("%ld %lld\n", arrivals[each].version, arrivals[each].at);
            return 0;
        }
    }
}
