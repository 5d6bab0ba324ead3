/* SPDX-License-Identifier: MIT */
/* metrics.c - sums, their means, and records of them.
 *
 * A log is cut back by reading it: records up to the step of the checkpoint stay, in
 * one atomic rewrite, and what follows (a line cut short included) will be written
 * again with the same bytes. */
#include "metrics.h"

#include "anchor.h"
#include "err.h"
#include "file.h"
#include "json.h"
#include "mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void metrics_add(struct metrics *m, const int32_t *hit, const int32_t *row,
                 int64_t count, int64_t blocks, int64_t block, int32_t *accepted,
                 int32_t *labelled)
{
    anchor_accepted(accepted, labelled, hit, row, count, blocks, block);
    for (int64_t j = 0; j < blocks; j++)
        m->accepted += accepted[j];
    m->blocks += (double)blocks;
    for (int64_t i = 0; i < count; i++) {
        m->hit[row[i] % block] += hit[i];
        m->seen[row[i] % block] += 1;
    }
}

double metrics_loss(const struct metrics *m)
{
    return m->loss / m->weight;
}

double metrics_accuracy(const struct metrics *m)
{
    double hit = 0, seen = 0;
    for (int k = 0; k < RECIPE_BLOCK_MAX; k++) {
        hit += m->hit[k];
        seen += m->seen[k];
    }
    return hit / seen;
}

double metrics_acceptance(const struct metrics *m)
{
    return m->accepted / m->blocks + 1;
}

void metrics_say(char *out, int64_t size, const struct metrics *m)
{
    snprintf(out, (size_t)size, "loss %.4f accuracy %.3f acceptance %.3f",
             metrics_loss(m), metrics_accuracy(m), metrics_acceptance(m));
}

/* ---- the log ---- */

/* keep says how many bytes of a log speak of steps up to `step`. */
static size_t keep(const char *text, size_t size, int64_t step)
{
    size_t at = 0;
    while (at < size) {
        const char *end = memchr(text + at, '\n', size - at);
        struct json *line;
        int64_t n;
        if (!end || json_parse(&line, text + at, (size_t)(end - text) - at) < 0)
            break;
        int rc = json_need_int(line, "step", &n);
        json_free(line);
        if (rc < 0 || n > step)
            break;
        at = (size_t)(end - text) + 1;
    }
    return at;
}

int metrics_open(struct metrics_log *l, const char *path, int64_t step, int64_t block)
{
    *l = (struct metrics_log){.fd = -1, .path = path, .block = block};
    if (!path)
        return 0;
    char *text = NULL;
    size_t size = 0, kept = 0;
    if (step > 0 && file_exists(path)) {
        TRY(file_read(path, &text, &size));
        kept = keep(text, size, step);
    }
    int rc = file_write(path, text, kept);
    mem_free(text);
    if (rc < 0)
        return rc;
    l->fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    return l->fd < 0 ? err_errno(errno, "%s: opening", path) : 0;
}

static void add_sums(struct json_out *o, const struct metrics_log *l,
                     const struct metrics *m)
{
    json_add_real(o, "loss", metrics_loss(m));
    json_add_real(o, "accuracy", metrics_accuracy(m));
    json_add_real(o, "acceptance", metrics_acceptance(m));
    json_open_array(o, "slots");
    for (int64_t k = 1; k < l->block; k++)
        json_add_real(o, NULL, m->hit[k] / m->seen[k]);
    json_close_array(o);
    json_add_real(o, "weight", m->weight);
    json_add_int(o, "blocks", (int64_t)m->blocks);
    json_add_int(o, "rows", (int64_t)m->rows);
    json_add_int(o, "tokens", (int64_t)m->tokens);
}

/* put writes the line whole. */
static int put(struct metrics_log *l, struct json_out *o)
{
    json_close_object(o);
    buf_addc(o->to, '\n');
    int rc = buf_check(o->to);
    if (rc == 0)
        rc = file_put(l->fd, o->to->p, o->to->len, l->path);
    buf_drop(o->to);
    return rc;
}

int metrics_step(struct metrics_log *l, const struct metrics_record *r,
                 const struct metrics *m)
{
    struct buf line = {0};
    struct json_out o = {.to = &line};
    if (l->fd < 0)
        return 0;
    json_open_object(&o, NULL);
    json_add_text(&o, "kind", "step");
    json_add_int(&o, "step", r->step);
    json_add_int(&o, "epoch", r->epoch);
    json_add_int(&o, "next_row", r->row);
    json_add_real(&o, "rate", r->rate);
    json_add_real(&o, "norm", r->norm);
    add_sums(&o, l, m);
    return put(l, &o);
}

int metrics_valid(struct metrics_log *l, int64_t step, const struct metrics *m)
{
    struct buf line = {0};
    struct json_out o = {.to = &line};
    if (l->fd < 0)
        return 0;
    json_open_object(&o, NULL);
    json_add_text(&o, "kind", "valid");
    json_add_int(&o, "step", step);
    add_sums(&o, l, m);
    return put(l, &o);
}

int metrics_sync(struct metrics_log *l)
{
    if (l->fd >= 0 && fsync(l->fd) < 0)
        return err_errno(errno, "%s: writing", l->path);
    return 0;
}

void metrics_close(struct metrics_log *l)
{
    if (l->fd >= 0)
        close(l->fd);
    l->fd = -1;
}
