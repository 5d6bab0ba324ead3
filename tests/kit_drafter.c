/* SPDX-License-Identifier: MIT */
/* kit_drafter.c - golden drafters read and run. */
#include "kit_drafter.h"

#include <string.h>

#include "json.h"
#include "kit.h"
#include "mem.h"
#include "span.h"

static int64_t whole(const struct json *o, const char *key)
{
    int64_t v = 0;
    kit_ok(json_need_int(o, key, &v));
    return v;
}

/* read_config translates the reference's own names. */
static void read_config(struct kit_fixture *f, struct drafter_config *c)
{
    const char *text = st_meta(&f->file.header, "config");
    const struct json *windows;
    struct json *o;
    bool both = false;
    kit_ok(json_parse(&o, text, strlen(text)));
    *c = (struct drafter_config){.hidden = whole(o, "hidden"),
                                 .inter = whole(o, "inter"),
                                 .layers = whole(o, "layers"),
                                 .heads = whole(o, "heads"),
                                 .kv_heads = whole(o, "kv"),
                                 .head_dim = whole(o, "head_dim"),
                                 .vocab = whole(o, "vocab"),
                                 .max_positions = 4096,
                                 .block = whole(o, "block"),
                                 .mask_id = whole(o, "mask_id"),
                                 .taps = (int)whole(o, "aux"),
                                 .target_layers = 8,
                                 .stop = -1};
    kit_ok(json_need_real(o, "eps", &c->eps));
    kit_ok(json_need_real(o, "theta", &c->rope_theta));
    kit_ok(json_need_real(o, "gamma", &f->gamma));
    kit_ok(json_need_bool(o, "bidirectional", &both));
    kit_ok(json_need_array(o, "windows", &windows));
    for (int i = 0; i < c->taps; i++)
        c->tap[i] = 2 * i + 1;
    for (int64_t l = 0; l < c->layers; l++) {
        int64_t window = 0;
        kit_ok(json_to_int(json_at(windows, l), &window));
        c->sliding[l] = window > 0;
        if (window > 0)
            c->window = window;
    }
    c->causal = both ? 0 : -1;
    json_free(o);
}

static struct tensor copy(const struct st_file *f, const char *name)
{
    const struct st_tensor *t = st_find(&f->header, name);
    struct tensor c = kit_tensor_new(DT_F32, t->rank, t->dim);
    memcpy(c.data, kit_golden(f, name, ST_F32, NULL), tensor_bytes(&c));
    return c;
}

static void read_row(struct kit_fixture *f)
{
    const int64_t *ids = kit_golden(&f->file, "in.ids", ST_I64, &f->length);
    const int64_t *doc = kit_golden(&f->file, "in.doc", ST_I64, NULL);
    const float *mask = kit_golden(&f->file, "in.mask", ST_F32, NULL);
    const int64_t *anchor = kit_golden(&f->file, "in.anchors", ST_I64, &f->anchors);
    ck_assert(f->length <= KIT_S && f->anchors <= KIT_A);
    for (int64_t t = 0; t < f->length; t++) {
        f->ids[t] = (int32_t)ids[t];
        f->doc[t] = (int32_t)doc[t];
        f->mask[t] = mask[t] > 0;
    }
    for (int64_t j = 0; j < f->anchors; j++)
        f->anchor[j] = (int32_t)anchor[j];
}

void kit_fixture_open(struct kit_fixture *f, const char *name, int threads)
{
    struct drafter_config c;
    *f = (struct kit_fixture){0};
    kit_ok(st_open(&f->file, kit_path("tests/golden/drafter/%s.safetensors", name)));
    if (threads > 1)
        kit_ok(par_open(&f->par, threads));
    kit_ok(dev_open(&f->dev, "cpu", f->par));
    read_config(f, &c);
    read_row(f);
    f->embed = copy(&f->file, "in.embed");
    f->head = copy(&f->file, "in.head");
    f->aux = copy(&f->file, "in.feat");
    kit_ok(drafter_new(&f->m, f->dev, &c, f->embed, f->head));
    for (int64_t i = 0; i < f->m.table.params; i++) {
        struct tensor w = param_view(&f->m.table, i, f->m.flat);
        int64_t n;
        const void *from = kit_golden(
            &f->file, kit_path("w.%s", f->m.table.param[i].name), ST_F32, &n);
        ck_assert_int_eq(n, tensor_count(&w));
        memcpy(w.data, from, tensor_bytes(&w));
    }
}

