/* SPDX-License-Identifier: MIT */
/* safetensors.h - the one file format: a length, a JSON header, tensors.
 *
 * A file is a little-endian u64 n, n bytes of JSON and then the data; each tensor's
 * bytes are [begin, end) relative to byte 8 + n (spec: huggingface/safetensors).  We
 * accept what covers the data exactly, without holes or overlap, n <= 100 MiB, names
 * without NUL, ranks up to ST_RANK, sizes that do not overflow, tensors that begin at a
 * multiple of their type's size within the file (all views can be read in place);
 * anything else is E_FORMAT that says which tensor and why.  Headers end in spaces
 * where padding is wanted.
 *
 * A header can be parsed on its own, so files and pipes share the code.  Names and
 * metadata are copies owned by the st_header; tensor data are views of a mapping. */
#ifndef SAFETENSORS_H
#define SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "file.h"

enum { ST_RANK = 8, ST_HEADER_MAX = 100 << 20 };

enum st_type {
    ST_U8,
    ST_I32,
    ST_I64,
    ST_F8_E4M3,
    ST_BF16,
    ST_F16,
    ST_F32,
    ST_F64,
    ST_BOOL
};

size_t st_type_size(enum st_type t);
const char *st_type_name(enum st_type t); /* "U8", "F8_E4M3", "BF16" ... as in files */

struct st_tensor {
    char *name; /* owned by the header */
    enum st_type type;
    int rank;
    int64_t dim[ST_RANK];
    uint64_t begin, end; /* bytes, relative to the start of the data */
};

struct st_header {
    struct st_tensor *tensor; /* in file order of their data */
    int64_t tensors;
    char **meta; /* key, value, key, value ...; in file order */
    int64_t metas;
    uint64_t data_bytes;   /* largest end */
    uint64_t header_bytes; /* 8 + n: where the data begin in the file */
};

/* st_length reads the 8 bytes in front of a header of a file of `size` bytes (at least
 * 8, else E_FORMAT) and checks the limit. */
int st_length(const void *bytes, size_t size, size_t *n);

/* st_header_parse reads the JSON of a header (n bytes, without the length). */
int st_header_parse(struct st_header *h, const char *text, size_t n);
void st_header_drop(struct st_header *h);
const struct st_tensor *st_find(const struct st_header *h,
                                const char *name);               /* or NULL */
const char *st_meta(const struct st_header *h, const char *key); /* or NULL */
int64_t st_count(const struct st_tensor *t);                     /* elements */

/* st_header_write appends length and JSON to `out`: metadata in the given order, then
 * the tensors, begin and end computed here by laying them out one after another in the
 * given order; spaces pad so that the data begin at a multiple of `align` (8 or 4096).
 * A tensor that would not be aligned to its type is a bug: wide types come first. */
int st_header_write(struct buf *out, struct st_tensor *tensor, int64_t tensors,
                    const char *const *meta, int64_t metas, size_t align);

/* One file, mapped. */
struct st_file {
    struct file_map map;
    struct st_header header;
    char *path;
};
int st_open(struct st_file *f, const char *path);
void st_close(struct st_file *f);

/* st_check_data compares the data with the checksum in its metadata (data_xxh3, which
 * draft-train writes): E_FORMAT when they differ.  Without one it is 0. */
int st_check_data(const struct st_file *f);
const void *st_data(const struct st_file *f, const struct st_tensor *t);

/* st_need finds a tensor and checks its shape (rank dims follow, -1 = any); the message
 * of a failure names file, tensor, what was found and what was expected. */
int st_need(const struct st_file *f, const char *name, const struct st_tensor **out,
            int rank, const int64_t *dim);

/* A checkpoint folder: model.safetensors.index.json followed literally when it is there
 * (file names from weight_map, nothing built; names with '/' or ".." are refused), else
 * model.safetensors.  Tensors are found by name over all files; a tensor that the index
 * promises and its file lacks is E_FORMAT when the folder is opened. */
struct st_model {
    struct st_file *file;
    int64_t files;
    struct st_entry *entry; /* sorted by name */
    int64_t entries;
    char *dir;
};
struct st_entry {
    const char *name; /* view of the header that owns it */
    const struct st_tensor *tensor;
    const struct st_file *file;
};
int st_model_open(struct st_model *m, const char *dir);
void st_model_close(struct st_model *m);
const struct st_entry *st_model_find(const struct st_model *m, const char *name);

/* st_model_digest is the identity of a model: xxh3-64 over config.json (its length, its
 * bytes) and, for each tensor in name order, name and type with their NUL, rank, dims,
 * xxh3-64 of its first and of its last min(64 KiB, size) bytes; all numbers u64,
 * little-endian.  Independent of how the tensors are spread over files. */
int st_model_digest(const struct st_model *m, uint64_t *out);

#endif
