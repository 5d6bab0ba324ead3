/* SPDX-License-Identifier: MIT */
/* emit.c - the columns of a packed run (docs/shard.md). */
#include "emit.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "tool.h"

enum { IDS, MASK, DOC, SOURCE, COLUMNS };

int emit_open(struct emit *e, const char *dir, const struct emit_of *of)
{
    const char *meta[] = {"version", TOOL_VERSION, "options", of->options,
                          "split",   of->split,    "input",   of->input};
    struct shard_options o = {
        .name = "packed",
        .stage = "pack",
        .part = of->part,
        .parts = of->parts,
        .column = {[IDS] = {"input_ids", ST_I32, 1, {of->length}, false},
                   [MASK] = {"loss_mask", ST_U8, 1, {of->length}, false},
                   [DOC] = {"doc_ids", ST_I32, 1, {of->length}, false},
                   [SOURCE] = {"source", ST_I64, 1, {3}, true}},
        .columns = COLUMNS,
        .meta = meta,
        .metas = of->input ? 4 : 3};
    *e = (struct emit){.length = of->length, .streams = !of->input};
    int rc = shard_create(&e->writer, dir, &o, &e->have);
    e->whole = rc == 1;
    return rc < 0 ? rc : 0;
}

/* Writes a row's tokens to where its columns lie; doc_ids count from `doc`. */
static void fill(const struct emit *e, void *const column[], const struct piece *piece,
                 int64_t n, int64_t doc)
{
    int32_t *ids = column[IDS], *docs = column[DOC];
    uint8_t *mask = column[MASK];
    int64_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const struct piece *p = &piece[i];
        memcpy(ids + at, p->ids, (size_t)p->n * sizeof *ids);
        memcpy(mask + at, p->mask, (size_t)p->n);
        for (int64_t t = 0; t < p->n; t++)
            docs[at + t] = (int32_t)(doc + i);
        at += p->n;
    }
    size_t padding = (size_t)(e->length - at);
    memset(ids + at, 0, padding * sizeof *ids);
    memset(mask + at, 0, padding);
    memset(docs + at, 0xff, padding * sizeof *docs); // -1
}

static int write_row(struct emit *e, const struct piece *piece, int64_t n)
{
    void *column[SHARD_COLUMNS];
    int64_t doc = 0;
    TRY(shard_row(e->writer, column));
    for (int64_t i = 0; i < n; i++) {
        int64_t entry = shard_fixed(e->writer, SOURCE, piece[i].source, 1);
        TRY((int)(entry < 0 ? entry : 0));
        if (i == 0)
            doc = entry;
    }
    fill(e, column, piece, n, doc);
    return 0;
}

/* Compares a row with the one that an earlier run has left, if that is in reach. */
static int compare_row(const struct emit *e, const struct piece *piece, int64_t n)
{
    const struct shard_view *v = shard_resumed(e->writer);
    const struct st_tensor *t;
    if (!v || e->rows < v->first_row)
        return 0;
    const int32_t *ids = shard_column(v, "input_ids", &t);
    const uint8_t *mask = shard_column(v, "loss_mask", &t);
    int64_t at = (e->rows - v->first_row) * e->length;
    for (int64_t i = 0; i < n; i++) {
        const struct piece *p = &piece[i];
        if (memcmp(ids + at, p->ids, (size_t)p->n * sizeof *ids) != 0 ||
            memcmp(mask + at, p->mask, (size_t)p->n) != 0)
            return err_set(E_CONFIG, "%s: row %" PRId64 " was packed from other input",
                           v->name, e->rows);
        at += p->n;
    }
    return 0;
}

int emit_row(struct emit *e, const struct piece *piece, int64_t n)
{
    if (e->writer)
        TRY(e->rows < e->have ? compare_row(e, piece, n) : write_row(e, piece, n));
    e->rows++;
    return 0;
}

int emit_finish(struct emit *e, const char *input, const char *files)
{
    struct shard_writer *w = e->writer;
    if (!w)
        return 0;
    int rc = e->rows < e->have
                 ? err_set(E_CONFIG,
                           "the output has %" PRId64 " rows, the input gives "
                           "%" PRId64 ": it was packed from other input",
                           e->have, e->rows)
                 : 0;
    if (rc == 0 && e->streams) // else it is in every header
        rc = shard_end_meta(w, "input", input);
    if (rc == 0)
        rc = shard_end_meta(w, "files", files);
    if (rc == 0)
        rc = shard_flush(w);
    e->bytes = shard_written(w);
    if (rc < 0) {
        emit_abandon(e);
        return rc;
    }
    e->writer = NULL;
    return shard_finish(w);
}

void emit_abandon(struct emit *e)
{
    if (e->writer)
        shard_abandon(e->writer);
    e->writer = NULL;
}
