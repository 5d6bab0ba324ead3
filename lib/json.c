/* SPDX-License-Identifier: MIT */
/* json.c - reading through jansson, writing by hand.
 *
 * struct json is a name for json_t: values are handed out as they lie in jansson's
 * tree.  Writing needs no tree, so it appends text, and numbers come out the same in
 * every build. */
#include <jansson.h>

/* Macros there, functions here. */
#undef json_is_null
#undef json_is_object
#undef json_is_array

#include "json.h"

#include <math.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "mem.h"
#include "num.h"

static json_t *inner(const struct json *v)
{
    return (json_t *)v;
}

static const struct json *outer(const json_t *v)
{
    return (const struct json *)v;
}

/* ---- reading ---- */

int json_parse(struct json **out, const char *text, size_t n)
{
    json_error_t e;
    /* jansson takes a NUL byte for the end of the text. */
    const char *nul = n ? memchr(text, 0, n) : NULL;
    if (nul)
        return err_set(E_FORMAT, "bad JSON: a NUL at byte %zu", (size_t)(nul - text));
    json_t *root =
        json_loadb(n ? text : "", n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    if (root) {
        *out = (struct json *)root;
        return 0;
    }
    if (json_error_code(&e) == json_error_out_of_memory)
        return err_set(E_MEMORY, "no memory for JSON of %zu bytes", n);
    return err_set(E_FORMAT, "bad JSON in line %d, column %d: %s", e.line, e.column,
                   e.text);
}

int json_load(struct json **out, const char *path)
{
    char *text;
    size_t n;
    TRY(file_read(path, &text, &n));
    int rc = json_parse(out, text, n);
    mem_free(text);
    return rc < 0 ? err_wrap(rc, "%s", path) : 0;
}

void json_free(struct json *root)
{
    json_decref(inner(root));
}

const struct json *json_get(const struct json *obj, const char *key)
{
    return outer(json_object_get(inner(obj), key));
}

static bool has_type(const struct json *v, json_type type)
{
    return v && json_typeof(inner(v)) == type;
}

bool json_is_null(const struct json *v)
{
    return has_type(v, JSON_NULL);
}

bool json_is_object(const struct json *v)
{
    return has_type(v, JSON_OBJECT);
}

bool json_is_array(const struct json *v)
{
    return has_type(v, JSON_ARRAY);
}

bool json_is_text(const struct json *v)
{
    return has_type(v, JSON_STRING);
}

int64_t json_size(const struct json *v)
{
    if (json_is_array(v))
        return (int64_t)json_array_size(inner(v));
    return (int64_t)json_object_size(inner(v));
}

const struct json *json_at(const struct json *array, int64_t i)
{
    return i < 0 ? NULL : outer(json_array_get(inner(array), (size_t)i));
}

static const char *type_name(const struct json *v)
{
    if (!v)
        return "nothing";
    switch (json_typeof(inner(v))) {
    case JSON_OBJECT:
        return "an object";
    case JSON_ARRAY:
        return "an array";
    case JSON_STRING:
        return "a text";
    case JSON_INTEGER:
        return "an integer";
    case JSON_REAL:
        return "a number";
    case JSON_TRUE:
    case JSON_FALSE:
        return "true or false";
    default:
        return "null";
    }
}

static int unexpected(const struct json *v, const char *wanted)
{
    return err_set(E_FORMAT, "expected %s, found %s", wanted, type_name(v));
}

int json_to_int(const struct json *v, int64_t *out)
{
    if (!has_type(v, JSON_INTEGER))
        return unexpected(v, "an integer");
    *out = json_integer_value(inner(v));
    return 0;
}

int json_to_real(const struct json *v, double *out)
{
    if (!has_type(v, JSON_REAL) && !has_type(v, JSON_INTEGER))
        return unexpected(v, "a number");
    *out = json_number_value(inner(v));
    return 0;
}

int json_to_text(const struct json *v, const char **out)
{
    if (!json_is_text(v))
        return unexpected(v, "a text");
    *out = json_string_value(inner(v));
    return 0;
}

int json_to_bool(const struct json *v, bool *out)
{
    if (!has_type(v, JSON_TRUE) && !has_type(v, JSON_FALSE))
        return unexpected(v, "true or false");
    *out = has_type(v, JSON_TRUE);
    return 0;
}

static int about_key(int rc, const char *key)
{
    return rc < 0 ? err_wrap(rc, "key \"%s\"", key) : rc;
}

static int need(const struct json *obj, const char *key, const struct json **out)
{
    *out = json_get(obj, key);
    return *out ? 0 : err_set(E_FORMAT, "no key \"%s\"", key);
}

int json_need_int(const struct json *obj, const char *key, int64_t *out)
{
    const struct json *v;
    TRY(need(obj, key, &v));
    return about_key(json_to_int(v, out), key);
}

int json_need_real(const struct json *obj, const char *key, double *out)
{
    const struct json *v;
    TRY(need(obj, key, &v));
    return about_key(json_to_real(v, out), key);
}

int json_need_bool(const struct json *obj, const char *key, bool *out)
{
    const struct json *v;
    TRY(need(obj, key, &v));
    return about_key(json_to_bool(v, out), key);
}

int json_need_text(const struct json *obj, const char *key, const char **out)
{
    const struct json *v;
    TRY(need(obj, key, &v));
    return about_key(json_to_text(v, out), key);
}

int json_need_object(const struct json *obj, const char *key, const struct json **out)
{
    TRY(need(obj, key, out));
    return json_is_object(*out) ? 0 : about_key(unexpected(*out, "an object"), key);
}

int json_need_array(const struct json *obj, const char *key, const struct json **out)
{
    TRY(need(obj, key, out));
    return json_is_array(*out) ? 0 : about_key(unexpected(*out, "an array"), key);
}

static bool have(const struct json *obj, const char *key)
{
    const struct json *v = json_get(obj, key);
    return v && !json_is_null(v);
}

int json_have_int(const struct json *obj, const char *key, int64_t *out)
{
    if (!have(obj, key))
        return 0;
    TRY(json_need_int(obj, key, out));
    return 1;
}

int json_have_real(const struct json *obj, const char *key, double *out)
{
    if (!have(obj, key))
        return 0;
    TRY(json_need_real(obj, key, out));
    return 1;
}

int json_have_bool(const struct json *obj, const char *key, bool *out)
{
    if (!have(obj, key))
        return 0;
    TRY(json_need_bool(obj, key, out));
    return 1;
}

int json_have_text(const struct json *obj, const char *key, const char **out)
{
    if (!have(obj, key))
        return 0;
    TRY(json_need_text(obj, key, out));
    return 1;
}

bool json_each(const struct json *obj, void **iter, const char **key,
               const struct json **value)
{
    *iter =
        *iter ? json_object_iter_next(inner(obj), *iter) : json_object_iter(inner(obj));
    if (!*iter)
        return false;
    *key = json_object_iter_key(*iter);
    *value = outer(json_object_iter_value(*iter));
    return true;
}

/* ---- writing ---- */

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
int json_utf8_length(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    int n = s[0] < 0x80   ? 1
            : s[0] < 0xc2 ? 0
            : s[0] < 0xe0 ? 2
            : s[0] < 0xf0 ? 3
            : s[0] < 0xf5 ? 4
                          : 0;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

bool json_utf8(const char *text)
{
    while (*text) {
        int n = json_utf8_length(text);
        if (n == 0)
            return false;
        text += n;
    }
    return true;
}

/* A byte that is not UTF-8 becomes U+FFFD: what is written can always be read. */
static void quote(struct buf *to, const char *text)
{
    buf_addc(to, '"');
    for (const unsigned char *s = (const unsigned char *)text; *s;) {
        int n = json_utf8_length((const char *)s);
        if (n == 0)
            buf_adds(to, "\xef\xbf\xbd");
        else if (*s == '"' || *s == '\\')
            buf_addf(to, "\\%c", *s);
        else if (*s == '\n')
            buf_adds(to, "\\n");
        else if (*s < 0x20 || *s == 0x7f)
            buf_addf(to, "\\u%04x", *s);
        else
            buf_add(to, s, (size_t)n);
        s += n ? n : 1;
    }
    buf_addc(to, '"');
}

static void new_line(struct json_out *o)
{
    if (o->indent > 0) {
        buf_addc(o->to, '\n');
        buf_fill(o->to, ' ', (size_t)o->indent * (size_t)o->depth);
    }
}

/* What stands before any value: comma, line, key. */
static void begin(struct json_out *o, const char *key)
{
    if (o->comma)
        buf_addc(o->to, ',');
    if (o->depth > 0)
        new_line(o);
    if (key) {
        quote(o->to, key);
        buf_adds(o->to, o->indent > 0 ? ": " : ":");
    }
    o->comma = true;
}

static void nest(struct json_out *o, const char *key, char bracket)
{
    begin(o, key);
    buf_addc(o->to, bracket);
    o->depth++;
    o->comma = false;
}

static void unnest(struct json_out *o, char bracket)
{
    o->depth--;
    if (o->comma) // not empty
        new_line(o);
    buf_addc(o->to, bracket);
    o->comma = o->depth > 0;
}

void json_open_object(struct json_out *o, const char *key)
{
    nest(o, key, '{');
}

void json_close_object(struct json_out *o)
{
    unnest(o, '}');
}

void json_open_array(struct json_out *o, const char *key)
{
    nest(o, key, '[');
}

void json_close_array(struct json_out *o)
{
    unnest(o, ']');
}

void json_add_int(struct json_out *o, const char *key, int64_t v)
{
    begin(o, key);
    buf_addf(o->to, "%lld", (long long)v);
}

void json_add_real(struct json_out *o, const char *key, double v)
{
    char text[32];
    if (!isfinite(v)) {
        json_add_null(o, key);
        return;
    }
    begin(o, key);
    buf_adds(o->to, num_real(text, sizeof text, v));
    if (!strpbrk(text, ".e")) // stays a real for readers that tell the types apart
        buf_adds(o->to, ".0");
}

void json_add_bool(struct json_out *o, const char *key, bool v)
{
    begin(o, key);
    buf_adds(o->to, v ? "true" : "false");
}

void json_add_text(struct json_out *o, const char *key, const char *v)
{
    begin(o, key);
    quote(o->to, v);
}

void json_add_null(struct json_out *o, const char *key)
{
    begin(o, key);
    buf_adds(o->to, "null");
}