void kit_fixture_close(struct kit_fixture *f)
{
    kit_tensor_free(&f->embed);
    kit_tensor_free(&f->head);
    kit_tensor_free(&f->aux);
    drafter_drop(&f->m);
    ck_assert_uint_eq(f->dev->held, 0);
    dev_close(f->dev);
    par_close(f->par);
    st_close(&f->file);
}

struct anchor_row kit_fixture_row(const struct kit_fixture *f)
{
    static const int64_t source[3 * KIT_A];
    return (struct anchor_row){f->length, f->ids, f->mask, f->doc, source, KIT_A};
}

/* fill makes the task of the given anchors of row r. */
static void fill(struct kit_task *t, const struct kit_fixture *f,
                 const struct anchor_row *r, const int32_t *anchor)
{
    const struct drafter_config *c = &f->m.config;
    int32_t lo[KIT_S], hi[KIT_S];
    ck_assert_int_le(t->blocks * c->block, KIT_Q);
    t->context = r->length;
    span_docs(t->pos, lo, hi, r->doc, r->length);
    span_blocks(t->at, t->lo, t->slide, t->hi, anchor, t->blocks, c->block, c->window,
                t->pos);
    for (int64_t q = 0; q < t->blocks * c->block; q++)
        t->id[q] = q % c->block ? (int32_t)c->mask_id : r->ids[anchor[q / c->block]];
    t->labelled = anchor_labels(t->row, t->label, t->weight, anchor, t->blocks,
                                c->block, f->gamma, r);
}

void kit_task_make(struct kit_task *t, const struct kit_fixture *f)
{
    struct anchor_row r = kit_fixture_row(f);
    t->aux = f->aux;
    t->blocks = f->anchors;
    fill(t, f, &r, f->anchor);
}

void kit_task_document(struct kit_task *t, const struct kit_fixture *f, int32_t d)
{
    struct anchor_row r = kit_fixture_row(f);
    int32_t anchor[KIT_A];
    int64_t begin = 0, end;
    while (f->doc[begin] != d)
        begin++;
    for (end = begin; end < f->length && f->doc[end] == d; end++)
        ;
    t->blocks = 0;
    for (int64_t j = 0; j < f->anchors; j++)
        if (f->doc[f->anchor[j]] == d)
            anchor[t->blocks++] = f->anchor[j] - (int32_t)begin;
    r.ids += begin;
    r.mask += begin;
    r.doc += begin;
    r.length = end - begin;
    t->aux = tensor_rows(f->aux, begin, r.length);
    fill(t, f, &r, anchor);
}

void kit_task_run(struct kit_answer *a, struct kit_fixture *f, const struct kit_task *t,
                  bool grads)
{
    struct arena work;
    int64_t rows = t->blocks * f->m.config.block;
    struct drafter_row r = {.aux = t->aux,
                            .context = t->context,
                            .pos = t->pos,
                            .blocks = t->blocks,
                            .id = t->id,
                            .at = t->at,
                            .lo = t->lo,
                            .slide = t->slide,
                            .hi = t->hi,
                            .labelled = t->labelled,
                            .row = t->row,
                            .label = t->label,
                            .weight = t->weight};
    *a = (struct kit_answer){.result = {.loss = -1, .weight = -1}};
    a->hidden = kit_tensor_new(DT_F32, T2(rows, f->m.config.hidden));
    if (grads)
        a->grads = kit_tensor_new(DT_F32, T1(f->m.table.count));
    a->result.hit = a->hit;
    kit_arena(&work, f->dev,
              drafter_bytes(&f->m, t->context, rows, t->labelled, grads));
    kit_ok(drafter_step(&f->m, &r, a->grads, a->hidden, &a->result, &work));
    kit_arena_spent(&work);
}

void kit_answer_free(struct kit_answer *a)
{
    kit_tensor_free(&a->hidden);
    kit_tensor_free(&a->grads);
}
