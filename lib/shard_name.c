/* SPDX-License-Identifier: MIT */
/* shard_name.c - names of the files of a run, written and read.
 *
 *     NAME-00000.safetensors      NAME-end.safetensors
 *     NAME-03-of-12-00000.safetensors      NAME-03-of-12-end.safetensors
 *
 * Byte order of the names is the order of the stream: digits come before "end", and
 * the part is as wide as the largest part number. */
#include "shard_head.h"

#include <inttypes.h>
#include <string.h>

#include "mem.h"

#define SUFFIX ".safetensors"

static int digits(int64_t n)
{
    int count = 1;
    for (; n >= 10; n /= 10)
        count++;
    return count;
}

static void add_file(struct buf *out, const struct shard_id *id, size_t name_len)
{
    buf_add(out, id->name, name_len);
    if (id->parts > 1)
        buf_addf(out, "-%0*" PRId64 "-of-%" PRId64, digits(id->parts - 1), id->part,
                 id->parts);
    if (id->end)
        buf_adds(out, "-end");
    else
        buf_addf(out, "-%05" PRId64, id->index);
    buf_adds(out, SUFFIX);
}

void shard_name_add(struct buf *out, const struct shard_id *id)
{
    add_file(out, id, strlen(id->name));
}

/* Takes "-DIGITS" off the end of text[0 .. *len). */
static bool take_number(const char *text, size_t *len, int64_t *value)
{
    size_t begin = *len;
    while (begin > 0 && text[begin - 1] >= '0' && text[begin - 1] <= '9')
        begin--;
    size_t count = *len - begin;
    if (count < 1 || count > 9 || begin < 1 || text[begin - 1] != '-')
        return false;
    *value = 0;
    for (size_t i = begin; i < *len; i++)
        *value = *value * 10 + (text[i] - '0');
    *len = begin - 1;
    return true;
}

static bool take_text(const char *text, size_t *len, const char *word)
{
    size_t n = strlen(word);
    if (*len < n || memcmp(text + *len - n, word, n) != 0)
        return false;
    *len -= n;
    return true;
}

/* Takes "-I-of-N" off the end, if it is there. */
static void take_part(struct shard_id *id, const char *file, size_t *len)
{
    size_t n = *len;
    int64_t part, parts;
    if (take_number(file, &n, &parts) && take_text(file, &n, "-of") &&
        take_number(file, &n, &part) && part < parts && parts > 1) {
        id->part = part;
        id->parts = parts;
        *len = n;
    }
}

bool shard_name_parse(struct shard_id *id, size_t *name_len, const char *file)
{
    struct buf again = {0};
    size_t n = strlen(file);
    *id = (struct shard_id){.name = file, .parts = 1};
    if (!take_text(file, &n, SUFFIX))
        return false;
    if (take_text(file, &n, "-end"))
        id->end = true;
    else if (!take_number(file, &n, &id->index))
        return false;
    take_part(id, file, &n);
    *name_len = n;
    if (n == 0)
        return false;
    /* One name per file: what is not written like this is not ours. */
    add_file(&again, id, n);
    bool same = strcmp(buf_text(&again), file) == 0;
    buf_drop(&again);
    return same;
}
