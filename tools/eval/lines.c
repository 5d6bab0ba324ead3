/* SPDX-License-Identifier: MIT */
/* lines.c - one JSON object a line. */
#include "lines.h"

#include "json.h"

static void add_ids(struct json_out *o, const int32_t *ids, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        json_add_int(o, NULL, ids[i]);
}

static void add_array(struct json_out *o, const char *key, const int32_t *x, int64_t n)
{
    json_open_array(o, key);
    add_ids(o, x, n);
    json_close_array(o);
}

void lines_ids(struct buf *to, int64_t record, const int32_t *ids, int64_t n)
{
    struct json_out o = {.to = to};

    json_open_object(&o, NULL);
    json_add_int(&o, "record", record);
    add_array(&o, "ids", ids, n);
    json_close_object(&o);
    buf_addc(to, '\n');
}

void lines_text(struct buf *to, const struct prompt *q, const struct decoded *d)
{
    struct json_out o = {.to = to};

    json_open_object(&o, NULL);
    json_open_array(&o, "input_ids");
    add_ids(&o, q->ids, q->n);
    add_ids(&o, d->ids, d->n);
    json_close_array(&o);
    json_open_array(&o, "loss_mask");
    for (int64_t i = 0; i < q->n + d->n; i++)
        json_add_int(&o, NULL, i >= q->n);
    json_close_array(&o);
    json_close_object(&o);
    buf_addc(to, '\n');
}

void lines_rounds(struct buf *to, int64_t file, int64_t record, int64_t anchor,
                  const int32_t *accepted, int64_t rounds)
{
    struct json_out o = {.to = to};

    json_open_object(&o, NULL);
    json_add_int(&o, "file", file);
    json_add_int(&o, "record", record);
    json_add_int(&o, "anchor", anchor);
    add_array(&o, "accepted", accepted, rounds);
    json_close_object(&o);
    buf_addc(to, '\n');
}
