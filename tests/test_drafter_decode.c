/* SPDX-License-Identifier: MIT */
/* test_drafter_decode.c - a drafter loaded from a checkpoint, decoding with its context
 * cache, against the training pass of the same anchors: every bit.
 *
 * Both have the golden weights rounded to bf16: one as f32 to train, the other packed
 * from a bf16 file. */
#include <stdio.h>
#include <string.h>

#include "drafter_parts.h"
#include "err.h"
#include "kit.h"
#include "kit_drafter.h"
#include "mem.h"
#include "num.h"

/* round_fixture rounds weights and features to bf16; the features become a bf16 tensor,
 * as extraction stores them. */
static void round_fixture(struct kit_fixture *f)
{
    struct tensor aux = kit_tensor_new(DT_BF16, T2(f->length, f->aux.dim[1]));
    kit_bf16(f->m.flat.data, f->m.table.count);
    op_convert(f->dev, aux, f->aux);
    kit_tensor_free(&f->aux);
    f->aux = aux;
}

/* save writes the fixture's drafter as a checkpoint; tensor `without` is left out, and
 * `extra` is added. */
static const char *save(const struct kit_fixture *f, const char *without,
                        const char *extra)
{
    const char *dir = kit_tmp_dir();
    const struct param_table *t = &f->m.table;
    static const uint16_t junk[4];
    struct kit_tensor *list = mem_zero((size_t)t->params + 1, sizeof *list);
    struct buf config = {0};
    int64_t n = 0;
    for (int64_t i = 0; i < t->params; i++) {
        struct tensor w = param_view(t, i, f->m.flat);
        if (without && strcmp(t->param[i].name, without) == 0)
            continue;
        uint16_t *data = mem_alloc(tensor_bytes(&w));
        for (int64_t k = 0; k < tensor_count(&w); k++)
            data[k] = num_f32_bf16(((const float *)w.data)[k]);
        list[n++] = (struct kit_tensor){
            t->param[i].name, ST_BF16, w.rank, {w.dim[0], w.dim[1]}, data};
    }
    if (extra)
        list[n++] = (struct kit_tensor){extra, ST_BF16, 1, {4}, junk};
    kit_st_write(kit_path("%s/model.safetensors", dir), list, n);
    config_drafter_write(&config, &f->m.config);
    kit_write(kit_path("%s/config.json", dir), config.p, config.len);
    for (int64_t i = 0; i < n; i++)
        if (list[i].data != junk)
            mem_free((void *)list[i].data);
    buf_drop(&config);
    mem_free(list);
    return dir;
}

/* ---- proposals ---- */

struct session {
    struct drafter m; /* loaded */
    struct cache ctx;
    struct arena work;
};

/* begin fills the context with document d's features, a few rows at a time. */
static void begin(struct session *s, struct kit_fixture *f, const char *dir, int32_t d)
{
    int64_t first = 0, end, piece = 1;
    while (f->doc[first] != d)
        first++;
    for (end = first; end < f->length && f->doc[end] == d; end++)
        ;
    kit_ok(drafter_load(&s->m, f->dev, dir, f->embed, f->head));
    const struct drafter_config *c = &s->m.config;
    kit_ok(cache_open(&s->ctx, f->dev,
                      &(struct cache_form){.layers = c->layers,
                                           .capacity = end - first,
                                           .kv_heads = c->kv_heads,
                                           .head_dim = c->head_dim}));
    kit_arena(&s->work, f->dev, drafter_decode_bytes(&s->m, end - first));
    for (int64_t at = first; at < end; at += piece, piece = 2 * piece + 1) {
        int32_t pos[KIT_S];
        if (piece > end - at)
            piece = end - at;
        for (int64_t i = 0; i < piece; i++)
            pos[i] = (int32_t)(at - first + i);
        kit_ok(drafter_extend(&s->m, &s->ctx, tensor_rows(f->aux, at, piece), pos,
                              &s->work));
    }
    ck_assert_int_eq(s->ctx.len, end - first);
}

static void end(struct session *s)
{
    drafter_drop(&s->m);
    cache_close(&s->ctx);
    arena_close(&s->work);
}

