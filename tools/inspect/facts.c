/* SPDX-License-Identifier: MIT */
/* facts.c - two forms of one report. */
#include "facts.h"

#include <string.h>

#include "err.h"
#include "hash.h"
#include "num.h"

enum { INDENT = 2, KEY_WIDTH = 12 };

void facts_begin(struct facts *f, const char *input, const char *kind,
                 const char *phrase)
{
    buf_clear(&f->out);
    f->json = (struct json_out){.to = &f->out};
    if (!f->as_json) {
        buf_addf(&f->out, "%s: %s\n", input, phrase);
        return;
    }
    json_open_object(&f->json, NULL);
    json_add_text(&f->json, "input", input);
    json_add_bool(&f->json, "ok", true);
    json_add_text(&f->json, "kind", kind);
}

static void add_key(struct facts *f, const char *key)
{
    buf_fill(&f->out, ' ', INDENT);
    for (const char *c = key; *c; c++)
        buf_addc(&f->out, *c == '_' ? ' ' : *c);
    size_t n = strlen(key);
    buf_fill(&f->out, ' ', n < KEY_WIDTH ? KEY_WIDTH - n : 1);
}

/* Text comes from files: control bytes, which a terminal would obey, become '?'. */
static void add_safe(struct buf *to, const char *text)
{
    for (const char *c = text; *c; c++)
        buf_addc(to, (unsigned char)*c < 32 || *c == 127 ? '?' : *c);
}

static void line(struct facts *f, const char *key, const char *value)
{
    add_key(f, key);
    add_safe(&f->out, value);
    buf_addc(&f->out, '\n');
}

void facts_text(struct facts *f, const char *key, const char *value)
{
    if (f->as_json)
        json_add_text(&f->json, key, value);
    else
        line(f, key, value);
}

void facts_count(struct facts *f, const char *key, int64_t n)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)n);
    if (f->as_json)
        json_add_int(&f->json, key, n);
    else
        line(f, key, text);
}

void facts_bytes(struct facts *f, const char *key, uint64_t n)
{
    char text[32];
    if (f->as_json)
        json_add_int(&f->json, key, (int64_t)n);
    else
        line(f, key, num_bytes(text, sizeof text, (double)n));
}

void facts_share(struct facts *f, const char *key, double part, double whole)
{
    char text[32];
    double share = whole > 0 ? part / whole : 0;
    snprintf(text, sizeof text, "%.2f %%", 100 * share);
    if (f->as_json)
        json_add_real(&f->json, key, share);
    else
        line(f, key, text);
}

void facts_hash(struct facts *f, const char *key, uint64_t value)
{
    char text[HASH_TEXT];
    facts_text(f, key, hash_text(text, value));
}

/* ---- lists ---- */

static void open_lines(struct facts *f, const char *key)
{
    add_key(f, key);
    f->out.len -= f->out.len > 0; // room for the space in front of each part
    f->json.comma = false;        // the first item goes on behind the key
}

void facts_list(struct facts *f, const char *key)
{
    if (f->as_json)
        json_open_array(&f->json, key);
    else
        open_lines(f, key);
}

void facts_pairs(struct facts *f, const char *key)
{
    if (f->as_json)
        json_open_object(&f->json, key);
    else
        open_lines(f, key);
}

void facts_item(struct facts *f)
{
    if (f->as_json)
        json_open_object(&f->json, NULL);
    else if (f->json.comma)
        buf_fill(&f->out, ' ', INDENT + KEY_WIDTH - 1);
}

void facts_part_text(struct facts *f, const char *key, const char *value, bool bare)
{
    if (f->as_json) {
        json_add_text(&f->json, key, value);
        return;
    }
    if (!bare)
        buf_addf(&f->out, " %s", key);
    buf_addc(&f->out, ' ');
    add_safe(&f->out, value);
}

