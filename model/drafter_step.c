/* SPDX-License-Identifier: MIT */
/* drafter_step.c - one packed row through the drafter: memory, forward, loss, backward.
 *
 * carve is the one place that says what is kept: with gradients every layer has tensors
 * of its own, without them all layers share one set and norms work in place. */
#include "drafter_parts.h"

#include "err.h"

struct sizes {
    int64_t context, rows, labelled;
    bool grads;
};

/* ---- memory ---- */

static struct drafter_kept carve_kept(const struct drafter *m, const struct sizes *n,
                                      struct arena *work)
{
    const struct drafter_config *c = &m->config;
    enum dtype act = m->dev->act;
    struct drafter_kept k;
    k.x = arena_tensor(work, act, T2(n->rows, c->hidden));
    k.q = arena_tensor(work, act, T3(n->rows, c->heads, c->head_dim));
    k.kb = arena_tensor(work, act, T3(n->rows, c->kv_heads, c->head_dim));
    k.vb = arena_tensor(work, act, T3(n->rows, c->kv_heads, c->head_dim));
    k.kc = arena_tensor(work, act, T3(n->context, c->kv_heads, c->head_dim));
    k.vc = arena_tensor(work, act, T3(n->context, c->kv_heads, c->head_dim));
    k.o = arena_tensor(work, act, T3(n->rows, c->heads, c->head_dim));
    k.lse = arena_tensor(work, DT_F32, T2(n->rows, c->heads));
    k.mid = n->grads ? arena_tensor(work, act, T2(n->rows, c->hidden)) : k.x;
    k.g = arena_tensor(work, act, T2(n->rows, c->inter));
    k.up = arena_tensor(work, act, T2(n->rows, c->inter));
    return k;
}

/* carve_layers makes the kept tensors and the scratch of the layers. */
static void carve_layers(const struct drafter *m, struct drafter_acts *a,
                         const struct sizes *n, struct arena *work)
{
    const struct drafter_config *c = &m->config;
    enum dtype act = m->dev->act;
    struct drafter_pass *p = &a->pass;
    for (int64_t l = 0; l < c->layers; l++)
        a->kept[l] = n->grads || l == 0 ? carve_kept(m, n, work) : a->kept[0];
    p->u = arena_tensor(work, act, T2(n->rows, c->hidden));
    if (!n->grads) {
        a->last = a->kept[0].x;
        a->kc = a->kept[0].kc;
        p->q = a->kept[0].q;
        p->kb = a->kept[0].kb;
        p->s = a->kept[0].g;
        return;
    }
    a->last = arena_tensor(work, act, T2(n->rows, c->hidden));
    a->kc = arena_tensor(work, act, T3(n->context, c->kv_heads, c->head_dim));
    p->q = arena_tensor(work, act, T3(n->rows, c->heads, c->head_dim));
    p->kb = arena_tensor(work, act, T3(n->rows, c->kv_heads, c->head_dim));
    p->s = arena_tensor(work, act, T2(n->rows, c->inter));
}

static void carve_grads(const struct drafter *m, struct drafter_acts *a,
                        const struct sizes *n, struct arena *work)
{
    const struct drafter_config *c = &m->config;
    enum dtype act = m->dev->act;
    a->dpicked = arena_tensor(work, act, T2(n->labelled, c->hidden));
    a->dx = arena_tensor(work, act, T2(n->rows, c->hidden));
    a->dout = arena_tensor(work, act, T3(n->rows, c->heads, c->head_dim));
    a->dq = arena_tensor(work, act, T3(n->rows, c->heads, c->head_dim));
    a->dkb = arena_tensor(work, act, T3(n->rows, c->kv_heads, c->head_dim));
    a->dvb = arena_tensor(work, act, T3(n->rows, c->kv_heads, c->head_dim));
    a->dkc = arena_tensor(work, act, T3(n->context, c->kv_heads, c->head_dim));
    a->dvc = arena_tensor(work, act, T3(n->context, c->kv_heads, c->head_dim));
    a->dctx = arena_tensor(work, act, T2(n->context, c->hidden));
}

