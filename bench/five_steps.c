/* SPDX-License-Identifier: MIT */
/* five_steps.c - the 1704.0M drafter after five steps: the same bits, come what may.
 *
 *     five_steps FOLDER [DEVICE [LENGTH ANCHORS]]      cuda, 4096, 128
 *
 * Five steps of AdamW on drawn rows, twice from one seed; then three, a checkpoint in
 * FOLDER, and two more by a drafter that begins with that.  Prints the digest of the
 * masters and moments of each; ends with 1 when they are not equal.  On the CPU the
 * drafter is a small one.  A checkpoint is 24 GB. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "hash.h"
#include "mem.h"
#include "par.h"
#include "train/ckpt.h"
#include "train/trial.h"

enum { STEPS = 5, BREAK = 3, PIECE = 1 << 24 };

static struct dev *d;
static struct trial_shape shape = {.length = 4096, .anchors = 128, .seed = 11};
static struct log silent;

/* steps takes steps (from, to], each on a row of its own. */
static int steps(struct trial *t, int from, int to)
{
    for (int step = from + 1; step <= to; step++) {
        TRY(trial_row(t, (uint64_t)step));
        TRY(trial_update(t, 6e-4, step));
    }
    return 0;
}

static int add(struct hash *h, struct tensor t, float *room)
{
    int64_t n = tensor_count(&t);
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t m = n - at < PIECE ? n - at : PIECE;
        TRY(dev_get(d, room, (const float *)t.data + at, (size_t)m * sizeof *room));
        hash_add(h, room, (size_t)m * sizeof *room);
    }
    return 0;
}

static int digest(const struct trial *t, uint64_t *out)
{
    const struct optimizer *o = &t->room.optim;
    struct hash *h = hash_open();
    float *room = mem_alloc(PIECE * sizeof *room);
    int rc = h && room ? add(h, o->master, room) : E_MEMORY;
    if (rc == 0)
        rc = add(h, o->m, room);
    if (rc == 0)
        rc = add(h, o->v, room);
    if (rc == 0)
        *out = hash_value(h);
    hash_close(h);
    mem_free(room);
    return rc;
}

static int whole(uint64_t *out)
{
    struct trial t;
    TRY(trial_open(&t, d, &shape, &silent));
    int rc = steps(&t, 0, STEPS);
    if (rc == 0)
        rc = digest(&t, out);
    trial_close(&t);
    return rc;
}

/* first takes steps up to the break and saves. */
static int first(struct ckpt *c)
{
    struct trial t;
    TRY(trial_open(&t, d, &shape, &silent));
    dev_identity(d, c->about.device);
    int rc = steps(&t, 0, BREAK);
    if (rc == 0)
        rc = ckpt_open(c);
    if (rc == 0)
        rc = ckpt_save(c, &t.room.drafter, &t.room.optim,
                       &(struct ckpt_place){.step = BREAK});
    trial_close(&t);
    return rc;
}

/* second goes on from what is saved. */
static int second(struct ckpt *c, uint64_t *out)
{
    struct trial t;
    TRY(trial_open(&t, d, &shape, &silent));
    int rc = ckpt_open(c);
    if (rc == 0)
        rc = ckpt_load(c, &t.room.optim);
    if (rc == 0)
        rc = steps(&t, BREAK, STEPS);
    if (rc == 0)
        rc = digest(&t, out);
    trial_close(&t);
    return rc;
}

static int run(const char *folder)
{
    static const char *const name[] = {"five steps", "again", "three, saved, two"};
    struct ckpt c = {.run = folder, .keep = 1, .about = {.options = "", .taps = ""}};
    uint64_t got[3];
    char text[HASH_TEXT];
    TRY(whole(&got[0]));
    TRY(whole(&got[1]));
    TRY(first(&c));
    TRY(second(&c, &got[2]));
    for (int i = 0; i < 3; i++)
        printf("%-20s %s\n", name[i], hash_text(text, got[i]));
    printf("%s\n", c.made_on);
    TRY(file_remove_tree(folder));
    return got[0] != got[1] || got[0] != got[2];
}

int main(int argc, char **argv)
{
    const char *device = argc > 2 ? argv[2] : "cuda";
    struct par *par = NULL;
    int rc;
    if (argc != 2 && argc != 3 && argc != 5) {
        fprintf(stderr, "usage: five_steps FOLDER [DEVICE [LENGTH ANCHORS]]\n");
        return -E_USAGE;
    }
    if (argc == 5) {
        shape.length = strtol(argv[3], NULL, 10);
        shape.anchors = strtol(argv[4], NULL, 10);
    }
    bool small = strcmp(device, "cpu") == 0;
    shape.config = small ? trial_small(4) : trial_published(4);
    setvbuf(stdout, NULL, _IOLBF, 0);
    TRY_GOTO(rc, par_open(&par, 0), out);
    TRY_GOTO(rc, dev_open(&d, device, par), out);
    rc = run(argv[1]);
out:
    if (rc < 0)
        fprintf(stderr, "five_steps: %s\n", err_text());
    dev_close(d);
    par_close(par);
    return rc < 0 ? -rc : rc;
}
