/* SPDX-License-Identifier: MIT */
/* upload_large.c - files in parts, all of them in one row of parts.
 *
 *     POST KEY?uploads                    begin (upload_part.c),
 *     PUT KEY?partNumber=N&uploadId=ID    the parts, in any order,
 *     POST KEY?uploadId=ID                the end (upload_end.c): a list of the parts,
 *     DELETE KEY?uploadId=ID              or, after a failure that stays, none of it
 *
 * Whoever takes a file's first part begins it, and whoever ends its last one ends it,
 * so the end of one file overlaps with the beginning of the next. */
#include <string.h>

#include "err.h"
#include "mem.h"
#include "tool.h"
#include "upload_parts.h"

enum { PARTS_MAX = 10000 }; // of S3

struct row {
    struct upload *u;
    struct upload_file *file;
    int64_t files, parts;
    upload_ended *ended;
};

/* ---- the beginning of a file ---- */

static void forget_parts(struct upload_file *f)
{
    for (int64_t i = 0; i < f->n; i++)
        f->at[i].there = false;
}

/* Under the file's lock. */
static int open_file(struct upload_file *f, struct upload_worker *w)
{
    if (f->n > PARTS_MAX)
        return err_set(E_CONFIG,
                       "%s: %lld parts, but S3 allows %d; use a larger --part-size",
                       f->it->path, (long long)f->n, PARTS_MAX);
    if (!(f->at = mem_zero((size_t)f->n, sizeof *f->at)))
        return E_MEMORY;
    int rc = f->fresh ? 0 : upload_resume(f, w);
    TRY(rc);
    f->resumed = rc > 0;
    if (f->resumed)
        return 0;
    forget_parts(f);
    return upload_begin(f, w);
}

static void fail(struct upload_file *f, int rc)
{
    if (f->code == 0) {
        f->code = rc;
        f->why = mem_text(err_text());
    }
}

/* Begins the file if nobody has; false: it has failed. */
static bool enter(struct upload_file *f, struct upload_worker *w)
{
    pthread_mutex_lock(&f->lock);
    if (!f->begun) {
        int rc = open_file(f, w);
        f->begun = true;
        if (rc < 0)
            fail(f, rc);
    }
    bool good = f->code == 0;
    pthread_mutex_unlock(&f->lock);
    return good;
}

/* ---- its end ---- */

/* One of its parts has ended, with 1 if it was there.  True: that was the last. */
static bool leave(struct upload_file *f, int64_t part, int rc)
{
    pthread_mutex_lock(&f->lock);
    if (rc < 0)
        fail(f, rc);
    if (rc > 0)
        f->kept += upload_part_bytes(f, part);
    bool last = --f->left == 0;
    pthread_mutex_unlock(&f->lock);
    return last;
}

/* What trying again, or other keys, may mend is left to the next run. */
static bool may_mend(int code)
{
    return tool_stopped() || code == E_REMOTE || code == E_ACCESS;
}

/* What an earlier run had begun does not go with this one's: none of it counts. */
static void begin_anew(struct upload_file *f)
{
    f->again = true;
    f->u->sent(f->u->user, -f->kept, true);
    f->u->sent(f->u->user, f->kept - f->it->size, false);
}

static int end_file(const struct row *row, struct upload_file *f, int worker)
{
    int rc = f->code < 0 ? err_copy(f->code, f->why ? f->why : "out of memory")
                         : upload_complete(f, worker);
    bool gone = rc < 0 && !may_mend(rc);
    if (gone && f->id)
        upload_abort(f, &f->u->worker[worker]);
    mem_free(f->id);
    mem_free(f->at);
    f->id = NULL;
    f->at = NULL;
    if (!gone || !f->resumed || f->code < 0)
        return row->ended(f->u->user, f->it, rc);
    begin_anew(f);
    return 0;
}

/* ---- the row of all parts ---- */

static struct upload_file *file_of(const struct row *row, int64_t part)
{
    int64_t low = 0, high = row->files - 1;
    while (low < high) {
        int64_t mid = (low + high + 1) / 2;
        if (row->file[mid].first <= part)
            low = mid;
        else
            high = mid - 1;
    }
    return &row->file[low];
}

static int do_parts(void *ctx, int64_t first, int64_t last, int worker)
{
    const struct row *row = ctx;
    for (int64_t i = first; i < last; i++) {
        struct upload_file *f = file_of(row, i);
        struct upload_worker *w = &row->u->worker[worker];
        int rc = enter(f, w) ? upload_send_part(f, i - f->first, w) : 0;
        if (tool_stopped())
            return err_set(E_AGAIN, "stopped by a signal");
        if (leave(f, i - f->first, rc))
            TRY(end_file(row, f, worker));
    }
    return 0;
}

static int open_row(struct row *row, struct upload_item *const *item, int64_t n,
                    bool fresh)
{
    if (!(row->file = mem_zero((size_t)n, sizeof *row->file)))
        return E_MEMORY;
    for (; row->files < n; row->files++) {
        struct upload_file *f = &row->file[row->files];
        *f = (struct upload_file){
            .it = item[row->files], .u = row->u, .first = row->parts, .fresh = fresh};
        f->n = f->left = (f->it->size + row->u->part - 1) / row->u->part;
        row->parts += f->n;
        pthread_mutex_init(&f->lock, NULL);
    }
    return 0;
}

static void close_row(struct row *row)
{
    for (int64_t i = 0; i < row->files; i++) {
        struct upload_file *f = &row->file[i];
        mem_free(f->id);
        mem_free(f->at);
        mem_free(f->why);
        pthread_mutex_destroy(&f->lock);
    }
    mem_free(row->file);
}

/* Sends a row of files; those that begin anew stay, *n of them. */
static int send_row(struct upload *u, struct upload_item **item, int64_t *n, bool fresh,
                    upload_ended *ended)
{
    struct row row = {.u = u, .ended = ended};
    TRY(open_row(&row, item, *n, fresh));
    int rc = par_for(u->par, row.parts, 1, do_parts, &row);
    *n = 0;
    for (int64_t i = 0; i < row.files; i++)
        if (row.file[i].again)
            item[(*n)++] = row.file[i].it;
    close_row(&row);
    return rc;
}

int upload_large(struct upload *u, struct upload_item *const *item, int64_t n,
                 upload_ended *ended)
{
    if (n == 0)
        return 0;
    struct upload_item **left = mem_alloc((size_t)n * sizeof(struct upload_item *));
    if (!left)
        return E_MEMORY;
    memcpy(left, item, (size_t)n * sizeof(struct upload_item *));
    int rc = send_row(u, left, &n, false, ended);
    if (rc == 0 && n > 0)
        rc = send_row(u, left, &n, true, ended);
    mem_free(left);
    return rc;
}
