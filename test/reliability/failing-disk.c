/* Makes the disk of oarlock.db fail on demand, for io-error.test.ts: LD_PRELOAD this library, and name a file in FAILING_DISK.
   While that file holds "write", writing to the database fails with EIO; with "sync", so does fsync. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int fails(int fd, char what) {
  const char *control = getenv("FAILING_DISK");
  if (!control) return 0;
  char link[64], path[4096], mode = 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  if (!strstr(path, "/oarlock.db")) return 0;
  int file = open(control, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  if (read(file, &mode, 1) != 1) mode = 0;
  close(file);
  return mode == what;
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define FAIL_IF(what) do { if (fails(fd, what)) { errno = EIO; return -1; } } while (0)

ssize_t write(int fd, const void *bytes, size_t count) { FAIL_IF('w'); return NEXT(write)(fd, bytes, count); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { FAIL_IF('w'); return NEXT(pwrite)(fd, bytes, count, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t at) { FAIL_IF('w'); return NEXT(pwrite64)(fd, bytes, count, at); }
int fsync(int fd) { FAIL_IF('s'); return NEXT(fsync)(fd); }
int fdatasync(int fd) { FAIL_IF('s'); return NEXT(fdatasync)(fd); }
