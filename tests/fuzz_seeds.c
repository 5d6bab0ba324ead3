/* SPDX-License-Identifier: MIT */
/* fuzz_seeds.c - writes the inputs that fuzzing starts from: fuzz_seeds DIR.
 *
 * DIR/fuzz_safetensors gets a file with every type, DIR/fuzz_shard a shard, streams of
 * one and two runs, and names; each of the latter behind a byte that says whether
 * checksums are repaired (see fuzz_shard.c).  DIR/fuzz_jsonl gets records, plain and
 * compressed, DIR/fuzz_readers and DIR/fuzz_arrow the files of tests/golden,
 * DIR/fuzz_target configs and headers of checkpoints, DIR/fuzz_list, _head and _url
 * what servers say. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

#include "err.h"
#include "mem.h"
#include "shard.h"

static void add_rows(struct shard_writer *w, int rows)
{
    for (int i = 0; i < rows; i++) {
        void *at[SHARD_COLUMNS];
        int64_t entry[1] = {i};
        if (shard_row(w, at) < 0 || shard_fixed(w, 1, entry, 1) < 0)
            bug("%s", err_text());
        memcpy(at[0], "\1\2\3\4\5\6\7\10", 8);
    }
}

static int write_run(const char *dir, int part, int parts, int rows)
{
    struct shard_options o = {
        .name = "s",
        .stage = "t",
        .part = part,
        .parts = parts,
        .column = {{.name = "a", .type = ST_I32, .rank = 1, .dim = {2}},
                   {.name = "b", .type = ST_I64, .fixed = true}},
        .columns = 2,
        .rows_per_shard = 2};
    struct shard_writer *w;
    int64_t have;
    TRY(shard_create(&w, dir, &o, &have));
    if (!w)
        return 0;
    add_rows(w, rows);
    return shard_finish(w);
}

/* A stream of runs in a file, behind the byte '0' or '1'. */
static int write_stream(const char *dir, const char *name, char repair, int parts)
{
    int rc = 0;
    char *path = file_path(dir, name);
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd < 0)
        return err_set(E_IO, "cannot write %s", name);
    rc = file_put(fd, &repair, 1, path);
    dup2(fd, STDOUT_FILENO);
    for (int i = 0; i < parts && rc == 0; i++)
        rc = write_run("-", i, parts, 3);
    close(fd);
    mem_free(path);
    return rc;
}

static int write_types(const char *dir)
{
    struct st_tensor t[ST_BOOL + 1] = {{0}};
    const char *const meta[] = {"k", "v"};
    struct buf b = {0};
    int n = 0;
    for (size_t size = 8; size > 0; size /= 2)
        for (int i = ST_U8; i <= ST_BOOL; i++)
            if (st_type_size((enum st_type)i) == size) {
                t[n] = (struct st_tensor){
                    .name = (char *)(uintptr_t)st_type_name((enum st_type)i),
                    .type = (enum st_type)i,
                    .rank = n % 4,
                    .dim = {1, 2, 1}};
                n++;
            }
    TRY(st_header_write(&b, t, n, meta, 1, 8));
    buf_fill(&b, 'x', t[n - 1].end);
    char *path = file_path(dir, "types");
    int rc = path ? file_write(path, b.p, b.len) : E_MEMORY;
    mem_free(path);
    buf_drop(&b);
    return rc;
}

static int write_records(const char *dir)
{
    static const char text[] =
        "{\"input_ids\": [1, 2, 30], \"loss_mask\": [0, 1, 1]}\n\n"
        "{\"labels\":[-100,5],\"input_ids\":[4,5],\"attention_mask\":[1,1]}\r\n"
        "{\"id\": \"a\\n\xc3\xa9\", \"n\": -1, \"x\": [0.5, null], \"input_ids\": "
        "[7]}\n";
    char zst[1000];
    size_t n = ZSTD_compress(zst, sizeof zst, text, strlen(text), 1);
    char *plain = file_path(dir, "plain"), *packed = file_path(dir, "zstd");
    int rc = plain && packed && !ZSTD_isError(n) ? file_make_dirs(dir) : E_MEMORY;
    if (rc == 0)
        rc = file_write(plain, text, strlen(text));
    if (rc == 0)
        rc = file_write(packed, zst, n);
    mem_free(plain);
    mem_free(packed);
    return rc;
}

/* Files of tests/golden behind a byte that chooses the reader (see fuzz_readers.c);
 * Megatron's pairs in one file, behind the length of the index. */
