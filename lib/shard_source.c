/* SPDX-License-Identifier: MIT */
/* shard_source.c - takes shards from folders, files and streams, in order.
 *
 * Each shard says where in its run it belongs, and the end file has the last word: the
 * digest over all headers shows a shard of another run under the right name. */
#include "shard_source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "mem.h"

void shard_slot_clear(struct shard_slot *s)
{
    shard_head_drop(&s->head);
    file_unmap(&s->map);
    mem_free(s->label);
    s->label = NULL;
    s->data = NULL;
}

void shard_slot_drop(struct shard_slot *s)
{
    shard_slot_clear(s);
    buf_drop(&s->raw);
    mem_free(s->room);
    *s = (struct shard_slot){0};
}

/* ---- order ---- */

static int out_of_order(const char *what, int64_t found, int64_t wanted)
{
    return err_set(E_FORMAT, "out of order: %s %" PRId64 ", expected %" PRId64, what,
                   found, wanted);
}

static int check_order(const struct shard_source *s, const struct shard_head *h)
{
    if (strcmp(h->id.name, s->name) != 0 || h->id.part != s->part ||
        h->id.parts != s->parts)
        return err_set(E_FORMAT,
                       "out of order: part %" PRId64 " of %" PRId64 " of run %s inside "
                       "part %" PRId64 " of %" PRId64 " of run %s",
                       h->id.part, h->id.parts, h->id.name, s->part, s->parts, s->name);
    if (h->id.index != s->shard)
        return out_of_order(h->id.end ? "end after shard" : "shard", h->id.index,
                            s->shard);
    if (h->id.end)
        return 0;
    return h->id.first_row == s->row ? 0 : out_of_order("row", h->id.first_row, s->row);
}

static void step(struct shard_source *s, const struct shard_head *h)
{
    s->shard++;
    s->row += h->id.rows;
    shard_head_sum(&s->sums, h->xxh3);
}

/* The end file h closes the run whose shards were all seen. */
static int check_end(const struct shard_source *s, const struct shard_head *h)
{
    TRY(check_order(s, h));
    if (h->id.first_row != s->first_row || h->id.rows != s->row - s->first_row)
        return err_set(E_FORMAT,
                       "end file: tells of %" PRId64 " rows, there are "
                       "%" PRId64,
                       h->id.rows, s->row - s->first_row);
    if (h->digest != hash_bytes(buf_text(&s->sums), s->sums.len))
        return err_set(E_FORMAT, "end file: digest does not match the shards");
    return 0;
}

static int begin_run(struct shard_source *s, const struct shard_id *id)
{
    /* Parts of one run that follow each other do so without a gap. */
    if (s->name && strcmp(s->name, id->name) == 0 && s->parts > 1 &&
        s->parts == id->parts && id->part != (s->part + 1) % s->parts)
        return out_of_order("part", id->part, (s->part + 1) % s->parts);
    mem_free(s->name);
    if (!(s->name = mem_text(id->name)))
        return E_MEMORY;
    s->part = id->part;
    s->parts = id->parts;
    s->first_row = s->row = id->first_row;
    s->shard = 0;
    buf_clear(&s->sums);
    return 0;
}

void shard_source_rewind(struct shard_source *s)
{
    s->shard = 0;
    s->row = s->first_row;
    buf_clear(&s->sums);
}

void shard_source_unread(struct shard_source *s, const struct shard_head *h)
{
    s->shard--;
    s->row -= h->id.rows;
    s->sums.len -= 8;
}

/* ---- folders and files ---- */

static int map_shard(struct shard_source *s, struct shard_slot *slot, bool verify)
{
    TRY(shard_head_map(&slot->head, &slot->map, &slot->data, slot->label));
    int rc =
        slot->head.id.end ? err_set(E_FORMAT, "an end file under a shard's name") : 0;
    if (rc == 0 && s->kind == SHARD_FOLDER)
        rc = check_order(s, &slot->head);
    if (rc == 0 && verify)
        rc = shard_head_check(&slot->head, slot->data);
    return rc < 0 ? err_wrap(rc, "%s", slot->label) : 0;
}

static char *shard_path(const struct shard_source *s)
{
    struct buf file = {0};
    if (s->kind == SHARD_FILE)
        return mem_text(s->path);
    struct shard_id id = {
        .name = s->name, .part = s->part, .parts = s->parts, .index = s->shard};
    shard_name_add(&file, &id);
    char *path = buf_check(&file) < 0 ? NULL : file_path(s->path, buf_text(&file));
    buf_drop(&file);
    return path;
}

static int next_file(struct shard_source *s, struct shard_slot *slot, bool verify)
{
    if (s->kind == SHARD_FILE && s->shard > 0)
        return 0;
    if (s->kind == SHARD_FOLDER && s->shard == s->end.id.index) {
        int rc = check_end(s, &s->end);
        return rc < 0 ? err_wrap(rc, "%s", s->path) : 0;
    }
    if (!(slot->label = shard_path(s)))
        return E_MEMORY;
    TRY(map_shard(s, slot, verify));
    step(s, &slot->head);
    return 1;
}

