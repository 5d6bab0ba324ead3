/* SPDX-License-Identifier: MIT */
/* ask.c - predicates over tensors, and the message of a wrong call. */
#include "ask.h"

#include "err.h"

#include <stdio.h>

enum { TEXT = 128 };

static const char *text(char out[TEXT], const struct tensor *t)
{
    static const char *const form[] = {"%s []", "%s [%lld]", "%s [%lld, %lld]",
                                       "%s [%lld, %lld, %lld]",
                                       "%s [%lld, %lld, %lld, %lld]"};
    const char *f = form[t->rank >= 0 && t->rank <= 4 ? t->rank : 0];
    int n = snprintf(out, TEXT, f, dtype_name(t->type), (long long)t->dim[0],
                     (long long)t->dim[1], (long long)t->dim[2], (long long)t->dim[3]);
    snprintf(out + n, TEXT - (size_t)n, "%s%s", t->layout == T_PANELS ? " panels" : "",
             t->data ? "" : " without data");
    return out;
}

_Noreturn void ask_bug(const char *file, int line, const char *op, const char *rule,
                       struct tensor a, struct tensor b)
{
    char ta[TEXT], tb[TEXT];
    bug_at(file, line, "%s: %s, not so with %s and %s", op, rule, text(ta, &a),
           text(tb, &b));
}

static bool usable(struct tensor t)
{
    return t.layout == T_ROWS && (t.data || tensor_count(&t) == 0);
}

bool ask_act(const struct dev *d, struct tensor t)
{
    return usable(t) && t.type == d->act;
}

bool ask_weight(const struct dev *d, struct tensor t)
{
    return (t.data || tensor_count(&t) == 0) &&
           (t.type == d->act || t.type == DT_BF16 || t.type == DT_F32);
}

bool ask_grad(const struct dev *d, struct tensor t)
{
    return usable(t) && (t.type == d->act || t.type == DT_F32);
}

bool ask_store(const struct dev *d, struct tensor t)
{
    return usable(t) && (t.type == d->act || t.type == DT_BF16);
}

bool ask_real(struct tensor t)
{
    return usable(t) && t.type != DT_U8 && t.type != DT_I32;
}

bool ask_type(struct tensor t, enum dtype type)
{
    return usable(t) && t.type == type;
}

bool ask_dim1(struct tensor t, int64_t a)
{
    return t.rank == 1 && t.dim[0] == a;
}

bool ask_dim2(struct tensor t, int64_t a, int64_t b)
{
    return t.rank == 2 && t.dim[0] == a && t.dim[1] == b;
}

bool ask_same(struct tensor a, struct tensor b)
{
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; i++)
        same = a.dim[i] == b.dim[i];
    return same;
}

bool ask_apart(struct tensor a, struct tensor b)
{
    uintptr_t pa = (uintptr_t)a.data, pb = (uintptr_t)b.data;
    return !pa || !pb || pa + tensor_bytes(&a) <= pb || pb + tensor_bytes(&b) <= pa;
}

bool ask_alias(struct tensor a, struct tensor b)
{
    return (a.data == b.data && tensor_bytes(&a) == tensor_bytes(&b)) ||
           ask_apart(a, b);
}
