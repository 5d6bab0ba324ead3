/* SPDX-License-Identifier: MIT */
/* look_run.c - runs of shards: every checksum, the order, and what the rows add up to.
 *
 * The reader verifies; this counts on the way.  What is told at the end is true of
 * every byte that was read. */
#include "look_parts.h"

#include <inttypes.h>
#include <string.h>

#include "err.h"
#include "hash.h"
#include "shard_head.h"

struct run {
    struct look *look;
    const char *path;
    struct shard_reader *reader;
    int64_t shards, rows, first_row;
    uint64_t bytes;
    bool is_text, has_input; /* rows are tokens; metadata told what they are from */
    struct look_tokens tokens;
    struct look_taps taps;
};

static void tell_columns(struct facts *f, const struct st_header *h)
{
    facts_list(f, "columns");
    for (int64_t i = 0; i < h->tensors; i++) {
        const struct st_tensor *t = &h->tensor[i];
        bool fixed = shard_head_is_fixed(st_meta(h, "fixed"), t->name);
        facts_item(f);
        facts_part_text(f, "name", t->name, true);
        facts_part_text(f, "type", st_type_name(t->type), true);
        facts_part_shape(f, "shape", t->rank - 1, t->dim + 1);
        facts_part_text(f, "per", fixed ? "entry" : "row", false);
        facts_item_end(f);
    }
    facts_list_end(f);
}

void look_meta(struct facts *f, const struct st_header *h)
{
    facts_pairs(f, "metadata");
    for (int64_t i = 0; i < h->metas; i++)
        if (!shard_head_reserved(h->meta[2 * i]))
            facts_pair(f, h->meta[2 * i], h->meta[2 * i + 1]);
    facts_pairs_end(f);
}

/* ---- all rows ---- */

static int begin(struct run *r, const struct shard_view *v)
{
    struct facts *f = &r->look->facts;
    const char *name = st_meta(&v->header, "name");
    struct buf kind = {0};
    buf_addf(&kind, "%s rows, whole and verified", name);
    int rc = buf_check(&kind);
    facts_begin(f, r->path, name, buf_text(&kind));
    buf_drop(&kind);
    facts_text(f, "stage", st_meta(&v->header, "stage"));
    look_meta(f, &v->header);
    r->first_row = v->first_row;
    r->has_input = st_meta(&v->header, "input") != NULL;
    r->is_text = st_find(&v->header, "input_ids") != NULL;
    tell_columns(f, &v->header);
    return rc;
}

static int add_rows(struct run *r, const struct shard_view *v)
{
    for (int64_t i = 0; i < v->rows && r->is_text; i++) {
        struct row row;
        TRY(row_view(&row, v, i)); // names the shard itself
        int rc = look_tokens_add(&r->tokens, &row);
        if (rc == 0 && r->look->stats && row.aux)
            rc = look_taps_add(&r->taps, &row, v);
        if (rc < 0)
            return err_wrap(rc, "%s", v->name);
    }
    return 0;
}

static int add_shard(struct run *r, const struct shard_view *v)
{
    if (r->shards == 0)
        TRY(begin(r, v));
    r->shards++;
    r->rows += v->rows;
    r->bytes += v->header.header_bytes + v->header.data_bytes;
    int64_t total = shard_total_rows(r->reader);
    log_progress(r->look->log, r->rows, total < 0 ? 0 : total, "rows", NULL);
    return add_rows(r, v);
}

static int tell(struct run *r)
{
    struct facts *f = &r->look->facts;
    uint64_t digest;
    TRY(shard_digest(r->reader, &digest));
    facts_count(f, "shards", r->shards);
    facts_bytes(f, "bytes", r->bytes);
    facts_count(f, "first_row", r->first_row);
    facts_count(f, "rows", r->rows);
    if (r->is_text)
        look_tokens_tell(f, &r->tokens);
    if (r->taps.taps > 0)
        look_taps_tell(f, &r->taps);
    /* Known at the end only, so not among the first shard's metadata. */
    const char *input = shard_meta(r->reader, "input");
    if (input && !r->has_input)
        facts_text(f, "input_digest", input);
    facts_hash(f, "digest", digest);
    return 0;
}

static int read_all(struct run *r)
{
    struct shard_view v;
    int rc;
    while ((rc = shard_next(r->reader, &v)) > 0)
        TRY(add_shard(r, &v));
    TRY(rc);
    if (r->shards == 0)
        facts_begin(&r->look->facts, r->path, "empty",
                    "a run without rows, whole and verified");
    return tell(r);
}

/* ---- one row ---- */

static int find_row(struct run *r, int64_t row, struct shard_view *v)
{
    int rc;
    if (shard_total_rows(r->reader) >= 0)
        TRY(shard_seek(r->reader, row));
    while ((rc = shard_next(r->reader, v)) > 0)
        if (row >= v->first_row && row < v->first_row + v->rows)
            return 0;
    return rc < 0 ? rc : err_set(E_CONFIG, "%s: no row %" PRId64, r->path, row);
}

static int show_row(struct run *r)
{
    struct shard_view v;
    struct row row;
    TRY(find_row(r, r->look->row, &v));
    if (!st_find(&v.header, "input_ids"))
        return err_set(E_CONFIG, "%s: its rows are not tokens", r->path);
    TRY(row_view(&row, &v, r->look->row - v.first_row));
    TRY(look_tokens_add(&r->tokens, &row));
    facts_begin(&r->look->facts, r->path, "row", "one row");
    facts_count(&r->look->facts, "row", r->look->row);
    look_tokens_tell(&r->look->facts, &r->tokens);
    if (r->look->stats && row.aux) {
        TRY(look_taps_add(&r->taps, &row, &v));
        look_taps_tell(&r->look->facts, &r->taps);
    }
    return look_row(r->look, &row, shard_meta(r->reader, "files"));
}

int look_run(struct look *l, char *path)
{
    struct run r = {.look = l, .path = path};
    TRY(shard_open(&r.reader, &path, 1));
    shard_watch(r.reader, l->stop);
    int rc = l->row >= 0 ? show_row(&r) : read_all(&r);
    shard_close(r.reader);
    return rc;
}

int look_end(struct look *l, const char *path)
{
    struct shard_head h;
    struct file_map m;
    const void *data;
    struct facts *f = &l->facts;
    TRY(shard_head_map(&h, &m, &data, path));
    facts_begin(f, path, "end", "end file of a run");
    facts_text(f, "name", h.id.name);
    facts_text(f, "stage", h.id.stage);
    look_meta(f, &h.st);
    facts_count(f, "part", h.id.part);
    facts_count(f, "parts", h.id.parts);
    facts_count(f, "shards", h.id.index);
    facts_count(f, "first_row", h.id.first_row);
    facts_count(f, "rows", h.id.rows);
    facts_hash(f, "digest", h.xxh3);
    shard_head_drop(&h);
    file_unmap(&m);
    return 0;
}
