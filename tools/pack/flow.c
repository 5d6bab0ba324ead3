/* SPDX-License-Identifier: MIT */
/* flow.c - the three steps of par_stream. */
#include "flow.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "rng.h"
#include "tool.h"

/* What goes through the stream. */
struct batch {
    struct block block;
    struct documents documents;
    int64_t bytes; // raw input up to the end of the block
};

/* ---- reading ---- */

static struct input_file *file_now(const struct flow *f)
{
    return &f->input->at[f->file];
}

static int open_file(struct flow *f)
{
    const struct input_file *file = file_now(f);
    TRY(inflow_open(&f->in, file->path, file->shown));
    f->record = 0;
    const struct reader *reader = f->format;
    if (!reader)
        TRY(reader_of_content(&reader, &f->in));
    if (reader->open)
        TRY(reader->open(&f->state, &f->in, &f->rules));
    f->reader = reader;
    return 0;
}

static void drop_file(struct flow *f)
{
    if (f->reader && f->reader->close)
        f->reader->close(f->state);
    inflow_close(&f->in);
    f->reader = NULL;
    f->state = NULL;
}

/* What was parsed must be what was hashed before, or become known now for stdin. */
static int close_file(struct flow *f, bool aside)
{
    struct input_file *file = file_now(f);
    uint64_t xxh3 = inflow_xxh3(&f->in);
    int64_t size = f->in.raw;
    if (f->record == 0 && !aside && f->empty++ == 0)
        f->first_empty = f->file;
    drop_file(f);
    f->bytes += size;
    f->file++;
    if (strcmp(file->path, "-") == 0) {
        file->size = size;
        file->xxh3 = xxh3;
        return 0;
    }
    if (file->size == size && file->xxh3 == xxh3)
        return 0;
    return err_set(E_AGAIN, "%s changed while it was read", file->path);
}

static int read_batch(void *ctx, void *item)
{
    struct flow *f = ctx;
    struct batch *b = item;
    while (f->file < f->input->n) {
        if (tool_stop)
            return err_set(E_AGAIN, "stopped by a signal");
        if (!f->reader)
            TRY(open_file(f));
        b->block.reader = f->reader;
        b->block.file = f->file;
        b->block.record = f->record;
        b->block.index = f->index;
        b->block.aside = false;
        int got = f->reader->block(&b->block, f->state, &f->in);
        TRY(got);
        b->bytes = f->bytes + f->in.raw;
        f->record += b->block.records;
        f->index += b->block.records;
        if (got)
            return 1;
        TRY(close_file(f, b->block.aside));
    }
    return 0;
}

/* ---- parsing ---- */

static int parse_batch(void *ctx, void *item, int worker)
{
    const struct flow *f = ctx;
    struct batch *b = item;
    (void)worker;
    documents_clear(&b->documents);
    return b->block.reader->parse(&b->documents, &b->block, &f->rules);
}

/* ---- taking ---- */

static int refuse(struct flow *f, const struct documents *d, int64_t file,
                  const struct document *doc)
{
    const char *name = f->input->at[file].shown;
    const char *why = document_why(d, doc);
    f->ledger->rejected++;
    f->ledger->reject[doc->reject]++;
    if (f->strict)
        return err_set(E_FORMAT, "%s: record %" PRId64 ": %s", name, doc->record, why);
    if (f->ledger->rejected == 1)
        log_warn(f->log, "%s: record %" PRId64 " refused: %s (the first; -v tells all)",
                 name, doc->record, why);
    else
        log_more(f->log, "%s: record %" PRId64 ": %s", name, doc->record, why);
    return rejects_add(f->rejects, name, doc->record, doc->reject, why);
}

static struct flow_side *choose_side(struct flow *f, const int32_t *ids, int64_t n)
{
    if (f->valid <= 0)
        return &f->train_side;
    uint64_t words[] = {f->seed, hash_bytes(ids, (size_t)n * sizeof *ids)};
    struct rng rng = rng_new(rng_key(words, 2));
    return rng_real(&rng) < f->valid ? &f->valid_side : &f->train_side;
}

