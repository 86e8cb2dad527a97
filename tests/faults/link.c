/* Connects to the port in $FAULTS_LINK_TO instead of the one in $FAULTS_LINK_FROM: for LD_PRELOAD. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static in_port_t port_of(const char *variable) {
    const char *value = getenv(variable);
    return htons(value ? atoi(value) : 0);
}

int connect(int file, const struct sockaddr *address, socklen_t length) {
    static int (*connect_of_libc)(int, const struct sockaddr *, socklen_t);
    struct sockaddr_storage changed;
    if (!connect_of_libc)
        connect_of_libc = dlsym(RTLD_NEXT, "connect");
    if (length <= sizeof changed && (address->sa_family == AF_INET || address->sa_family == AF_INET6)) {
        struct sockaddr_in *internet = (struct sockaddr_in *)&changed; /* The port of IPv6 has the same place. */
        memcpy(&changed, address, length);
        if (internet->sin_port == port_of("FAULTS_LINK_FROM"))
            internet->sin_port = port_of("FAULTS_LINK_TO");
        address = (struct sockaddr *)&changed;
    }
    return connect_of_libc(file, address, length);
}