void facts_part_shape(struct facts *f, const char *key, int rank, const int64_t *dim)
{
    if (f->as_json) {
        json_open_array(&f->json, key);
        for (int i = 0; i < rank; i++)
            json_add_int(&f->json, NULL, dim[i]);
        json_close_array(&f->json);
        return;
    }
    buf_adds(&f->out, " [");
    for (int i = 0; i < rank; i++)
        buf_addf(&f->out, i ? ",%lld" : "%lld", (long long)dim[i]);
    buf_addc(&f->out, ']');
}

void facts_part_count(struct facts *f, const char *key, int64_t n)
{
    if (f->as_json)
        json_add_int(&f->json, key, n);
    else
        buf_addf(&f->out, " %s %lld", key, (long long)n);
}

void facts_part_real(struct facts *f, const char *key, double v)
{
    if (f->as_json)
        json_add_real(&f->json, key, v);
    else
        buf_addf(&f->out, " %s %.5g", key, v);
}

/* A NUL, which would end the text, becomes what JSON makes of other bytes that are no
 * text. */
static void add_json_block(struct facts *f, const char *key, const struct buf *text)
{
    struct buf whole = {0};
    for (size_t i = 0; i < text->len; i++)
        buf_add(&whole, text->p[i] ? &text->p[i] : "\xff", 1);
    json_add_text(&f->json, key, buf_text(&whole));
    f->out.failed = f->out.failed || whole.failed;
    buf_drop(&whole);
}

void facts_part_block(struct facts *f, const char *key, const struct buf *text)
{
    if (f->as_json) {
        add_json_block(f, key, text);
        return;
    }
    buf_addc(&f->out, '\n');
    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->p[i];
        bool second = i > 0 && (unsigned char)text->p[i - 1] == 0xc2; // U+0080 .. 9f
        if ((c < 32 && c != '\n' && c != '\t') || c == 127 || (second && c < 0xa0))
            buf_addf(&f->out, "\\x%02x", c);
        else
            buf_addc(&f->out, (char)c);
    }
}

void facts_item_end(struct facts *f)
{
    if (f->as_json) {
        json_close_object(&f->json);
        return;
    }
    buf_addc(&f->out, '\n');
    f->json.comma = true;
}

void facts_list_end(struct facts *f)
{
    if (f->as_json)
        json_close_array(&f->json);
    else if (!f->json.comma)
        buf_adds(&f->out, " none\n");
}

/* A long value, such as a list of files, would fill the screen. */
void facts_pair(struct facts *f, const char *key, const char *value)
{
    enum { LONG = 200 };
    size_t n = strlen(value);
    if (f->as_json) {
        json_add_text(&f->json, key, value);
        return;
    }
    facts_item(f);
    facts_part_text(f, key, n > LONG ? "" : value, false);
    if (n > LONG)
        buf_addf(&f->out, "(%zu bytes)", n);
    facts_item_end(f);
}

void facts_pairs_end(struct facts *f)
{
    if (f->as_json)
        json_close_object(&f->json);
    else
        facts_list_end(f);
}

/* ---- the end ---- */

static int print(struct facts *f, FILE *to)
{
    TRY(buf_check(&f->out));
    if (fwrite(buf_text(&f->out), 1, f->out.len, to) != f->out.len)
        return err_set(E_IO, "cannot write standard output");
    return 0;
}

int facts_end(struct facts *f, FILE *to)
{
    if (f->as_json) {
        json_close_object(&f->json);
        buf_addc(&f->out, '\n');
    }
    return print(f, to);
}

int facts_fail(struct facts *f, FILE *to, const char *input, const char *why)
{
    if (!f->as_json)
        return 0;
    buf_clear(&f->out);
    f->json = (struct json_out){.to = &f->out};
    json_open_object(&f->json, NULL);
    json_add_text(&f->json, "input", input);
    json_add_bool(&f->json, "ok", false);
    json_add_text(&f->json, "error", why);
    return facts_end(f, to);
}
