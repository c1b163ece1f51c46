/* Preloaded into a process, it makes its k-th file call of one kind fail, for files below one directory.

   Counts and fails what faults.py arms; everything else goes on to the C library. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { OPEN, WRITE, READ, SYNC, RENAME, MKDIR, LOCK, UNLINK, TRUNCATE, MAP, LIST, LOOK, SEEK, KINDS };
enum { ONCE, FROM_THERE_ON, SHORT };

static char folder[PATH_MAX];
static int armed_kind = -1, armed_error, armed_mode;
static long armed_at;
static atomic_long calls[KINDS];

void faults_arm(const char *below, int kind, long at, int error, int mode) {
  for (int i = 0; i < KINDS; ++i) atomic_store(&calls[i], 0);
  armed_kind = kind, armed_at = at, armed_error = error, armed_mode = mode;
  strncpy(folder, below, sizeof folder - 1);
}

void faults_disarm(void) { folder[0] = 0; }

long faults_counted(int kind) { return atomic_load(&calls[kind]); }

static int below(const char *path) { return folder[0] && strncmp(path, folder, strlen(folder)) == 0; }

static int fd_below(int fd) {
  char name[64], path[PATH_MAX];
  if (!folder[0]) return 0;
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t n = readlink(name, path, sizeof path - 1);
  if (n <= 0) return 0;
  path[n] = 0;
  return below(path);
}

static int at_below(int dirfd, const char *path) {
  return path[0] == '/' ? below(path) : dirfd != AT_FDCWD && fd_below(dirfd);
}

/* Whether this call is to fail, or with SHORT to do a part of its work. */
static int struck(int kind, int concerned) {
  if (!concerned) return 0;
  long at = atomic_fetch_add(&calls[kind], 1);
  if (kind != armed_kind || (armed_mode == FROM_THERE_ON ? at < armed_at : at != armed_at)) return 0;
  errno = armed_error;
  return 1;
}

#define REAL(type, name, ...) \
  static type (*real)(__VA_ARGS__); \
  if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

#define OPENS(name) \
  int name(const char *path, int flags, ...) { \
    REAL(int, name, const char *, int, ...); \
    va_list more; \
    va_start(more, flags); \
    int mode = va_arg(more, int); \
    va_end(more); \
    return struck(OPEN, below(path)) ? -1 : real(path, flags, mode); \
  }
OPENS(open)
OPENS(open64)

#define OPENS_AT(name) \
  int name(int dirfd, const char *path, int flags, ...) { \
    REAL(int, name, int, const char *, int, ...); \
    va_list more; \
    va_start(more, flags); \
    int mode = va_arg(more, int); \
    va_end(more); \
    return struck(OPEN, at_below(dirfd, path)) ? -1 : real(dirfd, path, flags, mode); \
  }
OPENS_AT(openat)
OPENS_AT(openat64)

#define PARTLY(kind, n) \
  if (struck(kind, fd_below(fd))) { \
    if (armed_mode != SHORT) return -1; \
    if (n > 1) n /= 2; \
  }

ssize_t write(int fd, const void *data, size_t n) {
  REAL(ssize_t, write, int, const void *, size_t);
  PARTLY(WRITE, n)
  return real(fd, data, n);
}

ssize_t read(int fd, void *data, size_t n) {
  REAL(ssize_t, read, int, void *, size_t);
  PARTLY(READ, n)
  return real(fd, data, n);
}

#define AT_OFFSET(name, kind, constness) \
  ssize_t name(int fd, constness void *data, size_t n, off_t at) { \
    REAL(ssize_t, name, int, constness void *, size_t, off_t); \
    PARTLY(kind, n) \
    return real(fd, data, n, at); \
  }
AT_OFFSET(pwrite, WRITE, const)
AT_OFFSET(pwrite64, WRITE, const)
AT_OFFSET(pread, READ, )
AT_OFFSET(pread64, READ, )

#define VECTORS(name, kind) \
  ssize_t name(int fd, const struct iovec *parts, int n, off_t at) { \
    REAL(ssize_t, name, int, const struct iovec *, int, off_t); \
    struct iovec first = parts[0]; \
    size_t length = first.iov_len; \
    PARTLY(kind, length) \
    if (length == first.iov_len) return real(fd, parts, n, at); \
    first.iov_len = length; \
    return real(fd, &first, 1, at); \
  }
VECTORS(preadv, READ)
VECTORS(preadv64, READ)
VECTORS(pwritev, WRITE)
VECTORS(pwritev64, WRITE)

#define VECTORS_WITH_FLAGS(name, kind) \
  ssize_t name(int fd, const struct iovec *parts, int n, off_t at, int flags) { \
    REAL(ssize_t, name, int, const struct iovec *, int, off_t, int); \
    struct iovec first = parts[0]; \
    size_t length = first.iov_len; \
    PARTLY(kind, length) \
    if (length == first.iov_len) return real(fd, parts, n, at, flags); \
    first.iov_len = length; \
    return real(fd, &first, 1, at, flags); \
  }
