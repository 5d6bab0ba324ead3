/* SPDX-License-Identifier: MIT */
/* test_weights.c - what is loaded from a target's checkpoint, and what is refused. */
#include <string.h>

#include "err.h"
#include "kit.h"
#include "kit_model.h"
#include "mem.h"
#include "target.h"

enum { H = 64, V = 512 };

static const char *const untied = "tests/golden/target-qwen3";
static const char *const tied = "tests/golden/target-qwen3-tied";

/* Layers up to the last one wanted, and no more, are loaded. */
START_TEST(early_exit)
{
    struct dev *d;
    struct target *t;
    size_t held[3];
    kit_ok(dev_open(&d, "cpu", NULL));
    for (int i = 0; i < 3; i++) {
        kit_ok(target_open(&t, d, kit_path("%s/model", untied), i < 2 ? i : -1, false));
        held[i] = d->held;
        target_close(t);
    }
    size_t layer = held[1] - held[0];
    ck_assert_uint_gt(layer, 0);
    ck_assert_uint_eq(held[2], held[1] + 2 * layer);
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

START_TEST(vocabulary)
{
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    for (int i = 0; i < 2; i++) {
        kit_ok(target_vocabulary(&t, d, kit_path("%s/model", i ? tied : untied)));
        struct tensor e = target_embed(t), h = target_head(t);
        ck_assert(e.type == DT_BF16 && e.layout == T_ROWS && e.dim[0] == V);
        ck_assert(h.type == DT_BF16 && h.layout == T_ROWS && h.dim[1] == H);
        ck_assert((e.data == h.data) == (i == 1));
        size_t most = (size_t)(2 - i) * V * H * 2 + 64; /* matrices, frequencies */
        ck_assert_uint_le(d->held, most + 256);
        target_close(t);
    }
    kit_ok(target_open(&t, d, kit_path("%s/model", untied), -1, true));
    uint64_t digest = target_digest(t);
    target_close(t);
    kit_ok(target_vocabulary(&t, d, kit_path("%s/model", untied)));
    ck_assert_uint_eq(target_digest(t), digest);
    target_close(t);
    kit_ok(target_vocabulary(&t, d, kit_path("%s/model", tied)));
    ck_assert_uint_ne(target_digest(t), digest);
    target_close(t);
    dev_close(d);
}
END_TEST

/* rewrite writes the untied model as one file, with tensor `name` left out (type -1),
 * or given another type or first dimension. */
static const char *rewrite(const char *name, int type, int64_t dim0, const char *extra)
{
    const char *dir = kit_tmp_dir();
    static const float junk[V * H];
    struct st_model m;
    size_t size;
    kit_ok(st_model_open(&m, kit_path("%s/model", untied)));
    struct kit_tensor *list = mem_zero((size_t)m.entries + 1, sizeof *list);
    int64_t n = 0;
    for (int64_t i = 0; i < m.entries; i++) {
        const struct st_tensor *t = m.entry[i].tensor;
        bool hit = strcmp(m.entry[i].name, name) == 0;
        if (hit && type < 0)
            continue;
        list[n] = (struct kit_tensor){.name = m.entry[i].name,
                                      .type = hit ? (enum st_type)type : t->type,
                                      .rank = t->rank,
                                      .data = hit ? junk : st_data(m.entry[i].file, t)};
        memcpy(list[n].dim, t->dim, sizeof list[n].dim);
        if (hit && dim0)
            list[n].dim[0] = dim0;
        n++;
    }
    if (extra)
        list[n++] = (struct kit_tensor){extra, ST_BF16, 1, {H}, junk};
    kit_st_write(kit_path("%s/model.safetensors", dir), list, n);
    char *config = kit_read(kit_path("%s/model/config.json", untied), &size);
    kit_write(kit_path("%s/config.json", dir), config, size);
    mem_free(config);
    mem_free(list);
    st_model_close(&m);
    return dir;
}

START_TEST(wrong_checkpoints)
{
    const char *q = "model.layers.1.self_attn.q_proj.weight";
    struct dev *d;
    struct target *t;
    kit_ok(dev_open(&d, "cpu", NULL));
    kit_ok(target_open(&t, d, rewrite(q, ST_BF16, 0, NULL), -1, true));
    target_close(t);
    kit_fails(target_open(&t, d, rewrite(q, -1, 0, NULL), -1, true), E_FORMAT,
              "tensor model.layers.1.self_attn.q_proj.weight is missing");
    kit_fails(target_open(&t, d, rewrite(q, ST_BF16, 96, NULL), -1, true), E_FORMAT,
              "q_proj.weight is [96, 64], config.json makes it [128, 64]");
    kit_fails(target_open(&t, d, rewrite(q, ST_F16, 0, NULL), -1, true), E_CONFIG,
              "q_proj.weight is F16");
    const char *bias = "model.layers.1.self_attn.q_proj.bias";
    kit_fails(target_open(&t, d, rewrite("", 0, 0, bias), -1, true), E_FORMAT,
              "q_proj.bias is not part of this architecture");
    /* Layers that are not loaded are checked all the same. */
    kit_fails(target_open(&t, d, rewrite(q, -1, 0, NULL), 0, false), E_FORMAT,
              "is missing");
    kit_fails(target_open(&t, d, kit_path("%s/model", untied), 4, false), E_CONFIG,
              "layer 4 is wanted, the last one is 3");
    kit_fails(target_vocabulary(
                  &t, d, rewrite("model.embed_tokens.weight", ST_BF16, V - 1, NULL)),
              E_FORMAT, "embed_tokens.weight is [511, 64]");
    ck_assert_uint_eq(d->held, 0);
    dev_close(d);
}
END_TEST

KIT_MAIN("weights", early_exit, vocabulary, wrong_checkpoints)
