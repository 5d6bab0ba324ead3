/* SPDX-License-Identifier: MIT */
/* ledger.c - counts, and two ways to say them. */
#include "ledger.h"

#include <inttypes.h>
#include <string.h>

#include "json.h"
#include "num.h"

static int size_class(int64_t tokens)
{
    int k = 63 - __builtin_clzll((uint64_t)tokens);
    return k < LEDGER_SIZES ? k : LEDGER_SIZES - 1;
}

void ledger_document(struct ledger_side *s, int64_t tokens, bool unmasked)
{
    s->documents++;
    s->unmasked += unmasked;
    s->document_tokens += tokens;
    s->size[size_class(tokens)]++;
}

/* Sums of bytes are kept in bytes, which vectors are full of: 255 ones at most. */
struct ledger_worth ledger_weigh(const uint8_t *mask, int64_t n, int64_t skip)
{
    enum { RUN = 255 };
    struct ledger_worth w = {0, 0};
    for (int64_t at = skip; at < n; at += RUN) {
        int64_t run = n - at < RUN ? n - at : RUN, pairs = run - (at + run == n);
        uint8_t ones = 0, both = 0;
        for (int64_t i = 0; i < run; i++)
            ones = (uint8_t)(ones + mask[at + i]);
        for (int64_t i = 0; i < pairs; i++)
            both = (uint8_t)(both + (mask[at + i] & mask[at + i + 1]));
        w.supervised += ones;
        w.anchors += both;
    }
    return w;
}

void ledger_piece(struct ledger_side *s, int64_t tokens, struct ledger_worth w)
{
    s->pieces++;
    s->tokens += tokens;
    s->supervised += w.supervised;
    s->anchors += w.anchors;
}

static double density(const struct ledger *l, const struct ledger_side *s)
{
    return s->rows ? (double)s->tokens / (double)(s->rows * l->length) : 0;
}

/* ---- JSON ---- */

static void write_side(struct json_out *o, const char *name, const struct ledger *l,
                       const struct ledger_side *s)
{
    json_open_object(o, name);
    json_add_int(o, "rows", s->rows);
    json_add_real(o, "density", density(l, s));
    json_add_int(o, "documents", s->documents);
    json_add_int(o, "document_tokens", s->document_tokens);
    json_add_int(o, "unmasked_documents", s->unmasked);
    json_add_int(o, "pieces", s->pieces);
    json_add_int(o, "tokens", s->tokens);
    json_add_int(o, "supervised_tokens", s->supervised);
    json_add_int(o, "anchors", s->anchors);
    json_open_object(o, "dropped");
    json_add_int(o, "long_documents", s->long_documents);
    json_add_int(o, "long_tokens", s->long_tokens);
    json_add_int(o, "unsupervised_pieces", s->poor_pieces);
    json_add_int(o, "unsupervised_tokens", s->poor_tokens);
    json_add_int(o, "duplicate_documents", s->double_documents);
    json_add_int(o, "duplicate_tokens", s->double_tokens);
    json_close_object(o);
    json_open_array(o, "lengths");
    for (int k = 0; k < LEDGER_SIZES; k++) {
        if (s->size[k] == 0)
            continue;
        json_open_object(o, NULL);
        json_add_int(o, "from", (int64_t)1 << k);
        json_add_int(o, "to", ((int64_t)2 << k) - 1);
        json_add_int(o, "documents", s->size[k]);
        json_close_object(o);
    }
    json_close_array(o);
    json_close_object(o);
}

void ledger_write(const struct ledger *l, struct buf *out)
{
    struct json_out o = {.to = out, .indent = 2};
    json_open_object(&o, NULL);
    json_add_int(&o, "length", l->length);
    json_add_int(&o, "files", l->files);
    json_add_int(&o, "files_ignored", l->ignored);
    json_add_int(&o, "files_empty", l->empty);
    json_add_int(&o, "bytes", l->bytes);
    json_add_int(&o, "records", l->records);
    json_add_int(&o, "rejected", l->rejected);
    json_open_object(&o, "rejects");
    for (int k = REJECT_NONE + 1; k < REJECT_KINDS; k++)
        if (l->reject[k])
            json_add_int(&o, document_reject_name((enum reject)k), l->reject[k]);
    json_close_object(&o);
    write_side(&o, "train", l, &l->train);
    if (l->has_valid)
        write_side(&o, "valid", l, &l->valid);
    json_close_object(&o);
    buf_addc(out, '\n');
}

/* ---- for people ---- */

static const char *count(char out[32], int64_t v)
{
    return num_count(out, 32, (double)v);
}

static void tell_lengths(const struct ledger_side *s, struct log *log)
{
    enum { BAR = 40 };
    int64_t most = 1;
    for (int k = 0; k < LEDGER_SIZES; k++)
        most = s->size[k] > most ? s->size[k] : most;
    for (int k = 0; k < LEDGER_SIZES; k++) {
        char bar[BAR + 1] = "";
        if (s->size[k] == 0)
            continue;
        memset(bar, '#', (size_t)((s->size[k] * BAR + most - 1) / most));
        log_note(log, "  %9" PRId64 " tokens or more %9" PRId64 " %s", (int64_t)1 << k,
                 s->size[k], bar);
    }
}

static void tell_side(const struct ledger *l, const char *name,
                      const struct ledger_side *s, struct log *log)
{
    char tokens[32], supervised[32], anchors[32];
    log_note(log, "%s: %" PRId64 " rows of %" PRId64 " tokens, %.3f %% full", name,
             s->rows, l->length, 100 * density(l, s));
    log_note(log,
             "  %" PRId64 " documents in %" PRId64 " pieces: %s tokens, %s supervised, "
             "%s anchors",
             s->documents, s->pieces, count(tokens, s->tokens),
             count(supervised, s->supervised), count(anchors, s->anchors));
    if (s->unmasked)
        log_note(log,
                 "  %" PRId64 " documents came without a mask: all their tokens are "
                 "supervised",
                 s->unmasked);
    if (s->long_documents)
        log_note(log, "  %" PRId64 " documents too long: %s tokens left out",
                 s->long_documents, count(tokens, s->long_tokens));
    if (s->poor_pieces)
        log_note(log,
                 "  %" PRId64 " pieces with too few supervised tokens: %s tokens "
                 "left out",
                 s->poor_pieces, count(tokens, s->poor_tokens));
    if (s->double_documents)
        log_note(log, "  %" PRId64 " documents that came before: %s tokens left out",
                 s->double_documents, count(tokens, s->double_tokens));
    tell_lengths(s, log);
}

void ledger_tell(const struct ledger *l, struct log *log)
{
    tell_side(l, "training", &l->train, log);
    if (l->has_valid)
        tell_side(l, "validation", &l->valid, log);
    if (l->ignored)
        log_note(log, "%" PRId64 " files of other names were not read", l->ignored);
    for (int k = REJECT_NONE + 1; k < REJECT_KINDS; k++)
        if (l->reject[k])
            log_warn(log, "%" PRId64 " of %" PRId64 " records refused: %s",
                     l->reject[k], l->records, document_reject_name((enum reject)k));
}