/* first_best is the first index of the largest logit of states h [H]. */
static int32_t first_best(struct kit_fixture *f, const float *h)
{
    const int64_t vocab = f->m.config.vocab, width = f->m.config.hidden;
    float z[CONFIG_BLOCK];
    int32_t best = 0;
    ck_assert_int_le(vocab, CONFIG_BLOCK);
    op_matmul(f->dev, tensor_of(z, DT_F32, T2(1, vocab)),
              tensor_of((void *)h, DT_F32, T2(1, width)), f->head, false);
    kit_ok(dev_sync(f->dev));
    for (int32_t v = 1; v < vocab; v++)
        if (z[v] > z[best])
            best = v;
    return best;
}

/* check_anchor proposes block j and compares with the training pass's rows of it. */
static void check_anchor(struct session *s, struct kit_fixture *f,
                         const struct kit_task *t, const struct kit_answer *trained,
                         int64_t j)
{
    int64_t n = f->m.config.block, start = t->pos[f->anchor[j]];
    const struct tensor want = tensor_rows(trained->hidden, j * n, n);
    struct tensor h = kit_tensor_new(DT_F32, T2(n, f->m.config.hidden));
    int32_t token[CONFIG_BLOCK];
    kit_ok(drafter_states(&s->m, h, &s->ctx, &t->id[j * n], start, &s->work));
    kit_same("states", h.data, want.data, tensor_bytes(&want));
    kit_ok(drafter_propose(&s->m, &s->ctx, &t->id[j * n], n, start, token, &s->work));
    for (int64_t k = 1; k < n; k++)
        ck_assert_int_eq(
            token[k], first_best(f, (const float *)want.data + k * f->m.config.hidden));
    kit_tensor_free(&h);
}

/* Every anchor, in blocks of every length up to the drafter's: the last block before a
 * length limit is a short one. */
static void check_decoding(const char *name)
{
    struct kit_fixture f;
    struct kit_task t;
    kit_fixture_open(&f, name, 1);
    round_fixture(&f);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", save(&f, NULL, NULL));
    int64_t most = f.m.config.block;
    for (int64_t n = 1; n <= most; n++) {
        struct kit_answer trained;
        struct session s;
        int32_t d = -1;
        f.m.config.block = n; /* of the training pass; the checkpoint's stays */
        kit_task_make(&t, &f);
        kit_task_run(&trained, &f, &t, false);
        for (int64_t j = 0; j < f.anchors; j++) {
            if (f.doc[f.anchor[j]] != d) {
                if (d >= 0)
                    end(&s);
                d = f.doc[f.anchor[j]];
                begin(&s, &f, dir, d);
            }
            check_anchor(&s, &f, &t, &trained, j);
        }
        end(&s);
        kit_answer_free(&trained);
    }
    kit_fixture_close(&f);
}

START_TEST(decoding_full)
{
    check_decoding("full");
}
END_TEST

START_TEST(decoding_sliding)
{
    check_decoding("sliding");
}
END_TEST

START_TEST(decoding_bidirectional)
{
    check_decoding("sliding-bidirectional");
}
END_TEST

/* The comparison sees a cache whose rows have moved, or one with a row of another
 * token. */
START_TEST(decoding_faults)
{
    struct kit_fixture f;
    struct kit_task t;
    struct session s;
    kit_fixture_open(&f, "sliding", 1);
    round_fixture(&f);
    char dir[512];
    snprintf(dir, sizeof dir, "%s", save(&f, NULL, NULL));
    kit_task_make(&t, &f);
    begin(&s, &f, dir, 0);
    int64_t n = f.m.config.block, start = s.ctx.len - 1;
    struct tensor right = kit_tensor_new(DT_F32, T2(n, f.m.config.hidden));
    struct tensor wrong = kit_tensor_new(DT_F32, T2(n, f.m.config.hidden));
    kit_ok(drafter_states(&s.m, right, &s.ctx, t.id, start, &s.work));
    cache_cut(&s.ctx, start - 1);
    int32_t at = (int32_t)start; /* off by one */
    kit_ok(
        drafter_extend(&s.m, &s.ctx, tensor_rows(f.aux, start - 1, 1), &at, &s.work));
    kit_ok(drafter_states(&s.m, wrong, &s.ctx, t.id, start, &s.work));
    ck_assert(memcmp(right.data, wrong.data, tensor_bytes(&right)) != 0);
    cache_cut(&s.ctx, start - 1);
    at--;
    kit_ok(drafter_extend(&s.m, &s.ctx, tensor_rows(f.aux, start, 1), &at, &s.work));
    kit_ok(drafter_states(&s.m, wrong, &s.ctx, t.id, start, &s.work));
    ck_assert(memcmp(right.data, wrong.data, tensor_bytes(&right)) != 0);
    cache_cut(&s.ctx, start - 1); /* and is well again after a rollback */
    kit_ok(
        drafter_extend(&s.m, &s.ctx, tensor_rows(f.aux, start - 1, 1), &at, &s.work));
    kit_ok(drafter_states(&s.m, wrong, &s.ctx, t.id, start, &s.work));
    kit_same("states", wrong.data, right.data, tensor_bytes(&right));
    kit_tensor_free(&right);
    kit_tensor_free(&wrong);
    end(&s);
    kit_fixture_close(&f);
}
END_TEST

