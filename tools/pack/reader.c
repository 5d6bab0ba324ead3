/* SPDX-License-Identifier: MIT */
/* reader.c - the table.  A named file is known by its content; in a folder the name
 * decides what is data at all, and the content how it is read. */
#include "reader.h"

#include <string.h>

#include "err.h"
#include "read_jsonl.h"

static const char *const jsonl_endings[] = {".jsonl", ".jsonl.zst", NULL};

static const struct reader readers[] = {
    {.name = "jsonl",
     .endings = jsonl_endings,
     .is = jsonl_is,
     .block = jsonl_block,
     .parse = jsonl_parse},
};
enum { READERS = sizeof readers / sizeof *readers };

int reader_named(const struct reader **out, const char *name)
{
    struct buf names = {0};
    *out = NULL;
    if (strcmp(name, "auto") == 0)
        return 0;
    for (int i = 0; i < READERS; i++) {
        if (strcmp(name, readers[i].name) == 0)
            *out = &readers[i];
        buf_addf(&names, ", %s", readers[i].name);
    }
    int rc = *out ? 0
                  : err_set(E_USAGE, "no format \"%s\"; there are auto%s", name,
                            buf_text(&names));
    buf_drop(&names);
    return rc;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

const struct reader *reader_of_name(const char *name)
{
    for (int i = 0; i < READERS; i++)
        for (const char *const *end = readers[i].endings; *end; end++)
            if (ends_in(name, *end))
                return &readers[i];
    return NULL;
}

int reader_of_content(const struct reader **out, struct inflow *in)
{
    TRY(inflow_more(in, 4096));
    for (int i = 0; i < READERS; i++) {
        if (readers[i].is(buf_text(&in->have), in->have.len)) {
            *out = &readers[i];
            return 0;
        }
    }
    return err_set(E_FORMAT, "%s: unknown format: expected JSON lines", in->name);
}
