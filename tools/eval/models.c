/* SPDX-License-Identifier: MIT */
/* models.c - checkpoints by their digests. */
#include "models.h"

#include <stdint.h>
#include <string.h>

#include "drafter.h"
#include "err.h"
#include "file.h"
#include "mem.h"
#include "num.h"
#include "safetensors.h"

/* digest checks what has a checksum, and fills `text`, and `trained_on` with the target
 * that the drafter's metadata name, "" when none. */
static int digest(char text[HASH_TEXT], char trained_on[HASH_TEXT], const char *dir)
{
    struct st_model m = {0};
    uint64_t value;

    TRY(st_model_open(&m, dir));
    int rc = st_model_digest(&m, &value);
    for (int64_t i = 0; i < m.files && rc == 0; i++)
        rc = st_check_data(&m.file[i]);
    if (rc == 0)
        hash_text(text, value);
    const char *named = m.files > 0 ? st_meta(&m.file[0].header, "target") : NULL;
    trained_on[0] = '\0';
    if (named && strlen(named) < HASH_TEXT)
        memcpy(trained_on, named, strlen(named) + 1);
    st_model_close(&m);
    return rc;
}

/* newest returns the checkpoint that RUN/latest names. */
static int newest(char **out, const char *run, const char *latest)
{
    char *name;
    size_t n;
    int rc = 0;

    TRY(file_read(latest, &name, &n));
    name[strcspn(name, "\r\n")] = '\0';
    if (!*name || strchr(name, '/') || strlen(name) > 64)
        rc = err_set(E_FORMAT, "%s: not the name of a checkpoint", latest);
    else if (!(*out = file_path(run, name)))
        rc = E_MEMORY;
    mem_free(name);
    return rc;
}

static int find_drafter(struct models *m, const char *dir)
{
    char *latest = file_path(dir, "latest"), *config = file_path(dir, "config.json");
    int rc = latest && config ? 0 : E_MEMORY;

    if (rc == 0 && file_exists(latest) && !file_exists(config)) {
        rc = newest(&m->drafter_dir, dir, latest);
    } else if (rc == 0) {
        m->drafter_dir = mem_text(dir);
        rc = m->drafter_dir ? 0 : E_MEMORY;
    }
    mem_free(latest);
    mem_free(config);
    return rc;
}

int models_find(struct models *m, const char *device, const char *target,
                enum target_head head, const char *drafter)
{
    char trained_on[HASH_TEXT];

    *m = (struct models){0};
    TRY(dev_outline(&m->card, device));
    TRY(target_outline(&m->shape, &m->card, target, -1, head));
    hash_text(m->target, target_digest(m->shape));
    if (!drafter || !*drafter)
        return 0;
    TRY(find_drafter(m, drafter));
    TRY(drafter_check(m->drafter_dir, target_config(m->shape)));
    TRY(digest(m->drafter, trained_on, m->drafter_dir));
    if (*trained_on && strcmp(trained_on, m->target) != 0)
        return err_set(E_FORMAT, "%s: trained on target %s, %s is %s", m->drafter_dir,
                       trained_on, target, m->target);
    return 0;
}

int models_fit(const struct models *m, size_t available)
{
    struct target_sizes s = target_sizes(m->shape);
    char need[32], have[32];

    if (s.whole <= available && s.loading <= available - s.whole)
        return 0;
    return err_set(
        E_CONFIG,
        "memory: the target takes %s, the device has %s: a target is decoded "
        "whole, its layers do not come one by one",
        num_bytes(need, sizeof need, (double)(s.whole + s.loading)),
        num_bytes(have, sizeof have, (double)available));
}

void models_drop(struct models *m)
{
    mem_free(m->drafter_dir);
    target_close(m->shape);
    *m = (struct models){0};
}
