/* SPDX-License-Identifier: MIT */
/* fuzz_readers.c - any bytes as pack's binary input: documents or refusals that keep
 * what document.h promises, or an error; all of the file is read where it is whole.
 *
 * The first byte chooses format and rules (see `modes`); of Megatron's pairs the next
 * two are the length of X.idx, which X.bin follows. */
#include <stdint.h>
#include <string.h>

#include "../tools/pack/reader.h"
#include "err.h"
#include "file.h"
#include "fuzz.h"

enum { VOCAB = 300 };

static const struct {
    const char *format;
    enum ints_type dtype;
    int64_t separator;
} modes[] = {{"npy", INTS_NONE, 0},
             {"npy", INTS_NONE, READ_UNSAID},
             {"npy", INTS_NONE, READ_WHOLE},
             {"tar", INTS_NONE, READ_UNSAID},
             {"mds", INTS_I64, READ_UNSAID},
             {"mds", INTS_NONE, READ_UNSAID},
             {"packed", INTS_NONE, READ_UNSAID},
             {"raw", INTS_U16, 0},
             {"raw", INTS_I64, READ_WHOLE},
             {"auto", INTS_U8, 0},
             {"megatron", INTS_NONE, READ_UNSAID}};
enum { MODES = sizeof modes / sizeof *modes, MEGATRON = MODES - 1 };

static void check(const struct documents *d)
{
    int64_t at = 0;
    for (int64_t i = 0; i < d->n; i++) {
        const struct document *doc = &d->at[i];
        must(doc->at == at);
        at += doc->n;
        must(doc->reject == REJECT_NONE || *document_why(d, doc));
        must((doc->n > 0) == (doc->reject == REJECT_NONE));
        for (int64_t t = 0; t < doc->n; t++)
            must(document_ids(d, doc)[t] >= 0 && document_ids(d, doc)[t] < VOCAB &&
                 document_mask(d, doc)[t] <= 1);
    }
}

static int read_blocks(const struct reader *r, void *state, struct inflow *in,
                       const struct read_rules *rules)
{
    struct block b = {.reader = r};
    int rc = 0;
    while (rc == 0 && (rc = r->block(&b, state, in)) > 0) {
        struct documents d = {0};
        must(r->parse(&d, &b, rules) == 0);
        must(d.n <= b.records);
        check(&d);
        documents_drop(&d);
        b.record += b.records;
        b.index += b.records;
        rc = 0;
    }
    buf_drop(&b.bytes);
    return rc;
}

static void read_file(const char *path, size_t mode, size_t size)
{
    const struct read_rules rules = {.vocab = VOCAB,
                                     .parts = 1,
                                     .dtype = modes[mode].dtype,
                                     .separator = modes[mode].separator};
    const struct reader *r;
    struct inflow in;
    void *state = NULL;
    must(inflow_open(&in, path, "fuzz") == 0);
    must(reader_named(&r, modes[mode].format) == 0);
    int rc = r ? 0 : reader_of_content(&r, &in);
    if (rc == 0 && r->open)
        rc = r->open(&state, &in, &rules);
    if (rc == 0) {
        rc = read_blocks(r, state, &in, &rules);
        if (r->close)
            r->close(state);
    }
    must(rc == 0 || rc == E_FORMAT || rc == E_MEMORY || rc == E_USAGE);
    must(rc < 0 || in.raw == (int64_t)size);
    inflow_close(&in);
}

static void write_file(const char *path, const uint8_t *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    must(f && fwrite(data, 1, n, f) == n && fclose(f) == 0);
}

/* Files with names, for the pair knows itself by them. */
static void read_pair(const uint8_t *data, size_t size)
{
    static char bin[60], idx[60];
    if (!*bin) {
        snprintf(bin, sizeof bin, "/dev/shm/fuzz-%ld.bin", (long)getpid());
        snprintf(idx, sizeof idx, "/dev/shm/fuzz-%ld.idx", (long)getpid());
    }
    if (size < 2)
        return;
    size_t n = data[0] + 256u * data[1];
    n = n < size - 2 ? n : size - 2;
    write_file(idx, data + 2, n);
    write_file(bin, data + 2 + n, size - 2 - n);
    read_file(bin, MEGATRON, size - 2 - n);
    unlink(bin);
    unlink(idx);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t mode = size > 0 ? data[0] % MODES : 0;
    if (size == 0)
        return 0;
    if (mode == MEGATRON)
        read_pair(data + 1, size - 1);
    else
        read_file(fuzz_file(data + 1, size - 1), mode, size - 1);
    return 0;
}
