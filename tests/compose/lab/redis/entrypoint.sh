#!/bin/sh
set -eu
umask 0077
# The official image is compiled with this default. Debian's server refuses clients of other containers.
[ "$1" != redis-server ] || set -- "$@" --protected-mode no
exec "$@"
