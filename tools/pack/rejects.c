/* SPDX-License-Identifier: MIT */
/* rejects.c - lines are collected and written in large pieces. */
#include "rejects.h"

#include "err.h"
#include "json.h"

enum { PIECE = 1 << 16 };

int rejects_open(struct rejects *r, const char *path)
{
    *r = (struct rejects){0};
    if (!path)
        return 0;
    TRY(file_new_create(&r->file, path));
    r->open = true;
    return 0;
}

static int write_out(struct rejects *r)
{
    TRY(buf_check(&r->text));
    TRY(file_put(r->file.fd, r->text.p, r->text.len, r->file.path));
    buf_clear(&r->text);
    return 0;
}

int rejects_add(struct rejects *r, const char *file, int64_t record, enum reject kind,
                const char *why)
{
    struct json_out o = {.to = &r->text};
    if (!r->open)
        return 0;
    json_open_object(&o, NULL);
    json_add_text(&o, "file", file);
    json_add_int(&o, "record", record);
    json_add_text(&o, "kind", document_reject_name(kind));
    json_add_text(&o, "reason", why);
    json_close_object(&o);
    buf_addc(&r->text, '\n');
    return r->text.len >= PIECE ? write_out(r) : 0;
}

int rejects_finish(struct rejects *r)
{
    int rc = r->open ? write_out(r) : 0;
    if (rc < 0 || !r->open) {
        rejects_abandon(r);
        return rc;
    }
    r->open = false;
    buf_drop(&r->text);
    return file_new_commit(&r->file);
}

void rejects_abandon(struct rejects *r)
{
    if (r->open)
        file_new_abandon(&r->file);
    buf_drop(&r->text);
    r->open = false;
}
