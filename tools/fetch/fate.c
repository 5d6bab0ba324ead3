/* SPDX-License-Identifier: MIT */
/* fate.c - a failure that trying again mends gives way to one that it does not: who
 * starts us again on 69 and 75 must not do so for ever. */
#include "fate.h"

#include <stdio.h>
#include <string.h>

#include "buf.h"
#include "json.h"

static void print_json(const struct object *o, const char *state, const char *why)
{
    struct buf line = {0};
    struct json_out j = {.to = &line};
    json_open_object(&j, NULL);
    json_add_text(&j, "key", o->key);
    json_add_text(&j, "from", o->from);
    if (o->size >= 0)
        json_add_int(&j, "size", o->size);
    if (!o->undated)
        json_add_int(&j, "mtime_ns", o->mtime_ns);
    if (o->etag)
        json_add_text(&j, "etag", o->etag);
    json_add_text(&j, "state", state);
    if (why)
        json_add_text(&j, "why", why);
    json_close_object(&j);
    buf_addc(&line, '\n');
    fwrite(buf_text(&line), 1, line.len, stdout); // tool_end checks
    buf_drop(&line);
}

static void tell(const struct fates *t, const struct object *o, enum fate fate,
                 const char *why)
{
    static const char *const states[] = {"there", "wanted", "fetched", "uploaded",
                                         "failed"};
    if (t->json)
        print_json(o, states[fate], why);
    else if (fate == FATE_WANTED)
        printf("%lld\t%s\n", (long long)o->size, o->key);
}

void fate_add(struct fates *t, const struct object *o, enum fate fate)
{
    tell(t, o, fate, NULL);
    t->count[fate]++;
    if (fate != FATE_THERE && o->size > 0)
        t->bytes += o->size;
}

bool fate_may_mend(int code)
{
    return code == E_AGAIN || code == E_REMOTE;
}

void fate_fail(struct fates *t, const struct object *o, int code, const char *why)
{
    log_warn(t->log, "%s", why);
    tell(t, o, FATE_FAILED, why);
    t->count[FATE_FAILED]++;
    if (t->code == 0 || (fate_may_mend(t->code) && !fate_may_mend(code))) {
        t->code = code;
        snprintf(t->why, sizeof t->why, "%s", why);
    }
}

int fate_end(const struct fates *t, int64_t all, bool stopped)
{
    if (t->code == 0)
        return stopped ? err_set(E_AGAIN, "stopped by a signal") : 0;
    int code = stopped && fate_may_mend(t->code) ? E_AGAIN : t->code;
    return err_set(code, "%s%lld of %lld objects failed; for example %s",
                   stopped ? "stopped by a signal, and " : "",
                   (long long)t->count[FATE_FAILED], (long long)all, t->why);
}
