/* Preloaded: a file system without shared memory, as of a network, for files ending in -shm. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef void *(*map)(void *, size_t, int, int, int, off_t);

static void *mapped(const char *name, void *at, size_t size, int kind, int flags, int fd, off_t from)
{
    char link[32], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = fd < 0 ? -1 : readlink(link, path, sizeof path - 1);
    if (length > 4 && !strncmp(path + length - 4, "-shm", 4)) {
        errno = ENODEV;
        return MAP_FAILED;
    }
    return ((map)dlsym(RTLD_NEXT, name))(at, size, kind, flags, fd, from);
}

void *mmap(void *at, size_t size, int kind, int flags, int fd, off_t from)
{
    return mapped("mmap", at, size, kind, flags, fd, from);
}

void *mmap64(void *at, size_t size, int kind, int flags, int fd, off_t from)
{
    return mapped("mmap64", at, size, kind, flags, fd, from);
}
