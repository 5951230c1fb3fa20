/* Records what a process does to the files below POWER_FOLDER, in order, into POWER_LOG.
 *
 * Preloaded (LD_PRELOAD) it stands before the C library. Every record is written while a lock is
 * held around the real call, so the log's order is the disk's; an fsync's record stands after
 * everything that it made durable. tests/proof/crashes/power_disk.py reads the records. SQLite renames
 * nothing and maps nothing but its shared memory, so neither is recorded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct head {
    uint32_t kind; /* a letter */
    uint32_t path_size;
    uint64_t inode;
    uint64_t offset;
    uint64_t size; /* of what was written, or of the file after a truncation */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static int journal = -1;

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static void put(const void *data, size_t size) {
    const char *rest = data;
    while (size > 0) {
        ssize_t done = REAL(write)(journal, rest, size);
        if (done <= 0) abort(); /* an incomplete record would prove nothing */
        rest += done;
        size -= (size_t)done;
    }
}

static void record(char kind, const char *path, uint64_t inode, uint64_t offset, uint64_t size,
                   const void *data) {
    struct head head = {(uint32_t)kind, (uint32_t)strlen(path), inode, offset, size};
    put(&head, sizeof head);
    put(path, head.path_size);
    if (data != NULL) put(data, size);
}

static int is_below(const char *path) {
    return journal >= 0 && strncmp(path, folder, strlen(folder)) == 0;
}

/* Find the path of a file below the folder; 0 for any other. */
static int find(int fd, char *path, size_t room, struct stat *about) {
    char link[64];
    if (journal < 0 || fd < 0 || fd == journal) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, room - 1);
    if (size <= 0) return 0;
    path[size] = 0;
    return is_below(path) && fstat(fd, about) == 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("POWER_LOG");
    folder = getenv("POWER_FOLDER");
    if (name != NULL && folder != NULL)
        journal = REAL(open)(name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int opened(const char *function, const char *path, int flags, mode_t mode) {
    struct stat about;
    int (*call)(const char *, int, ...) = real(function);
    pthread_mutex_lock(&lock);
    int is_new = (flags & O_CREAT) != 0 && is_below(path) && lstat(path, &about) != 0;
    int fd = call(path, flags, mode);
    if (is_new && fd >= 0 && fstat(fd, &about) == 0) record('C', path, about.st_ino, 0, 0, NULL);
    pthread_mutex_unlock(&lock);
    return fd;
}

static mode_t mode_of(int flags, va_list rest) {
    return (flags & O_CREAT) != 0 ? (mode_t)va_arg(rest, int) : 0;
}

int open(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened("open", path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    mode_t mode = mode_of(flags, rest);
    va_end(rest);
    return opened("open64", path, flags, mode);
}

static ssize_t written(const char *function, int fd, const void *data, size_t size, off64_t at) {
    char path[4096];
    struct stat about;
    ssize_t (*call)(int, const void *, size_t, off64_t) = real(function);
    pthread_mutex_lock(&lock);
    int is_ours = find(fd, path, sizeof path, &about);
    ssize_t done = call(fd, data, size, at);
    if (is_ours && done > 0) record('W', path, about.st_ino, (uint64_t)at, (uint64_t)done, data);
    pthread_mutex_unlock(&lock);
    return done;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    return written("pwrite", fd, data, size, at);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return written("pwrite64", fd, data, size, at);
}

ssize_t write(int fd, const void *data, size_t size) {
    char path[4096];
    struct stat about;
    if (!find(fd, path, sizeof path, &about)) return REAL(write)(fd, data, size);
    pthread_mutex_lock(&lock);
    off64_t at = lseek64(fd, 0, SEEK_CUR);
    ssize_t done = REAL(write)(fd, data, size);
    if (done > 0 && at >= 0)
        record('W', path, about.st_ino, (uint64_t)at, (uint64_t)done, data);
    pthread_mutex_unlock(&lock);
    return done;
}

static int truncated(const char *function, int fd, off64_t size) {
    char path[4096];
    struct stat about;
    int (*call)(int, off64_t) = real(function);
    pthread_mutex_lock(&lock);
    int is_ours = find(fd, path, sizeof path, &about);
    int answer = call(fd, size);
    if (is_ours && answer == 0) record('T', path, about.st_ino, 0, (uint64_t)size, NULL);
    pthread_mutex_unlock(&lock);
    return answer;
}

int ftruncate(int fd, off_t size) { return truncated("ftruncate", fd, size); }

int ftruncate64(int fd, off64_t size) { return truncated("ftruncate64", fd, size); }

static int synced(const char *function, int fd) {
    char path[4096];
    struct stat about;
    int (*call)(int) = real(function);
    pthread_mutex_lock(&lock);
    int is_ours = find(fd, path, sizeof path, &about);
    int answer = call(fd);
    if (is_ours && answer == 0)
        record(S_ISDIR(about.st_mode) ? 'D' : 'S', path, about.st_ino, 0, 0, NULL);
    pthread_mutex_unlock(&lock);
    return answer;
}

int fsync(int fd) { return synced("fsync", fd); }

int fdatasync(int fd) { return synced("fdatasync", fd); }

int unlink(const char *path) {
    pthread_mutex_lock(&lock);
    int answer = REAL(unlink)(path);
    if (answer == 0 && is_below(path)) record('U', path, 0, 0, 0, NULL);
    pthread_mutex_unlock(&lock);
    return answer;
}
