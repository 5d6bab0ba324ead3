/* SPDX-License-Identifier: MIT */
/* prompt.c - JSON lines to token ids. */
#include "prompt.h"

#include <string.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "json.h"
#include "mem.h"

static int read_ids(struct prompt *q, const struct json *ids, int64_t vocab)
{
    q->n = json_size(ids);
    if (q->n == 0)
        return err_set(E_FORMAT, "input_ids is empty");
    q->ids = mem_alloc((size_t)q->n * sizeof *q->ids);
    if (!q->ids)
        return E_MEMORY;
    for (int64_t i = 0; i < q->n; i++) {
        int64_t id;
        TRY(json_to_int(json_at(ids, i), &id));
        if (id < 0 || id >= vocab)
            return err_set(E_FORMAT, "input_ids[%lld] is %lld of a vocabulary of %lld",
                           (long long)i, (long long)id, (long long)vocab);
        q->ids[i] = (int32_t)id;
    }
    return 0;
}

static int read_line(struct prompt *q, const char *text, size_t n, int64_t vocab)
{
    struct json *root = NULL;
    const struct json *ids;
    int rc;

    TRY_GOTO(rc, json_parse(&root, text, n), out);
    TRY_GOTO(rc, json_need_array(root, "input_ids", &ids), out);
    TRY_GOTO(rc, read_ids(q, ids, vocab), out);
out:
    json_free(root);
    return rc;
}

static int add_line(struct prompts *p, const char *text, size_t n, int64_t line,
                    int64_t vocab)
{
    if (n == strspn(text, " \t\r"))
        return 0;
    struct prompt *at = mem_room(p->prompt, p->n, &p->room, sizeof *at);
    if (!at)
        return E_MEMORY;
    p->prompt = at;
    struct prompt *q = &at[p->n++];
    *q = (struct prompt){.line = line};
    TRY(read_line(q, text, n, vocab));
    if (q->n > p->longest)
        p->longest = q->n;
    return 0;
}

static int read_lines(struct prompts *p, const char *path, const char *text, size_t n,
                      int64_t vocab, int64_t most)
{
    const char *end = text + n;

    p->digest = hash_bytes(text, n);
    for (int64_t line = 1; text < end && (most == 0 || p->n < most); line++) {
        const char *stop = memchr(text, '\n', (size_t)(end - text));
        if (!stop)
            stop = end;
        int rc = add_line(p, text, (size_t)(stop - text), line, vocab);
        if (rc < 0)
            return err_wrap(rc, "%s: line %lld", path, (long long)line);
        text = stop + 1;
    }
    if (p->n == 0)
        return err_set(E_FORMAT, "%s: no prompts", path);
    return 0;
}

/* read_stdin appends the whole input. */
static int read_stdin(struct buf *b)
{
    enum { STEP = 1 << 16 };

    for (;;) {
        char *to = buf_room(b, STEP);
        if (!to)
            return E_MEMORY;
        int64_t got = file_get(0, to, STEP, "stdin");
        if (got < 0)
            return (int)got;
        b->len += (size_t)got;
        b->p[b->len] = '\0';
        if (got < STEP)
            return 0;
    }
}

int prompt_read(struct prompts *p, const char *path, int64_t vocab, int64_t most)
{
    struct buf piped = {0};
    char *text = NULL;
    size_t n = 0;
    int rc;

    *p = (struct prompts){0};
    if (strcmp(path, "-") == 0) {
        TRY_GOTO(rc, read_stdin(&piped), out);
        TRY_GOTO(rc, read_lines(p, "stdin", buf_text(&piped), piped.len, vocab, most),
                 out);
    } else {
        TRY_GOTO(rc, file_read(path, &text, &n), out);
        TRY_GOTO(rc, read_lines(p, path, text, n, vocab, most), out);
    }
out:
    buf_drop(&piped);
    mem_free(text);
    return rc;
}

void prompt_free(struct prompts *p)
{
    for (int64_t i = 0; i < p->n; i++)
        mem_free(p->prompt[i].ids);
    mem_free(p->prompt);
    *p = (struct prompts){0};
}
