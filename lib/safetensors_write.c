/* SPDX-License-Identifier: MIT */
/* safetensors_write.c - the header of a file to be: offsets laid out, JSON, padding.
 *
 * The text has one form (no spaces, keys in the caller's order), so equal content gives
 * equal bytes. */
#include "safetensors.h"

#include "err.h"
#include "json.h"

static void add_tensor(struct json_out *o, const struct st_tensor *t)
{
    json_open_object(o, t->name);
    json_add_text(o, "dtype", st_type_name(t->type));
    json_open_array(o, "shape");
    for (int i = 0; i < t->rank; i++)
        json_add_int(o, NULL, t->dim[i]);
    json_close_array(o);
    json_open_array(o, "data_offsets");
    json_add_int(o, NULL, (int64_t)t->begin);
    json_add_int(o, NULL, (int64_t)t->end);
    json_close_array(o);
    json_close_object(o);
}

static void lay_out(struct st_tensor *tensor, int64_t tensors)
{
    uint64_t at = 0;
    for (int64_t i = 0; i < tensors; i++) {
        struct st_tensor *t = &tensor[i];
        if (at % st_type_size(t->type) != 0)
            bug("tensor %s would begin at byte %llu, not aligned to its type", t->name,
                (unsigned long long)at);
        t->begin = at;
        at += (uint64_t)st_count(t) * st_type_size(t->type);
        t->end = at;
    }
}

int st_header_write(struct buf *out, struct st_tensor *tensor, int64_t tensors,
                    const char *const *meta, int64_t metas, size_t align)
{
    struct json_out o = {.to = out};
    size_t start = out->len;
    lay_out(tensor, tensors);
    buf_fill(out, 0, 8);
    json_open_object(&o, NULL);
    if (metas > 0) {
        json_open_object(&o, "__metadata__");
        for (int64_t i = 0; i < metas; i++)
            json_add_text(&o, meta[2 * i], meta[2 * i + 1]);
        json_close_object(&o);
    }
    for (int64_t i = 0; i < tensors; i++)
        add_tensor(&o, &tensor[i]);
    json_close_object(&o);
    size_t used = (out->len - start) % align;
    buf_fill(out, ' ', used ? align - used : 0);
    TRY(buf_check(out));
    uint64_t n = out->len - start - 8;
    if (n > ST_HEADER_MAX)
        return err_set(E_CONFIG, "header of %llu bytes, at most %d are allowed",
                       (unsigned long long)n, ST_HEADER_MAX);
    for (int i = 0; i < 8; i++)
        out->p[start + (size_t)i] = (char)(n >> (8 * i));
    return 0;
}
