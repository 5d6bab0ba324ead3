/* SPDX-License-Identifier: MIT */
/* reader.c - the table.  A named file is known by its content, an empty one by its
 * name; in a folder the name decides what is data at all, and the content how it is
 * read. */
#include "reader.h"

#include <string.h>

#include "err.h"
#include "mem.h"
#include "npy.h"
#include "read_arrow.h"
#include "read_jsonl.h"
#include "read_mds.h"
#include "read_megatron.h"
#include "read_npy.h"
#include "read_packed.h"
#include "read_raw.h"
#include "read_tar.h"
#include "tokens.h"

static const char *const jsonl_endings[] = {".jsonl", NULL};

static const char *const npy_endings[] = {".npy", NULL};
static const char *const megatron_endings[] = {".bin", ".idx", NULL};
static const char *const mds_endings[] = {".mds", NULL};
static const char *const packed_endings[] = {".safetensors", NULL};
static const char *const tar_endings[] = {".tar",  ".tgz",  ".txz",
                                          ".tbz2", ".tzst", NULL};
static const char *const raw_endings[] = {".bin", ".raw", ".npy", NULL}; // see --format
static const char *const arrow_endings[] = {".arrow", ".arrows", ".feather", NULL};

static const char *const parquet_endings[] = {".parquet", NULL};

static bool parquet_is(const char *bytes, size_t n)
{
    return n >= 4 && memcmp(bytes, "PAR1", 4) == 0;
}

/* There is no C library for it that is kept well, and pyarrow is at hand where Parquet
 * is written. */
static int parquet_open(void **state, struct inflow *in, const struct read_rules *rules)
{
    (void)state;
    (void)rules;
    return err_set(E_FORMAT,
                   "%s: Parquet is not read; convert it: python3 -c 'import "
                   "pyarrow.parquet as p, pyarrow.feather as f; "
                   "f.write_feather(p.read_table(\"%s\"), \"data.arrow\")'",
                   in->name, in->path);
}

static const struct reader readers[] = {
    {.name = "npy",
     .endings = npy_endings,
     .is = npy_is,
     .open = read_npy_open,
     .close = mem_free,
     .block = tokens_block,
     .parse = tokens_parse},
    {.name = "megatron",
     .endings = megatron_endings,
     .is = megatron_is,
     .beside = megatron_beside,
     .open = megatron_open,
     .close = megatron_close,
     .block = megatron_block,
     .parse = tokens_parse},
    {.name = "tar",
     .endings = tar_endings,
     .is = tar_is,
     .open = tar_open,
     .close = tar_close,
     .block = tar_block,
     .parse = tar_parse},
    {.name = "mds",
     .endings = mds_endings,
     .is = mds_is,
     .open = mds_open,
     .close = mds_close,
     .block = mds_block,
     .parse = mds_parse},
    {.name = "packed",
     .endings = packed_endings,
     .is = packed_is,
     .open = packed_open,
     .close = packed_close,
     .block = packed_block,
     .parse = packed_parse},
    {.name = "raw",
     .endings = raw_endings,
     .open = read_raw_open,
     .close = mem_free,
     .block = tokens_block,
     .parse = tokens_parse},
    {.name = "jsonl",
     .endings = jsonl_endings,
     .is = jsonl_is,
     .open = jsonl_open,
     .block = jsonl_block,
     .parse = jsonl_parse},
    {.name = "arrow",
     .endings = arrow_endings,
     .is = arrow_is,
     .open = arrow_open,
     .close = arrow_close,
     .block = arrow_block,
     .parse = arrow_parse},
    {.name = "parquet",
     .endings = parquet_endings,
     .is = parquet_is,
     .open = parquet_open},
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

/* Whether the first n bytes of a name end so. */
static bool ends_in(const char *name, size_t n, const char *end)
{
    size_t k = strlen(end);
    return n > k && memcmp(name + n - k, end, k) == 0;
}

/* The length of a name without what says how it is compressed. */
static size_t plain_length(const char *name)
{
    static const char *const packed[] = {".zst", ".zstd", ".gz", ".xz",
                                         ".bz2", ".lz4",  ".lz", ".Z"};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (ends_in(name, n, packed[i]))
            return n - strlen(packed[i]);
    return n;
}

bool reader_takes(const struct reader *r, const char *name)
{
    size_t n = plain_length(name);
    for (const char *const *end = r->endings; *end; end++)
        if (ends_in(name, n, *end))
            return true;
    return false;
}

const struct reader *reader_of_name(const char *name)
{
    for (int i = 0; i < READERS; i++)
        if (reader_takes(&readers[i], name))
            return &readers[i];
    return NULL;
}

int reader_of_content(const struct reader **out, struct inflow *in)
{
    TRY(inflow_more(in, 4096));
    if (in->have.len == 0 && (*out = reader_of_name(in->name))) // then that is damage
        return 0;
    for (int i = 0; i < READERS; i++) {
        const struct reader *r = &readers[i];
        if ((r->is && r->is(buf_text(&in->have), in->have.len)) ||
            (r->beside && r->beside(in->path))) {
            *out = &readers[i];
            return 0;
        }
    }
    return err_set(E_FORMAT,
                   "%s: unknown format (see draft-pack(1); --format names one)",
                   in->name);
}