static int take_piece(struct flow *f, struct flow_side *side, const struct piece *p)
{
    int64_t skip = f->cut.unsupervised;
    struct ledger_worth worth = ledger_weigh(p->mask, p->n, skip);
    if (worth.supervised < f->min_supervised) {
        side->ledger->poor_pieces++;
        side->ledger->poor_tokens += p->n;
        return 0;
    }
    ledger_piece(side->ledger, p->n, worth);
    return window_add(&side->window, p, skip);
}

/* 1 when the document is new, or when nobody asks. */
static int is_new(struct flow *f, struct ledger_side *l, const int32_t *ids,
                  const uint8_t *mask, int64_t n)
{
    if (!f->dedup)
        return 1;
    int rc = seen_add(&f->seen, seen_key_of(ids, mask, n));
    l->double_documents += rc == 0;
    l->double_tokens += rc == 0 ? n : 0;
    return rc;
}

static int take_document(struct flow *f, const struct documents *d, int64_t file,
                         const struct document *doc)
{
    const int32_t *ids = document_ids(d, doc);
    const uint8_t *mask = document_mask(d, doc);
    struct flow_side *side = choose_side(f, ids, doc->n);
    int64_t taken = 0;
    ledger_document(side->ledger, doc->n, doc->unmasked);
    int fresh = is_new(f, side->ledger, ids, mask, doc->n);
    if (fresh <= 0)
        return fresh;
    cut_begin(&f->cut, doc->n);
    while (cut_next(&f->cut)) {
        int64_t at = f->cut.at;
        struct piece p = {{file, doc->record, at}, f->cut.n, ids + at, mask + at};
        TRY(take_piece(f, side, &p));
        taken += p.n;
    }
    if (taken < doc->n) {
        side->ledger->long_documents++;
        side->ledger->long_tokens += doc->n - taken;
    }
    return 0;
}

int flow_take(struct flow *f, const struct documents *d, int64_t file)
{
    for (int64_t i = 0; i < d->n; i++) {
        const struct document *doc = &d->at[i];
        f->ledger->records++;
        TRY(doc->reject ? refuse(f, d, file, doc) : take_document(f, d, file, doc));
    }
    return 0;
}

static int take_batch(void *ctx, void *item)
{
    struct flow *f = ctx;
    struct batch *b = item;
    TRY(flow_take(f, &b->documents, b->block.file));
    f->ledger->bytes = b->bytes;
    log_progress(f->log, b->bytes, input_bytes(f->input), "bytes", NULL);
    return 0;
}

/* ---- all of it ---- */

static const struct par_stages stages = {read_batch, parse_batch, take_batch};

static int end_side(struct flow_side *side)
{
    TRY(window_end(&side->window));
    side->ledger->rows = side->emit.rows;
    return 0;
}

int flow_run(struct flow *f, struct par *p)
{
    int n = 2 * par_threads(p) + 1;
    struct batch *batch = mem_zero((size_t)n, sizeof *batch);
    void **item = mem_zero((size_t)n, sizeof *item);
    int rc = batch && item ? 0 : E_MEMORY;
    for (int i = 0; rc == 0 && i < n; i++)
        item[i] = &batch[i];
    if (rc == 0)
        rc = par_stream(p, &stages, f, item, n);
    for (int i = 0; batch && i < n; i++) {
        buf_drop(&batch[i].block.bytes);
        documents_drop(&batch[i].documents);
    }
    mem_free(batch);
    mem_free(item);
    drop_file(f);
    f->ledger->empty = f->empty;
    if (rc == 0 && f->empty > 0)
        log_warn(f->log, "%s: no records in this file (%" PRId64 " such files)",
                 f->input->at[f->first_empty].path, f->empty);
    if (rc == 0)
        rc = end_side(&f->train_side);
    if (rc == 0 && f->valid > 0)
        rc = end_side(&f->valid_side);
    return rc;
}
