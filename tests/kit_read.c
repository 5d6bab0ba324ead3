/* SPDX-License-Identifier: MIT */
/* kit_read.c - open, blocks, close. */
#include "kit_read.h"

#include "../tools/pack/input.h"
#include "err.h"
#include "kit.h"

static int read_blocks(struct documents *out, const struct reader *r, void *state,
                       struct inflow *in, const struct read_rules *rules)
{
    struct block b = {.reader = r};
    int rc = 0;
    while (rc == 0 && (rc = r->block(&b, state, in)) > 0) {
        int64_t before = out->n;
        rc = r->parse(out, &b, rules);
        ck_assert_int_le(out->n - before, b.records);
        for (int64_t i = before; rc == 0 && i < out->n; i++)
            ck_assert(out->at[i].record >= b.record &&
                      out->at[i].record < b.record + b.records);
        b.record += b.records;
        b.index += b.records;
    }
    buf_drop(&b.bytes);
    return rc;
}

int kit_read_file(struct documents *out, const char *path, const char *format,
                  const struct read_rules *rules)
{
    const struct reader *r;
    struct inflow in;
    void *state = NULL;
    kit_ok(inflow_open(&in, path, "file"));
    kit_ok(reader_named(&r, format));
    int rc = r ? 0 : reader_of_content(&r, &in);
    bool open = rc == 0;
    if (rc == 0 && r->open)
        rc = r->open(&state, &in, rules);
    if (rc == 0)
        rc = read_blocks(out, r, state, &in, rules);
    if (open && r->close)
        r->close(state);
    inflow_close(&in);
    return rc;
}

int kit_read_input(struct documents *out, const char *operand,
                   const struct read_rules *rules)
{
    struct input list;
    int rc = input_list(&list, (char *const[]){(char *)operand, NULL},
                        &(struct input_choice){0});
    for (int64_t i = 0; rc == 0 && i < list.n; i++)
        rc = kit_read_file(out, list.at[i].path, "auto", rules);
    input_drop(&list);
    return rc;
}