/* ---- streams ---- */

/* Waits until there is something to read, or until `wake` says to give up. */
static int wait_for_input(const struct shard_source *s)
{
    struct pollfd p[2] = {{.fd = s->fd, .events = POLLIN},
                          {.fd = s->wake, .events = POLLIN}};
    while (poll(p, 2, -1) < 0)
        if (errno != EINTR)
            return err_errno(errno, "cannot wait for %s", s->path);
    return p[1].revents ? err_set(E_AGAIN, "reading was stopped") : 0;
}

/* Like file_get, but can be stopped. */
static int64_t get(const struct shard_source *s, void *to, size_t n)
{
    size_t have = 0;
    while (have < n) {
        size_t most = n - have < (1u << 30) ? n - have : 1u << 30;
        TRY(wait_for_input(s));
        ssize_t got = read(s->fd, (char *)to + have, most);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_errno(errno, "cannot read %s", s->path);
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (int64_t)have;
}

static int get_all(const struct shard_source *s, void *to, size_t n, const char *where)
{
    int64_t got = get(s, to, n);
    if (got < 0)
        return (int)got;
    if ((size_t)got == n)
        return 0;
    return err_set(E_FORMAT, "cut stream: it ends inside %s", where);
}

/* Reads length and header; 1 when there is one, 0 at the end of the input. */
static int get_head(const struct shard_source *s, struct shard_slot *slot)
{
    uint8_t length[8];
    size_t n;
    int64_t got = get(s, length, sizeof length);
    if (got < 0)
        return (int)got;
    if (got == 0)
        return 0;
    if (got < (int64_t)sizeof length)
        return err_set(E_FORMAT, "cut stream: it ends inside a header");
    TRY(st_length(length, sizeof length, &n));
    buf_clear(&slot->raw);
    buf_add(&slot->raw, length, sizeof length);
    char *p = buf_room(&slot->raw, n);
    if (!p)
        return E_MEMORY;
    TRY(get_all(s, p, n, "a header"));
    slot->raw.len += n;
    TRY(shard_head_parse(&slot->head, slot->raw.p, slot->raw.len));
    return 1;
}

/* The room grows with what has arrived, so that a header alone cannot ask for memory
 * that no data would fill. */
static int get_data(const struct shard_source *s, struct shard_slot *slot)
{
    size_t need = slot->head.st.data_bytes, have = 0;
    while (have < need) {
        if (have == slot->cap) {
            size_t first = (size_t)1 << 28;
            size_t cap = slot->cap == 0 ? first : 2 * slot->cap;
            cap = cap < need ? cap : need;
            void *room = mem_grow(slot->room, have, cap);
            if (!room)
                return E_MEMORY;
            slot->room = room;
            slot->cap = cap;
        }
        size_t more = (slot->cap < need ? slot->cap : need) - have;
        TRY(get_all(s, (char *)slot->room + have, more, "its data"));
        have += more;
    }
    slot->data = slot->room;
    return 0;
}

static int end_run(struct shard_source *s, struct shard_slot *slot)
{
    if (!s->inside)
        TRY(begin_run(s, &slot->head.id));
    TRY(check_end(s, &slot->head));
    s->inside = false;
    shard_head_sum(&s->digests, slot->head.xxh3);
    shard_head_drop(&s->end);
    s->end = slot->head;
    slot->head = (struct shard_head){0};
    return buf_check(&s->digests);
}

static int get_shard(struct shard_source *s, struct shard_slot *slot)
{
    for (;;) {
        int rc = get_head(s, slot);
        if (rc == 0 && (s->inside || s->digests.len == 0))
            return err_set(E_FORMAT, "cut stream: %s",
                           s->inside ? "the end file is missing" : "nothing there");
        if (rc <= 0)
            return rc;
        if (!slot->head.id.end)
            break;
        TRY(end_run(s, slot));
    }
    if (!s->inside)
        TRY(begin_run(s, &slot->head.id));
    s->inside = true;
    TRY(check_order(s, &slot->head));
    TRY(get_data(s, slot));
    TRY(shard_head_check(&slot->head, slot->data));
    step(s, &slot->head);
    return 1;
}

static int next_of_stream(struct shard_source *s, struct shard_slot *slot)
{
    struct buf label = {0};
    int64_t shard = s->inside ? s->shard : 0;
    buf_addf(&label, "%s: shard %" PRId64, s->path, shard);
    TRY(buf_check(&label));
    slot->label = label.p;
    int rc = get_shard(s, slot);
    return rc < 0 && rc != E_AGAIN ? err_wrap(rc, "%s", slot->label) : rc;
}

int shard_source_next(struct shard_source *s, struct shard_slot *slot, bool verify)
{
    shard_slot_clear(slot);
    return s->kind == SHARD_STREAM ? next_of_stream(s, slot)
                                   : next_file(s, slot, verify);
}
