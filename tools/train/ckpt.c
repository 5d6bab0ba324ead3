/* SPDX-License-Identifier: MIT */
/* ckpt.c - the folder of a run: newest, save, rotate.
 *
 * A checkpoint is written as step-N.tmp/ and renamed, so that a folder under its final
 * name is whole; one is removed by renaming it away first.  The newest is the one with
 * the highest number: RUN/latest is written after it, for people and scripts, and is
 * put right when an interruption fell between the two. */
#include "ckpt.h"

#include "ckpt_file.h"
#include "err.h"
#include "file.h"
#include "mem.h"
#include "num.h"
#include "recipe.h"
#include "step.h"
#include "tool.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { METAS = 12, TEXT = 32 };

/* ---- what is in a run's folder ---- */

static bool is_leftover(const char *name)
{
    size_t n = strlen(name);
    return n > 4 && strncmp(name, "step-", 5) == 0 && strcmp(name + n - 4, ".tmp") == 0;
}

static int remove_named(const char *run, const char *name)
{
    char *path = file_path(run, name);
    int rc = path ? file_remove_tree(path) : E_MEMORY;
    mem_free(path);
    return rc;
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* list_steps gives the numbers of all checkpoints, ascending (mem_free), and removes
 * what an interruption left. */
static int list_steps(const char *run, int64_t **out, int64_t *n)
{
    struct buf step = {0};
    struct dirent *e;
    int rc = 0;
    DIR *dir = opendir(run);
    if (!dir)
        return err_errno(errno, "cannot list %s", run);
    while (errno = 0, rc == 0 && (e = readdir(dir))) {
        int64_t s = step_number(e->d_name);
        if (s >= 0)
            buf_add(&step, &s, sizeof s);
        else if (is_leftover(e->d_name))
            rc = remove_named(run, e->d_name);
    }
    if (rc == 0 && errno)
        rc = err_errno(errno, "cannot list %s", run);
    closedir(dir);
    if (rc == 0)
        rc = buf_check(&step);
    if (rc < 0) {
        buf_drop(&step);
        return rc;
    }
    *n = (int64_t)(step.len / sizeof(int64_t));
    *out = (int64_t *)(void *)step.p;
    if (*n)
        qsort(*out, (size_t)*n, sizeof **out, by_number);
    return 0;
}

/* note writes one line to RUN/NAME unless it says so already.  With `keep` another line
 * stays and the result is 1. */
static int note(const struct ckpt *c, const char *name, const char *line, bool keep)
{
    char *was = NULL, *path = file_path(c->run, name);
    struct buf text = {0};
    size_t size;
    buf_addf(&text, "%s\n", line);
    int rc = path ? buf_check(&text) : E_MEMORY;
    if (rc == 0 && file_exists(path))
        rc = file_read(path, &was, &size);
    if (rc == 0 && was && strcmp(was, text.p) != 0 && keep)
        rc = 1;
    else if (rc == 0 && (!was || strcmp(was, text.p) != 0))
        rc = file_write(path, text.p, text.len);
    buf_drop(&text);
    mem_free(was);
    mem_free(path);
    return rc;
}

static int name_latest(const struct ckpt *c)
{
    char name[STEP_NAME];
    return note(c, "latest", step_name(name, c->step), false);
}

/* drop_step removes a checkpoint; under its final name it is whole to the end. */
static int drop_step(const struct ckpt *c, int64_t step)
{
    char name[STEP_NAME], gone[STEP_NAME + 4];
    snprintf(gone, sizeof gone, "%s.tmp", step_name(name, step));
    char *from = file_path(c->run, name), *to = file_path(c->run, gone);
    int rc = from && to ? 0 : E_MEMORY;
    if (rc == 0 && rename(from, to) < 0)
        rc = err_errno(errno, "%s: removing", from);
    if (rc == 0)
        rc = file_remove_tree(to);
    mem_free(from);
    mem_free(to);
    return rc;
}

/* rotate keeps the newest, and of the others the last keep - 1 that lie on the grid. */
static int rotate(const struct ckpt *c)
{
    int64_t *step, n, kept = 1;
    TRY(list_steps(c->run, &step, &n));
    int rc = 0;
    for (int64_t i = n - 2; i >= 0 && rc == 0; i--) {
        bool grid = c->every > 0 && step[i] % c->every == 0;
        if (grid && (c->keep == 0 || kept < c->keep))
            kept++;
        else
            rc = drop_step(c, step[i]);
    }
    mem_free(step);
    return rc;
}

/* ---- is it this run? ---- */

/* file_in is RUN/step-N/NAME (mem_free). */
static char *file_in(const struct ckpt *c, int64_t step, const char *file)
{
    char name[STEP_NAME];
    char *dir = file_path(c->run, step_name(name, step));
    char *path = dir ? file_path(dir, file) : NULL;
    mem_free(dir);
    return path;
}

static int check_one(const struct ckpt *c, const struct st_file *f, const char *key,
                     const char *now)
{
    const char *was = st_meta(&f->header, key);
    if (!was)
        return err_set(E_FORMAT, "%s: metadata lacks %s", f->path, key);
    if (strcmp(was, now) == 0)
        return 0;
    return err_set(E_CONFIG, "%s holds a run with another %s (%s, now %s)", c->run, key,
                   *was ? was : "none", *now ? now : "none");
}

/* check_run compares what the newest checkpoint says it is with this run. */
static int check_run(struct ckpt *c, const struct st_file *f)
{
    char name[TEXT];
    const char *options = st_meta(&f->header, "options");
    const char *input = st_meta(&f->header, "input");
    if (!options || !input || strlen(input) >= HASH_TEXT)
        return err_set(E_FORMAT, "%s: metadata lacks options or input", f->path);
    if (recipe_differs(name, sizeof name, options, c->about.options))
        return err_set(E_CONFIG, "%s holds a run with another --%s", c->run, name);
    TRY(check_one(c, f, "target", c->about.target));
    TRY(check_one(c, f, "taps", c->about.taps));
    if (!*c->about.input)
        memcpy(c->about.input, input, strlen(input) + 1);
    TRY(check_one(c, f, "input", c->about.input));
    int rc = *c->about.whole ? note(c, "input", c->about.whole, true) : 0;
    if (rc == 1)
        return err_set(E_CONFIG, "%s holds a run with another input", c->run);
    TRY(rc);
    return check_one(c, f, "valid", c->about.valid);
}

int ckpt_open(struct ckpt *c)
{
    int64_t *step, n;
    struct st_file f;
    c->step = 0;
    TRY(file_make_dirs(c->run));
    TRY(list_steps(c->run, &step, &n));
    if (n)
        c->step = step[n - 1];
    mem_free(step);
    if (!c->step)
        return *c->about.whole ? note(c, "input", c->about.whole, false) : 0;
    char *path = file_in(c, c->step, "state.safetensors");
    if (!path)
        return E_MEMORY;
    int rc = ckpt_file_open(&f, path);
    mem_free(path);
    if (rc < 0)
        return rc;
    rc = check_run(c, &f);
    st_close(&f);
    TRY(rc);
    TRY(name_latest(c));
    return rotate(c);
}

int ckpt_load(struct ckpt *c, struct optimizer *o)
{
    struct st_file f;
    struct dev *d = o->state.dev;
    char *path = file_in(c, c->step, "state.safetensors");
    int rc = path ? ckpt_file_open(&f, path) : E_MEMORY;
    mem_free(path);
    if (rc < 0)
        return rc;
    const char *made_on = st_meta(&f.header, "device");
    snprintf(c->made_on, sizeof c->made_on, "%s",
             made_on ? made_on : "an unknown device");
    rc = ckpt_file_read(&f, d, "master", o->master);
    if (rc == 0)
        rc = ckpt_file_read(&f, d, "m", o->m);
    if (rc == 0)
        rc = ckpt_file_read(&f, d, "v", o->v);
    if (rc == 0) {
        optimizer_round(o);
        rc = dev_sync(d); // before the mapping goes
    }
    st_close(&f);
    return rc;
}

/* ---- saving ---- */

struct metas {
    const char *pair[2 * METAS];
    int64_t n;
    char step[TEXT], epoch[TEXT], row[TEXT];
};

static void add_meta(struct metas *m, const char *key, const char *value)
{
    m->pair[2 * m->n] = key;
    m->pair[2 * m->n + 1] = value;
    m->n++;
}

static void make_metas(struct metas *m, const struct ckpt *c,
                       const struct ckpt_place *at)
{
    snprintf(m->step, sizeof m->step, "%lld", (long long)at->step);
    snprintf(m->epoch, sizeof m->epoch, "%lld", (long long)at->epoch);
    snprintf(m->row, sizeof m->row, "%lld", (long long)at->row);
    add_meta(m, "format", "pt");
    add_meta(m, "stage", "train");
    add_meta(m, "version", TOOL_VERSION);
    add_meta(m, "options", c->about.options);
    add_meta(m, "target", c->about.target);
    add_meta(m, "taps", c->about.taps);
    add_meta(m, "input", c->about.input);
    add_meta(m, "valid", c->about.valid);
    add_meta(m, "step", m->step);
}

static int save_model(const char *path, const struct drafter *m,
                      const struct optimizer *o, const struct metas *metas)
{
    const struct param_table *t = &m->table;
    struct ckpt_part *part = mem_zero((size_t)t->params, sizeof *part);
    if (!part)
        return E_MEMORY;
    for (int64_t i = 0; i < t->params; i++)
        part[i] = (struct ckpt_part){.name = t->param[i].name,
                                     .type = ST_BF16,
                                     .from = param_view(t, i, o->master)};
    int rc =
        ckpt_file_write(path, o->state.dev, part, t->params, metas->pair, metas->n);
    mem_free(part);
    return rc;
}

static int save_state(const char *path, const struct optimizer *o, const struct ckpt *c,
                      struct metas *metas)
{
    const struct ckpt_part part[] = {
        {"master", ST_F32, o->master}, {"m", ST_F32, o->m}, {"v", ST_F32, o->v}};
    add_meta(metas, "epoch", metas->epoch);
    add_meta(metas, "next_row", metas->row);
    add_meta(metas, "device", c->about.device);
    return ckpt_file_write(path, o->state.dev, part, 3, metas->pair, metas->n);
}

static int save_config(const char *path, const struct drafter_config *config)
{
    struct buf text = {0};
    config_drafter_write(&text, config);
    int rc = buf_check(&text);
    if (rc == 0)
        rc = file_write(path, text.p, text.len);
    buf_drop(&text);
    return rc;
}

/* save_files fills the folder `dir`. */
static int save_files(const char *dir, const struct ckpt *c, const struct drafter *m,
                      const struct optimizer *o, const struct ckpt_place *at)
{
    struct metas metas = {.n = 0};
    make_metas(&metas, c, at);
    char *model = file_path(dir, "model.safetensors");
    char *config = file_path(dir, "config.json");
    char *state = file_path(dir, "state.safetensors");
    int rc = model && config && state ? 0 : E_MEMORY;
    if (rc == 0)
        rc = save_model(model, m, o, &metas);
    if (rc == 0)
        rc = save_config(config, &m->config);
    if (rc == 0)
        rc = save_state(state, o, c, &metas);
    mem_free(model);
    mem_free(config);
    mem_free(state);
    return rc;
}

int ckpt_save(struct ckpt *c, const struct drafter *m, const struct optimizer *o,
              const struct ckpt_place *at)
{
    char name[STEP_NAME], part[STEP_NAME + 4];
    snprintf(part, sizeof part, "%s.tmp", step_name(name, at->step));
    char *tmp = file_path(c->run, part), *dir = file_path(c->run, name);
    int rc = tmp && dir ? file_remove_tree(tmp) : E_MEMORY;
    if (rc == 0)
        rc = file_make_dirs(tmp);
    if (rc == 0)
        rc = save_files(tmp, c, m, o, at);
    if (rc == 0 && rename(tmp, dir) < 0)
        rc = err_errno(errno, "%s: renaming", tmp);
    if (rc == 0)
        rc = file_sync_dir(c->run);
    if (rc == 0) {
        c->step = at->step;
        rc = name_latest(c);
    }
    if (rc == 0)
        rc = rotate(c);
    mem_free(tmp);
    mem_free(dir);
    return rc;
}