static int write_file(const char *dir, const char *name, char mode, const char *first,
                      const char *second)
{
    char *a = NULL, *b = NULL, *path = file_path(dir, name);
    size_t n = 0, m = 0;
    struct buf out = {0};
    int rc = path ? file_read(first, &a, &n) : E_MEMORY;
    if (rc == 0 && second)
        rc = file_read(second, &b, &m);
    buf_addc(&out, mode);
    if (second) {
        buf_addc(&out, (char)(n % 256));
        buf_addc(&out, (char)(n / 256));
    }
    buf_add(&out, a, n);
    if (m > 0)
        buf_add(&out, b, m);
    if (rc == 0 && (rc = buf_check(&out)) == 0)
        rc = file_write(path, out.p, out.len);
    mem_free(a);
    mem_free(b);
    mem_free(path);
    buf_drop(&out);
    return rc;
}

static int write_files(const char *dir)
{
#define DATA "tests/golden/data/"
    static const struct {
        const char *name;
        char mode;
        const char *first, *second;
    } seeds[] = {
        {"vector", 0, DATA "npy/vector.npy", NULL},
        {"matrix", 1, DATA "npy/matrix.npy", NULL},
        {"version3", 2, DATA "npy/version3.npy", NULL},
        {"odd-tar", 3, DATA "tar/odd.tar", NULL},
        {"arrays", 3, DATA "tar/arrays.tgz", NULL},
        {"json", 9, DATA "tar/json.tar.gz", NULL},
        {"bytes", 4, DATA "mds-bytes/shard.00000.mds", NULL},
        {"dynamic", 5, DATA "mds-dynamic/shard.00000.mds", NULL},
        {"shaped", 5, DATA "mds-shaped/shard.00000.mds", NULL},
        {"labels", 9, DATA "mds-labels/shard.00000.mds.zstd", NULL},
        {"packed", 6, "tests/golden/shards/packed/packed-00000.safetensors", NULL},
        {"plain", 7, DATA "npy/plain.u16", NULL},
        {"whole", 8, DATA "npy/plain.u16", NULL},
        {"int32", 10, DATA "megatron/int32.idx", DATA "megatron/int32.bin"},
        {"uint8", 10, DATA "megatron/uint8.idx", DATA "megatron/uint8.bin"}};
    int rc = file_make_dirs(dir);
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds && rc == 0; i++)
        rc = write_file(dir, seeds[i].name, seeds[i].mode, seeds[i].first,
                        seeds[i].second);
    return rc;
}

static int copy_file(const char *to, const char *from, const char *name)
{
    char *a = file_path(from, name), *b = file_path(to, name), *bytes = NULL;
    size_t n;
    int rc = a && b ? file_read(a, &bytes, &n) : E_MEMORY;
    if (rc == 0)
        rc = file_write(b, bytes, n);
    mem_free(a);
    mem_free(b);
    mem_free(bytes);
    return rc;
}

/* All but the long one, with which a run is slow. */
static int write_arrow(const char *dir)
{
    static const char from[] = "tests/golden/arrow";
    char *to = file_path(dir, "fuzz_arrow"), **names = NULL;
    int64_t n = 0;
    int rc = to ? file_make_dirs(to) : E_MEMORY;
    if (rc == 0)
        rc = file_list(from, &names, &n);
    for (int64_t i = 0; i < n && rc == 0; i++)
        if (strstr(names[i], ".arrow") && strcmp(names[i], "long.arrow") != 0)
            rc = copy_file(to, from, names[i]);
    file_list_free(names, n);
    mem_free(to);
    return rc;
}

/* Listings, an error, heads and URLs. */
static int write_replies(const char *dir)
{
    static const struct {
        const char *target, *name, *text;
    } seed[] = {
        {"list", "page",
         "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/"
         "2006-03-01/\"><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
         "<NextContinuationToken>1/+=&amp;</NextContinuationToken><Contents><Key>a/"
         "b%2Bc"
         "</Key><LastModified>2009-10-12T17:50:30.000Z</LastModified>"
         "<ETag>&quot;1-2&quot;</ETag><Size>7</Size></Contents><Contents><Key>a</Key>"
         "<Size>0</Size></Contents></ListBucketResult>"},
        {"list", "error",
         "<Error><Code>SlowDown</Code><Message>x</Message><Region>r</Region></Error>"},
        {"head", "part",
         "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/100\r\n"
         "Content-Length: 10\r\nETag: \"a\"\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
         "Retry-After: 3\r\nx-amz-checksum-crc64nvme: AAAAAAAAAAA=\r\n"
         "x-amz-checksum-type: FULL_OBJECT\r\nx-amz-mp-parts-count: 2\r\n"},
        {"head", "whole",
         "HTTP/1.1 200 OK\r\nContent-Length: 10\r\nETag: \"a\"\r\n"
         "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\nx-amz-request-id: 1\r\n"
         "x-amz-checksum-crc32c: AAAAAA==\r\nx-amz-checksum-crc32: AAAAAA==-2\r\n"},
        {"head", "hub",
         "HTTP/1.1 307 Temporary Redirect\r\nLocation: https://a.example/z\r\n"
         "Link: <https://a.example/b>; rel=\"next\"\r\nX-Linked-Etag: \"b\"\r\n"
         "X-Linked-Size: 9\r\nX-Repo-Commit: c\r\nx-amz-bucket-region: r\r\n"
         "x-amz-checksum-sha256: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\r\n"
         "x-amz-server-side-encryption: aws:kms\r\n"},
        {"url", "whole", "https://host:1/a%20b/?c=d&e#f"},
        {"url", "path", "/moved?here"},
        {"url", "host", "//b.example/x+y"},
    };
    int rc = 0;
    for (size_t i = 0; i < sizeof seed / sizeof *seed && rc == 0; i++) {
        struct buf path = {0};
        buf_addf(&path, "%s/fuzz_%s", dir, seed[i].target);
        rc = buf_check(&path);
        TRY_GOTO(rc, rc, next);
        TRY_GOTO(rc, file_make_dirs(path.p), next);
        buf_addf(&path, "/%s", seed[i].name);
        rc = buf_check(&path);
        if (rc == 0)
            rc = file_write(path.p, seed[i].text, strlen(seed[i].text));
    next:
        buf_drop(&path);
    }
    return rc;
}

