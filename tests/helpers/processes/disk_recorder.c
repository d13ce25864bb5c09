/*
 * Preloaded into a process, writes down what it does to files below RECORD_ROOT, in its order, into RECORD_LOG.
 * One record: op (1 byte), length of the path (4), path, offset (8), length of the data (4), data; little endian.
 *   C created  W written at the offset  T cut to the offset  S synced (file or folder)  R renamed (data: new path)
 *   L linked (data: new path)  U removed  M folder made
 * A sync is recorded before it happens and everything else after, so that nothing counts as synced that was not.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int log_fd = -1;

static int is_below(const char *path) {
  const char *root = getenv("RECORD_ROOT");
  size_t length = root ? strlen(root) : 0;
  return length && !strncmp(path, root, length) && (path[length] == '/' || path[length] == 0);
}

static void record(char op, const char *path, uint64_t offset, const struct iovec *data, int parts, size_t size) {
  if (!is_below(path)) return;
  uint32_t path_length = strlen(path), data_length = size;
  pthread_mutex_lock(&lock);
  if (log_fd < 0) log_fd = syscall(SYS_openat, AT_FDCWD, getenv("RECORD_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  size_t total = 1 + 4 + path_length + 8 + 4 + size, at = 0;
  char *bytes = malloc(total);
  bytes[at++] = op;
  memcpy(bytes + at, &path_length, 4), at += 4;
  memcpy(bytes + at, path, path_length), at += path_length;
  memcpy(bytes + at, &offset, 8), at += 8;
  memcpy(bytes + at, &data_length, 4), at += 4;
  for (int i = 0; i < parts && size > 0; i++) {
    size_t count = data[i].iov_len < size ? data[i].iov_len : size;
    memcpy(bytes + at, data[i].iov_base, count), at += count, size -= count;
  }
  for (size_t done = 0; done < total;) {
    ssize_t count = syscall(SYS_write, log_fd, bytes + done, total - done);
    if (count <= 0) abort();
    done += count;
  }
  free(bytes);
  pthread_mutex_unlock(&lock);
}

static int path_of(int fd, char *path) {
  char link[40];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, PATH_MAX - 1);
  if (length <= 0 || path[0] != '/') return 0;
  path[length] = 0;
  return is_below(path);
}

static void absolute(int folder, const char *name, char *path) {
  char base[PATH_MAX] = "";
  if (name[0] == '/') snprintf(path, PATH_MAX, "%s", name);
  else if (folder == AT_FDCWD && getcwd(base, sizeof base)) snprintf(path, PATH_MAX, "%s/%s", base, name);
  else if (path_of(folder, base)) snprintf(path, PATH_MAX, "%s/%s", base, name);
  else path[0] = 0;
}

static void record_path(char op, int folder, const char *name) {
  char path[PATH_MAX];
  absolute(folder, name, path);
  record(op, path, 0, NULL, 0, 0);
}

static void record_pair(char op, int from_folder, const char *from, int to_folder, const char *to) {
  char path[PATH_MAX], target[PATH_MAX];
  absolute(from_folder, from, path);
  absolute(to_folder, to, target);
  struct iovec data = {target, strlen(target)};
  record(op, path, 0, &data, 1, data.iov_len);
}

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static int opened(int folder, const char *name, int flags, mode_t mode) {
  struct stat info;
  int was_there = !fstatat(folder, name, &info, 0);
  int fd = syscall(SYS_openat, folder, name, flags, mode);
  if (fd >= 0 && (flags & O_CREAT) && !was_there) record_path('C', folder, name);
  if (fd >= 0 && (flags & O_TRUNC) && was_there) record_path('T', folder, name);
  return fd;
}

#define MODE_OF(flags) \
  mode_t mode = 0; \
  if ((flags) & O_CREAT) { va_list list; va_start(list, flags); mode = va_arg(list, int); va_end(list); }

int open(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE_OF(flags) return opened(AT_FDCWD, path, flags, mode); }
int openat64(int folder, const char *path, int flags, ...) { MODE_OF(flags) return opened(folder, path, flags, mode); }

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
  ssize_t count = NEXT(pwrite64)(fd, bytes, size, offset);
  char path[PATH_MAX];
  struct iovec data = {(void *)bytes, size};
  if (count > 0 && path_of(fd, path)) record('W', path, offset, &data, 1, count);
  return count;
}

ssize_t write(int fd, const void *bytes, size_t size) {
  ssize_t count = NEXT(write)(fd, bytes, size);
  char path[PATH_MAX];
  struct iovec data = {(void *)bytes, size};
  if (count > 0 && path_of(fd, path)) record('W', path, lseek(fd, 0, SEEK_CUR) - count, &data, 1, count);
  return count;
}

ssize_t writev(int fd, const struct iovec *parts, int number) {
  ssize_t count = NEXT(writev)(fd, parts, number);
  char path[PATH_MAX];
  if (count > 0 && path_of(fd, path)) record('W', path, lseek(fd, 0, SEEK_CUR) - count, parts, number, count);
  return count;
}

static void record_fd(char op, int fd, uint64_t offset) {
  char path[PATH_MAX];
  if (path_of(fd, path)) record(op, path, offset, NULL, 0, 0);
}

int fsync(int fd) { record_fd('S', fd, 0); return NEXT(fsync)(fd); }
int fdatasync(int fd) { record_fd('S', fd, 0); return NEXT(fdatasync)(fd); }
int ftruncate(int fd, off_t size) { int r = NEXT(ftruncate)(fd, size); if (!r) record_fd('T', fd, size); return r; }
int ftruncate64(int fd, off64_t size) { int r = NEXT(ftruncate64)(fd, size); if (!r) record_fd('T', fd, size); return r; }
int unlink(const char *path) { int r = NEXT(unlink)(path); if (!r) record_path('U', AT_FDCWD, path); return r; }
int rmdir(const char *path) { int r = NEXT(rmdir)(path); if (!r) record_path('U', AT_FDCWD, path); return r; }
int unlinkat(int folder, const char *path, int flags) {
  int r = NEXT(unlinkat)(folder, path, flags);
  if (!r) record_path('U', folder, path);
  return r;
}
int mkdir(const char *path, mode_t mode) { int r = NEXT(mkdir)(path, mode); if (!r) record_path('M', AT_FDCWD, path); return r; }
int rename(const char *from, const char *to) {
  int r = NEXT(rename)(from, to);
  if (!r) record_pair('R', AT_FDCWD, from, AT_FDCWD, to);
  return r;
}
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  int r = NEXT(linkat)(from_folder, from, to_folder, to, flags);
  if (!r) record_pair('L', from_folder, from, to_folder, to);
  return r;
}
