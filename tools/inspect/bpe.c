/* SPDX-License-Identifier: MIT */
/* bpe.c - the byte-level alphabet undone.
 *
 * GPT-2's tokenizer writes each byte of a piece as one printable character: those that
 * are printable in Latin-1 stand for themselves, the others follow from U+0100 on in
 * ascending order.  (openai/gpt-2, src/encoder.py, bytes_to_unicode.) */
#include "bpe.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "err.h"
#include "json.h"
#include "mem.h"

enum { ALPHABET = 256 + 68, IDS_MAX = 1 << 24 };

struct piece {
    char *bytes;
    size_t n;
};

struct bpe {
    struct piece *piece;
    int64_t pieces;
};

static bool stands_for_itself(int byte)
{
    return (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
           byte >= 0xae;
}

/* byte[c] is the byte that character U+c stands for, -1: none. */
static void alphabet(int16_t byte[ALPHABET])
{
    int next = 256;
    memset(byte, 0xff, ALPHABET * sizeof *byte);
    for (int b = 0; b < 256; b++)
        byte[stands_for_itself(b) ? b : next++] = (int16_t)b;
}

/* The characters of valid UTF-8 below U+0800, which hold the alphabet; -1: others. */
static int take_character(const char **text)
{
    const unsigned char *s = (const unsigned char *)*text;
    int n = s[0] < 0x80 ? 1 : 2;
    *text += n;
    if (n == 1)
        return s[0];
    return (s[0] & 0xe0) == 0xc0 ? (s[0] & 0x1f) << 6 | (s[1] & 0x3f) : -1;
}

/* Writes a piece's bytes over its text; false: not written in the alphabet. */
static bool undo(const int16_t byte[ALPHABET], char *out, size_t *n, const char *text)
{
    *n = 0;
    while (*text) {
        int c = take_character(&text);
        if (c < 0 || c >= ALPHABET || byte[c] < 0)
            return false;
        out[(*n)++] = (char)byte[c];
    }
    return true;
}

static int grow(struct bpe *b, int64_t id)
{
    if (id < 0 || id >= IDS_MAX)
        return err_set(E_FORMAT, "id %" PRId64 " is out of range", id);
    if (id < b->pieces)
        return 0;
    int64_t n = id + 1 > 2 * b->pieces ? id + 1 : 2 * b->pieces;
    size_t size = sizeof *b->piece, old = (size_t)b->pieces * size;
    struct piece *p = mem_grow(b->piece, old, (size_t)n * size);
    if (!p)
        return E_MEMORY;
    memset((char *)p + old, 0, (size_t)n * size - old);
    b->piece = p;
    b->pieces = n;
    return 0;
}

/* Sets an id's bytes; without an alphabet the text is meant as it stands. */
static int set(struct bpe *b, int64_t id, const char *text, const int16_t *byte)
{
    TRY(grow(b, id));
    struct piece *p = &b->piece[id];
    char *copy = mem_text(text);
    if (!copy)
        return E_MEMORY;
    mem_free(p->bytes);
    *p = (struct piece){copy, strlen(copy)};
    if (!byte)
        return 0;
    if (!undo(byte, copy, &p->n, text)) {
        p->n = strlen(text);
        memcpy(copy, text, p->n);
    }
    return 0;
}

static int unsupported(const char *what, const char *type)
{
    return err_set(E_FORMAT,
                   "%s %s is unsupported: only byte-level BPE is decoded here", what,
                   type);
}

static int check_decoder(const struct json *v)
{
    const char *type;
    const struct json *list;
    TRY(json_need_text(v, "type", &type));
    if (strcmp(type, "ByteLevel") == 0)
        return 0;
    if (strcmp(type, "Sequence") != 0)
        return unsupported("decoder", type);
    TRY(json_need_array(v, "decoders", &list));
    for (int64_t i = 0; i < json_size(list); i++)
        TRY(check_decoder(json_at(list, i)));
    return json_size(list) > 0 ? 0 : unsupported("decoder", "without parts");
}

static int check_kind(const struct json *root, const struct json **vocab)
{
    const struct json *model, *decoder;
    const char *type;
    TRY(json_need_object(root, "model", &model));
    TRY(json_need_text(model, "type", &type));
    if (strcmp(type, "BPE") != 0)
        return unsupported("model", type);
    TRY(json_need_object(root, "decoder", &decoder));
    TRY(check_decoder(decoder));
    return json_need_object(model, "vocab", vocab);
}

static int add_vocab(struct bpe *b, const struct json *vocab)
{
    int16_t byte[ALPHABET];
    void *iter = NULL;
    const char *text;
    const struct json *value;
    int64_t id;
    alphabet(byte);
    while (json_each(vocab, &iter, &text, &value)) {
        int rc = json_to_int(value, &id);
        if (rc == 0)
            rc = set(b, id, text, byte);
        if (rc < 0)
            return err_wrap(rc, "piece \"%s\"", text);
    }
    return 0;
}

/* Added tokens are written as they are meant. */
static int add_added(struct bpe *b, const struct json *root)
{
    const struct json *list = json_get(root, "added_tokens");
    for (int64_t i = 0; list && i < json_size(list); i++) {
        const struct json *t = json_at(list, i);
        const char *text;
        int64_t id;
        TRY(json_need_int(t, "id", &id));
        TRY(json_need_text(t, "content", &text));
        TRY(set(b, id, text, NULL));
    }
    return 0;
}

int bpe_open(struct bpe **out, const char *path)
{
    struct json *root;
    const struct json *vocab;
    TRY(json_load(&root, path));
    struct bpe *b = mem_zero(1, sizeof *b);
    int rc = b ? check_kind(root, &vocab) : E_MEMORY;
    if (rc == 0)
        rc = add_vocab(b, vocab);
    if (rc == 0)
        rc = add_added(b, root);
    json_free(root);
    if (rc < 0) {
        bpe_close(b);
        return err_wrap(rc, "%s", path);
    }
    *out = b;
    return 0;
}

void bpe_close(struct bpe *b)
{
    if (!b)
        return;
    for (int64_t i = 0; i < b->pieces; i++)
        mem_free(b->piece[i].bytes);
    mem_free(b->piece);
    mem_free(b);
}

const char *bpe_piece(const struct bpe *b, int32_t id, size_t *n)
{
    if (id < 0 || id >= b->pieces)
        return NULL;
    *n = b->piece[id].n;
    return b->piece[id].bytes;
}
