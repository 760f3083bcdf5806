/* Preloaded: a file system without shared memory, as of a network, for all files. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

typedef void *(*map)(void *, size_t, int, int, int, off_t);

static void *mapped(const char *name, void *at, size_t size, int kind, int flags, int fd, off_t from)
{
    if (fd >= 0 && flags & MAP_SHARED) {
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
