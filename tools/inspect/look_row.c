/* SPDX-License-Identifier: MIT */
/* look_row.c - one row for reading: its documents, where each is from, its tokens.
 *
 * What is supervised stands between {+ and +}.  With a tokenizer's table the ids are
 * shown as text: pieces need not be whole characters, so bytes are gathered first. */
#include "look_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "err.h"

/* The name of a source file from pack's list, else its number. */
static void add_file(struct facts *f, const struct json *files, int64_t file)
{
    char number[32];
    const char *name;
    const struct json *entry = files ? json_at(files, file) : NULL;
    snprintf(number, sizeof number, "%" PRId64, file);
    if (entry && json_need_text(entry, "name", &name) == 0)
        facts_part_text(f, "file", name, false);
    else
        facts_part_text(f, "file", number, false);
}

static void add_token(struct buf *to, const struct look *l, int32_t id)
{
    size_t n;
    const char *p = l->bpe ? bpe_piece(l->bpe, id, &n) : NULL;
    if (p)
        buf_add(to, p, n);
    else if (l->bpe)
        buf_addf(to, "<%" PRId32 ">", id);
    else
        buf_addf(to, "%" PRId32, id);
}

static void tokens(struct buf *to, const struct look *l, const struct anchor_row *x,
                   int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        if (!l->bpe && i > begin)
            buf_addc(to, ' ');
        if (x->mask[i] && (i == begin || !x->mask[i - 1]))
            buf_adds(to, "{+");
        add_token(to, l, x->ids[i]);
        if (x->mask[i] && (i + 1 == end || !x->mask[i + 1]))
            buf_adds(to, "+}");
    }
}

static void add_ints(struct json_out *o, const struct anchor_row *x, int64_t begin,
                     int64_t end)
{
    json_open_array(o, "ids");
    for (int64_t i = begin; i < end; i++)
        json_add_int(o, NULL, x->ids[i]);
    json_close_array(o);
    json_open_array(o, "mask");
    for (int64_t i = begin; i < end; i++)
        json_add_int(o, NULL, x->mask[i]);
    json_close_array(o);
}

static int add_document(struct look *l, const struct anchor_row *x, int64_t begin,
                        int64_t end, const struct json *files)
{
    struct facts *f = &l->facts;
    struct buf text = {0};
    const int64_t *source = x->source + 3 * (int64_t)x->doc[begin];
    int64_t supervised = 0;
    for (int64_t i = begin; i < end; i++)
        supervised += x->mask[i];
    facts_item(f);
    add_file(f, files, source[0]);
    facts_part_count(f, "record", source[1]);
    facts_part_count(f, "first", source[2]);
    facts_part_count(f, "begin", begin);
    facts_part_count(f, "end", end);
    facts_part_count(f, "supervised", supervised);
    if (f->as_json)
        add_ints(&f->json, x, begin, end);
    tokens(&text, l, x, begin, end);
    if (!f->as_json || l->bpe)
        facts_part_block(f, "text", &text);
    facts_item_end(f);
    int rc = buf_check(&text);
    buf_drop(&text);
    return rc;
}

int look_row(struct look *l, const struct row *row, const char *files)
{
    const struct anchor_row *x = &row->text;
    struct json *list = NULL;
    int rc = 0;
    if (files)
        TRY(json_parse(&list, files, strlen(files)));
    facts_list(&l->facts, "pieces");
    for (int64_t i = 0, end; i < x->length && rc == 0; i = end) {
        for (end = i + 1; end < x->length && x->doc[end] == x->doc[i];)
            end++;
        if (x->doc[i] >= 0)
            rc = add_document(l, x, i, end, list);
    }
    facts_list_end(&l->facts);
    json_free(list);
    return rc;
}
