/* SPDX-License-Identifier: MIT */
/* fuzz_arrow.c - any bytes as an Arrow stream or file: documents or refusals that keep
 * what document.h promises, or an error that names a record; of a file that passes, all
 * bytes are read.  Three parts of the records are all of them. */
#include "../tools/pack/read_arrow.h"

#include <string.h>

#include "err.h"
#include "fuzz.h"

enum { VOCAB = 300, PARTS = 3 };

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

static int64_t parse(const struct block *b, int part, int parts)
{
    const struct read_rules rules = {.vocab = VOCAB, .part = part, .parts = parts};
    struct documents d = {0};
    must(arrow_parse(&d, b, &rules) == 0);
    check(&d);
    int64_t n = d.n;
    documents_drop(&d);
    return n;
}

static int read_blocks(void *state, struct inflow *in)
{
    struct block b = {0};
    int rc;
    while ((rc = arrow_block(&b, state, in)) > 0) {
        int64_t n = 0;
        for (int part = 0; part < PARTS; part++)
            n += parse(&b, part, PARTS);
        must(n == b.records && parse(&b, 0, 1) == n);
        b.record += b.records;
        b.index += b.records;
    }
    buf_drop(&b.bytes);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct read_rules rules = {.vocab = VOCAB, .parts = 1};
    struct inflow in;
    void *state = NULL;
    must(inflow_open(&in, fuzz_file(data, size), "fuzz") == 0);
    int rc = arrow_open(&state, &in, &rules);
    if (rc == 0)
        rc = read_blocks(state, &in);
    arrow_close(state);
    must(rc == 0 || rc == E_FORMAT || rc == E_MEMORY);
    must(rc == 0 || strstr(err_text(), "fuzz"));
    must(rc < 0 || in.raw == (int64_t)size);
    inflow_close(&in);
    return 0;
}
