/* SPDX-License-Identifier: MIT */
/* file.h - files, folders and descriptors, with errors that name the path.
 *
 * What appears under its final name is whole and durable: written under a temporary
 * name (NAME.tmp), fsynced, renamed, and its folder fsynced.  Files whose name ends in
 * ".tmp" or starts with a dot are never input. */
#ifndef FILE_H
#define FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A read-only mapping of a whole file.  An empty file maps to data NULL, size 0. */
struct file_map {
    const uint8_t *data;
    size_t size;
};
int file_map(struct file_map *m, const char *path);
void file_unmap(struct file_map *m); /* zero struct is fine */

/* Whole files in memory; *out is owned by the caller (mem_free) and NUL-terminated. */
int file_read(const char *path, char **out, size_t *size);

/* file_write puts a whole file in place: temporary name, fsync, rename, folder fsync.
 */
int file_write(const char *path, const void *data, size_t n);

/* The same in steps, for large files.  create opens PATH.tmp (truncated); commit
 * fsyncs, closes, renames, fsyncs the folder; abandon closes and unlinks.  After create
 * exactly one of the two ends it.  What is there and is no regular file (a terminal,
 * /dev/null, a pipe) is written to as it is. */
struct file_new {
    char *path; /* the final name; owned */
    int fd;     /* write here, with file_put or pwrite */
    bool straight;
};
int file_new_create(struct file_new *f, const char *path);
int file_new_commit(struct file_new *f);
void file_new_abandon(struct file_new *f);

/* Whole transfers on a descriptor; `name` is for messages.  file_get returns the number
 * of bytes read, less than n only at the end of the input.  EINTR is retried. */
int file_put(int fd, const void *data, size_t n, const char *name);
int64_t file_get(int fd, void *data, size_t n, const char *name);
int file_pread(int fd, void *data, size_t n, off_t at,
               const char *name); /* all or fail */
int file_pwrite(int fd, const void *data, size_t n, off_t at, const char *name);

/* file_let_go starts writing out what a file holds in memory and drops what the disk
 * has already: for bytes that nobody will read soon. */
void file_let_go(int fd);

/* file_is_input: may a file or folder of this name (no path) be read as data?  Not when
 * it starts with a dot or ends in ".tmp". */
bool file_is_input(const char *name);

/* file_stays_below: does a name that others have written lead to a place below the
 * folder it is joined to?  Not when it is empty or absolute or has a ".." component. */
bool file_stays_below(const char *name);

/* file_mark is the length of the byte order mark that some editors begin a file with,
 * U+FEFF in UTF-8: 3, or 0 when there is none. */
size_t file_mark(const char *text, size_t n);

/* file_last_name is what stands behind the last '/' of a path. */
const char *file_last_name(const char *path);

/* Folders.  file_list gives the names (not paths) of plain files in a folder, sorted by
 * byte value, temporaries and dot files left out; *names is one array owned by the
 * caller, freed by file_list_free. */
int file_list(const char *dir, char ***names, int64_t *n);
void file_list_free(char **names, int64_t n);
int file_make_dirs(const char *path); /* like mkdir -p, and durable */
int file_sync_dir(const char *path);
int file_remove_tree(const char *path); /* absent is fine */
bool file_exists(const char *path);
bool file_same(const char *a, const char *b); /* both there, and one file or folder */
bool file_is_dir(const char *path);
int64_t file_size(const char *path); /* negative code on failure */

/* file_path joins with '/' into a new string (mem_free); NULL: E_MEMORY. */
char *file_path(const char *dir, const char *name);

#endif