/* What is planned is what is used, to the byte: where extending by many rows takes
 * more, and where proposing does. */
START_TEST(planned_memory)
{
    struct kit_fixture f;
    struct cache ctx;
    struct arena work;
    int32_t pos[KIT_S], id[CONFIG_BLOCK] = {0}, token[CONFIG_BLOCK];
    kit_fixture_open(&f, "sliding", 1);
    const struct drafter_config *c = &f.m.config;
    for (int64_t t = 0; t < f.length; t++)
        pos[t] = (int32_t)t;
    for (int64_t rows = 1; rows <= f.length; rows += f.length - 1) {
        kit_ok(cache_open(&ctx, f.dev,
                          &(struct cache_form){.layers = c->layers,
                                               .capacity = rows,
                                               .kv_heads = c->kv_heads,
                                               .head_dim = c->head_dim}));
        kit_arena(&work, f.dev, drafter_decode_bytes(&f.m, rows));
        kit_ok(drafter_extend(&f.m, &ctx, tensor_rows(f.aux, 0, rows), pos, &work));
        kit_ok(drafter_propose(&f.m, &ctx, id, c->block, rows, token, &work));
        kit_arena_spent(&work);
        cache_close(&ctx);
    }
    ck_assert_uint_gt(drafter_decode_bytes(&f.m, f.length),
                      drafter_decode_bytes(&f.m, 1));
    kit_fixture_close(&f);
}
END_TEST

/* ---- loading ---- */

START_TEST(loads_what_was_saved)
{
    struct kit_fixture f;
    struct drafter m;
    kit_fixture_open(&f, "sliding", 1);
    kit_ok(drafter_load(&m, f.dev, save(&f, NULL, NULL), f.embed, f.head));
    kit_same("config", &m.config, &f.m.config, sizeof m.config);
    ck_assert_ptr_null(m.flat.data);
    ck_assert_uint_eq(m.arena.used, m.arena.size);
    drafter_drop(&m);
    kit_fixture_close(&f);
}
END_TEST

START_TEST(refuses)
{
    struct kit_fixture f;
    struct drafter m;
    struct session s;
    kit_fixture_open(&f, "full", 1);
    size_t held = f.dev->held;
    const char *up = "layers.1.mlp.up_proj.weight";
    kit_fails(drafter_load(&m, f.dev, save(&f, up, NULL), f.embed, f.head), E_FORMAT,
              "tensor layers.1.mlp.up_proj.weight is missing");
    kit_fails(drafter_load(&m, f.dev, save(&f, NULL, "mask_hidden"), f.embed, f.head),
              E_FORMAT, "mask_hidden is not part of this architecture");
    struct tensor small = tensor_rows(f.embed, 0, 96);
    kit_fails(drafter_load(&m, f.dev, save(&f, NULL, NULL), small, f.head), E_CONFIG,
              "vocabulary 97 and hidden size 64, the target's embedding has 96 and 64");
    struct drafter_config c = f.m.config;
    c.mask_id = 97;
    kit_fails(drafter_new(&m, f.dev, &c, f.embed, f.head), E_CONFIG, "mask id 97");
    ck_assert_uint_eq(f.dev->held, held);

    begin(&s, &f, save(&f, NULL, NULL), 1);
    int32_t pos = 9, id[2] = {3, 97}, token[2];
    kit_fails(drafter_extend(&s.m, &s.ctx, tensor_rows(f.aux, 0, 1), &pos, &s.work),
              E_CONFIG, "1 rows more do not fit");
    kit_fails(drafter_propose(&s.m, &s.ctx, id, 2, 3, token, &s.work), E_FORMAT,
              "token 1: id 97");
    end(&s);
    kit_fixture_close(&f);
}
END_TEST

KIT_MAIN("drafter_decode", decoding_full, decoding_sliding, decoding_bidirectional,
         decoding_faults, planned_memory, loads_what_was_saved, refuses)