VECTORS_WITH_FLAGS(preadv2, READ)
VECTORS_WITH_FLAGS(preadv64v2, READ)
VECTORS_WITH_FLAGS(pwritev2, WRITE)
VECTORS_WITH_FLAGS(pwritev64v2, WRITE)

#define ON_DESCRIPTOR(name, kind) \
  int name(int fd) { \
    REAL(int, name, int); \
    return struck(kind, fd_below(fd)) ? -1 : real(fd); \
  }
ON_DESCRIPTOR(fsync, SYNC)
ON_DESCRIPTOR(fdatasync, SYNC)

#define ON_DESCRIPTOR_WITH(name, kind, argument) \
  int name(int fd, argument with) { \
    REAL(int, name, int, argument); \
    return struck(kind, fd_below(fd)) ? -1 : real(fd, with); \
  }
ON_DESCRIPTOR_WITH(flock, LOCK, int)
ON_DESCRIPTOR_WITH(ftruncate, TRUNCATE, off_t)
ON_DESCRIPTOR_WITH(ftruncate64, TRUNCATE, off_t)

#define ON_PATH(name, kind) \
  int name(const char *path) { \
    REAL(int, name, const char *); \
    return struck(kind, below(path)) ? -1 : real(path); \
  }
ON_PATH(unlink, UNLINK)
ON_PATH(rmdir, UNLINK)

int unlinkat(int dirfd, const char *path, int flags) {
  REAL(int, unlinkat, int, const char *, int);
  return struck(UNLINK, at_below(dirfd, path)) ? -1 : real(dirfd, path, flags);
}

int mkdir(const char *path, mode_t mode) {
  REAL(int, mkdir, const char *, mode_t);
  return struck(MKDIR, below(path)) ? -1 : real(path, mode);
}

int mkdirat(int dirfd, const char *path, mode_t mode) {
  REAL(int, mkdirat, int, const char *, mode_t);
  return struck(MKDIR, at_below(dirfd, path)) ? -1 : real(dirfd, path, mode);
}

int rename(const char *from, const char *to) {
  REAL(int, rename, const char *, const char *);
  return struck(RENAME, below(to)) ? -1 : real(from, to);
}

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  REAL(int, renameat, int, const char *, int, const char *);
  return struck(RENAME, at_below(to_dir, to)) ? -1 : real(from_dir, from, to_dir, to);
}

#define MAPS(name) \
  void *name(void *place, size_t n, int rights, int flags, int fd, off_t at) { \
    REAL(void *, name, void *, size_t, int, int, int, off_t); \
    int concerned = fd >= 0 && !(flags & MAP_ANONYMOUS) && fd_below(fd); \
    return struck(MAP, concerned) ? MAP_FAILED : real(place, n, rights, flags, fd, at); \
  }
MAPS(mmap)
MAPS(mmap64)

DIR *opendir(const char *path) {
  REAL(DIR *, opendir, const char *);
  return struck(LIST, below(path)) ? NULL : real(path);
}

DIR *fdopendir(int fd) {
  REAL(DIR *, fdopendir, int);
  return struck(LIST, fd_below(fd)) ? NULL : real(fd);
}

#define LOOKS(name, result) \
  int name(const char *path, struct result *found) { \
    REAL(int, name, const char *, struct result *); \
    return struck(LOOK, below(path)) ? -1 : real(path, found); \
  }
LOOKS(stat, stat)
LOOKS(stat64, stat64)
LOOKS(lstat, stat)
LOOKS(lstat64, stat64)
LOOKS(statvfs, statvfs)
LOOKS(statvfs64, statvfs64)

#define LOOKS_AT(name, result) \
  int name(int dirfd, const char *path, struct result *found, int flags) { \
    REAL(int, name, int, const char *, struct result *, int); \
    return struck(LOOK, at_below(dirfd, path)) ? -1 : real(dirfd, path, found, flags); \
  }
LOOKS_AT(fstatat, stat)
LOOKS_AT(fstatat64, stat64)

#define LOOKS_INTO(name, result) \
  int name(int fd, struct result *found) { \
    REAL(int, name, int, struct result *); \
    return struck(LOOK, fd_below(fd)) ? -1 : real(fd, found); \
  }
LOOKS_INTO(fstat, stat)
LOOKS_INTO(fstat64, stat64)

#define SEEKS(name) \
  off_t name(int fd, off_t at, int whence) { \
    REAL(off_t, name, int, off_t, int); \
    return struck(SEEK, fd_below(fd)) ? -1 : real(fd, at, whence); \
  }
SEEKS(lseek)
SEEKS(lseek64)