/* A checkpoint as fuzz_target.c reads it: its config, and one header for all its files.
 */
static int write_target(const char *to, const char *name)
{
    struct buf from = {0}, head = {0}, out = {0};
    struct st_model m = {0};
    struct st_tensor *t = NULL;
    char *config = NULL, *path = NULL;
    size_t n;
    int rc;
    buf_addf(&from, "tests/golden/%s/model", name);
    TRY_GOTO(rc, buf_check(&from), out);
    TRY_GOTO(rc, st_model_open(&m, from.p), out);
    t = mem_zero((size_t)m.entries, sizeof *t);
    path = file_path(from.p, "config.json");
    TRY_GOTO(rc, t && path ? file_read(path, &config, &n) : E_MEMORY, out);
    for (int64_t i = 0; i < m.entries; i++)
        t[i] = *m.entry[i].tensor;
    TRY_GOTO(rc, st_header_write(&head, t, m.entries, NULL, 0, 8), out);
    buf_add(&out, config, n + 1);
    buf_add(&out, head.p + 8, head.len - 8);
    TRY_GOTO(rc, buf_check(&out), out);
    mem_free(path);
    path = file_path(to, name);
    rc = path ? file_write(path, out.p, out.len) : E_MEMORY;
out:
    st_model_close(&m);
    mem_free(t);
    mem_free(config);
    mem_free(path);
    buf_drop(&from);
    buf_drop(&head);
    buf_drop(&out);
    return rc;
}

static int write_targets(const char *dir)
{
    static const char *const names[] = {
        "target-qwen3",      "target-qwen3-tied", "target-qwen2",
        "target-llama",      "target-qwen3_5",    "target-qwen3_5-multimodal",
        "target-hybrid-wide"};
    char *to = file_path(dir, "fuzz_target");
    int rc = to ? file_make_dirs(to) : E_MEMORY;
    for (size_t i = 0; i < sizeof names / sizeof *names && rc == 0; i++)
        rc = write_target(to, names[i]);
    mem_free(to);
    return rc;
}

static int write_seeds(const char *dir)
{
    char *st = file_path(dir, "fuzz_safetensors"), *sh = file_path(dir, "fuzz_shard");
    char *records = file_path(dir, "fuzz_jsonl"),
         *files = file_path(dir, "fuzz_readers");
    int rc = st && sh && records && files ? write_records(records) : E_MEMORY;
    TRY_GOTO(rc, rc, out);
    TRY_GOTO(rc, write_files(files), out);
    TRY_GOTO(rc, write_replies(dir), out);
    TRY_GOTO(rc, write_arrow(dir), out);
    TRY_GOTO(rc, write_targets(dir), out);
    TRY_GOTO(rc, file_make_dirs(st), out);
    TRY_GOTO(rc, file_make_dirs(sh), out);
    TRY_GOTO(rc, write_types(st), out);
    TRY_GOTO(rc, write_run(st, 0, 1, 1), out);
    TRY_GOTO(rc, write_stream(sh, "plain", '0', 1), out);
    TRY_GOTO(rc, write_stream(sh, "repaired", '1', 1), out);
    TRY_GOTO(rc, write_stream(sh, "parts", '1', 2), out);
    char *name = file_path(sh, "name");
    rc = name ? file_write(name, "0s-1-of-2-00003.safetensors", 27) : E_MEMORY;
    mem_free(name);
out:
    mem_free(st);
    mem_free(sh);
    mem_free(records);
    mem_free(files);
    return rc;
}

int main(int argc, char **argv)
{
    if (argc != 2 || write_seeds(argv[1]) < 0) {
        fprintf(stderr, "fuzz_seeds: %s\n",
                argc == 2 ? err_text() : "one folder, please");
        return 1;
    }
    return 0;
}
