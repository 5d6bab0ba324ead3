/* SPDX-License-Identifier: MIT */
/* fuzz_jsonl.c - any bytes as pack's input: blocks hold all of it, records are parsed
 * or refused, and the fast way through a record agrees with the strict one. */
#include "../tools/pack/read_jsonl.h"
#include "../tools/pack/scan.h"

#include <string.h>

#include "err.h"
#include "fuzz.h"

enum { VOCAB = 1000 };

static void compare(const char *line, size_t n)
{
    struct documents fast = {0}, slow = {0};
    int taken = scan_line(&fast, line, n, 0, VOCAB);
    must(taken >= 0 && jsonl_line(&slow, line, n, 0, VOCAB) == 0);
    if (taken) {
        const struct document *f = fast.at, *s = slow.at;
        must(s->reject == REJECT_NONE && f->n == s->n);
        must(memcmp(fast.ids.p, slow.ids.p, (size_t)f->n * sizeof(int32_t)) == 0);
        must(memcmp(fast.mask.p, slow.mask.p, (size_t)f->n) == 0);
    }
    documents_drop(&fast);
    documents_drop(&slow);
}

static void check(const struct documents *d)
{
    for (int64_t i = 0; i < d->n; i++) {
        const struct document *doc = &d->at[i];
        must(doc->reject == REJECT_NONE || *document_why(d, doc));
        must((doc->n > 0) == (doc->reject == REJECT_NONE));
        for (int64_t t = 0; t < doc->n; t++)
            must(document_ids(d, doc)[t] >= 0 && document_ids(d, doc)[t] < VOCAB &&
                 document_mask(d, doc)[t] <= 1);
    }
}

static void read_file(const uint8_t *data, size_t size)
{
    const struct reader *reader;
    const struct read_rules rules = {.vocab = VOCAB, .parts = 1};
    struct inflow in;
    struct block b = {0};
    int64_t lines = 0;
    must(inflow_open(&in, fuzz_file(data, size), "fuzz") == 0);
    int rc = reader_of_content(&reader, &in);
    if (rc == 0 && strcmp(reader->name, "jsonl") != 0) { // fuzz_readers, fuzz_arrow
        inflow_close(&in);
        return;
    }
    while (rc == 0 && (rc = reader->block(&b, NULL, &in)) > 0) {
        struct documents d = {0};
        must(reader->parse(&d, &b, &rules) == 0);
        must(d.n <= b.records);
        check(&d);
        documents_drop(&d);
        lines += b.records;
        rc = 0;
    }
    must(rc == 0 || rc == E_FORMAT || rc == E_MEMORY);
    must(rc < 0 || in.raw == (int64_t)size);
    buf_drop(&b.bytes);
    inflow_close(&in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf line = {0};
    buf_add(&line, data, size);
    must(!line.failed);
    const char *end = memchr(buf_text(&line), '\n', line.len);
    size_t n = end ? (size_t)(end - line.p) : line.len;
    if (n > 0)
        compare(line.p, n);
    buf_drop(&line);
    read_file(data, size);
    return 0;
}
