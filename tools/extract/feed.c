/* SPDX-License-Identifier: MIT */
/* feed.c - rows out of shards; folders are sought, streams are read and dropped. */
#include "feed.h"

#include "err.h"
#include "hash.h"

/* copy_digest copies one of the first shard's metadata; "" when it may be absent. */
static int copy_digest(char out[HASH_TEXT], const struct feed *f, const char *key,
                       bool must)
{
    uint64_t value;
    const char *text = st_meta(&f->view.header, key);
    if (!text)
        return must ? err_set(E_FORMAT, "%s: no %s", f->view.name, key) : 0;
    TRY(hash_parse(text, &value));
    hash_text(out, value);
    return 0;
}

int feed_open(struct feed *f, char *const *path, int paths,
              const volatile sig_atomic_t *stop)
{
    *f = (struct feed){0};
    TRY(shard_open(&f->reader, path, paths));
    shard_watch(f->reader, stop);
    int rc = shard_next(f->reader, &f->view);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return err_set(E_FORMAT, "%s: the input has no rows", path[0]);
    f->loaded = true;
    f->next = f->view.first_row;
    int64_t rows = shard_total_rows(f->reader);
    f->stop = rows < 0 ? -1 : f->next + rows;

    struct row row;
    TRY(row_view(&row, &f->view, 0));
    if (row.aux)
        return err_set(E_FORMAT, "%s: holds hidden states already, not packed rows",
                       f->view.name);
    f->length = row.text.length;
    TRY(copy_digest(f->opening, f, "header_xxh3", true));
    return copy_digest(f->source, f, "input", false);
}

int feed_part(struct feed *f, int64_t i, int64_t n)
{
    int64_t rows = shard_total_rows(f->reader);
    if (rows < 0)
        return err_set(E_USAGE, "a stream has no parts: its rows are not known");
    int64_t first = f->next;
    f->parted = true;
    f->stop = first + rows * (i + 1) / n;
    return feed_from(f, first + rows * i / n);
}

int feed_from(struct feed *f, int64_t row)
{
    f->next = row;
    if (shard_total_rows(f->reader) < 0)
        return 0;
    if (row >= f->view.first_row && row < f->view.first_row + f->view.rows)
        return 0;
    f->loaded = false;
    return shard_seek(f->reader, row);
}

/* load reads shards until one holds the next row: 1, or 0 when there is none. */
static int load(struct feed *f)
{
    while (!f->loaded || f->next >= f->view.first_row + f->view.rows) {
        int64_t end = f->loaded ? f->view.first_row + f->view.rows : f->next;
        int rc = shard_next(f->reader, &f->view);
        f->loaded = rc == 1;
        if (rc == 0 && f->next > end)
            return err_set(E_CONFIG, "no row %lld: the stream ends with row %lld",
                           (long long)f->next, (long long)end - 1);
        if (rc < 1)
            return rc;
    }
    return 1;
}

int feed_next(struct feed *f, struct row *out)
{
    if (f->parted && f->next >= f->stop)
        return 0;
    int rc = load(f);
    if (rc < 1)
        return rc;
    TRY(row_view(out, &f->view, f->next - f->view.first_row));
    f->next++;
    return 1;
}

void feed_close(struct feed *f)
{
    shard_close(f->reader);
    *f = (struct feed){0};
}