static void carve(const struct drafter *m, struct drafter_acts *a,
                  const struct sizes *n, struct arena *work)
{
    const struct drafter_config *c = &m->config;
    enum dtype act = m->dev->act;
    struct drafter_pass *p = &a->pass;
    struct tensor *const rows[] = {&p->id, &p->at, &p->lo, &p->slide, &p->hi};
    struct tensor *const labelled[] = {&a->row, &a->label, &a->hit};
    p->block = c->block;
    a->pos = arena_tensor(work, DT_I32, T1(n->context));
    for (int i = 0; i < 5; i++)
        *rows[i] = arena_tensor(work, DT_I32, T1(n->rows));
    for (int i = 0; i < 3; i++)
        *labelled[i] = arena_tensor(work, DT_I32, T1(n->labelled));
    a->weight = arena_tensor(work, DT_F32, T1(n->labelled));
    a->loss = arena_tensor(work, DT_F64, T1(1));
    if (act != DT_BF16) /* where act is bf16, aux is used as it comes */
        a->aux = arena_tensor(work, act, T2(n->context, c->taps * c->hidden));
    a->ctx = arena_tensor(work, act, T2(n->context, c->hidden));
    a->fused = n->grads ? arena_tensor(work, act, T2(n->context, c->hidden)) : a->ctx;
    carve_layers(m, a, n, work);
    a->picked = arena_tensor(work, act, T2(n->labelled, c->hidden));
    if (n->grads)
        carve_grads(m, a, n, work);
}

size_t drafter_bytes(const struct drafter *m, int64_t context, int64_t rows,
                     int64_t labelled, bool grads)
{
    struct drafter_acts a = {0};
    struct arena plan = arena_plan();
    carve(m, &a, &(struct sizes){context, rows, labelled, grads}, &plan);
    return plan.used;
}

/* ---- the step ---- */

static int check(const struct drafter *m, const struct drafter_row *r,
                 const struct sizes *n)
{
    const struct drafter_config *c = &m->config;
    if (r->aux.rank != 2 || r->aux.dim[0] != n->context ||
        r->aux.dim[1] != c->taps * c->hidden)
        bug("features of %lld rows for a context of %lld", (long long)r->aux.dim[0],
            (long long)n->context);
    int rc = config_check_ids(c->vocab, r->id, n->rows);
    if (rc < 0)
        return err_wrap(rc, "block rows");
    rc = config_check_ids(c->vocab, r->label, n->labelled);
    return rc < 0 ? err_wrap(rc, "labels") : 0;
}

static int put(struct drafter *m, struct drafter_acts *a, const struct drafter_row *r)
{
    const struct {
        const struct tensor *to;
        const void *from;
    } list[] = {
        {&a->pos, r->pos},    {&a->pass.id, r->id},       {&a->pass.at, r->at},
        {&a->pass.lo, r->lo}, {&a->pass.slide, r->slide}, {&a->pass.hi, r->hi},
        {&a->row, r->row},    {&a->label, r->label},      {&a->weight, r->weight}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++)
        TRY(dev_put(m->dev, list[i].to->data, list[i].from, tensor_bytes(list[i].to)));
    if (m->dev->act == DT_BF16)
        a->aux = r->aux;
    else
        op_convert(m->dev, a->aux, r->aux);
    return 0;
}

/* get fills the result; it waits for the device. */
static int get(struct drafter *m, const struct drafter_acts *a,
               const struct drafter_row *r, struct drafter_result *out)
{
    TRY(dev_get(m->dev, &out->loss, a->loss.data, sizeof out->loss));
    if (out->hit)
        TRY(dev_get(m->dev, out->hit, a->hit.data, tensor_bytes(&a->hit)));
    out->weight = 0;
    for (int64_t i = 0; i < r->labelled; i++)
        out->weight += (double)r->weight[i];
    return 0;
}

int drafter_step(struct drafter *m, const struct drafter_row *r, struct tensor grads,
                 struct tensor hidden, struct drafter_result *out, struct arena *work)
{
    const struct sizes n = {r->context, r->blocks * m->config.block, r->labelled,
                            grads.data != NULL};
    struct drafter_acts a = {0};
    struct drafter_weights g;
    size_t used = work->used;
    TRY(check(m, r, &n));
    carve(m, &a, &n, work);
    int rc = put(m, &a, r);
    if (rc < 0)
        goto out;
    drafter_forward(m, &a);
    if (hidden.data)
        op_convert(m->dev, hidden, a.pass.u);
    op_gather(m->dev, a.picked, a.pass.u, a.row);
    op_fill(m->dev, a.loss, 0);
    op_head_loss(m->dev, a.loss, a.hit, a.dpicked, a.picked, m->head, a.label,
                 a.weight);
    if (n.grads && n.labelled > 0) {
        drafter_views(&g, &m->table, grads);
        drafter_backward(m, &a, &g);
    }
    rc = get(m, &a, r, out);
out:
    arena_reset(work, used);
    return rc;
}
