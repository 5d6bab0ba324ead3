/* SPDX-License-Identifier: MIT */
/* json.h - reading and writing JSON; the only file that knows jansson.
 *
 * Documents are strict: duplicate keys, trailing bytes, NUL in strings and numbers out
 * of range are E_FORMAT with line and column.  Getters come in two kinds: json_need_*
 * fail when the key is absent or of another type, json_have_* leave *out untouched and
 * return 0 when it is absent or null (1 when it was read), and fail on another type.
 * Messages name the key; the caller wraps with the file. */
#ifndef JSON_H
#define JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"

struct json; /* a value; children are owned by their root */

int json_parse(struct json **out, const char *text, size_t n);
int json_load(struct json **out, const char *path); /* wraps with the path */
void json_free(struct json *root);                  /* roots only; NULL is fine */

const struct json *json_get(const struct json *obj, const char *key); /* NULL: absent */
bool json_is_null(const struct json *v);
bool json_is_object(const struct json *v);
bool json_is_array(const struct json *v);
bool json_is_text(const struct json *v);
int64_t json_size(
    const struct json *v); /* items of an array, keys of an object, else 0 */
const struct json *json_at(const struct json *array, int64_t i);

int json_need_int(const struct json *obj, const char *key, int64_t *out);
int json_need_real(const struct json *obj, const char *key, double *out); /* int too */
int json_need_bool(const struct json *obj, const char *key, bool *out);
int json_need_text(const struct json *obj, const char *key, const char **out);
int json_need_object(const struct json *obj, const char *key, const struct json **out);
int json_need_array(const struct json *obj, const char *key, const struct json **out);
int json_have_int(const struct json *obj, const char *key, int64_t *out);
int json_have_real(const struct json *obj, const char *key, double *out);
int json_have_bool(const struct json *obj, const char *key, bool *out);
int json_have_text(const struct json *obj, const char *key, const char **out);

/* Values without a key, for arrays.  E_FORMAT on another type. */
int json_to_int(const struct json *v, int64_t *out);
int json_to_real(const struct json *v, double *out);
int json_to_bool(const struct json *v, bool *out);
int json_to_text(const struct json *v, const char **out);

/* json_each walks an object's keys in file order: start with *iter = NULL; false ends.
 */
bool json_each(const struct json *obj, void **iter, const char **key,
               const struct json **value);

/* json_utf8: is a text valid UTF-8, so that it is written as it is?
 * json_utf8_length is the length of the valid sequence that begins at s, or 0; it looks
 * no further than the first byte that does not fit. */
bool json_utf8(const char *text);
int json_utf8_length(const char *s);

/* Writing: json_open_object / json_open_array nest, keys are written where they are
 * given, in the order of the calls; commas and escapes are json's business.  `key` is
 * NULL inside arrays and for the root.  `indent` 0 writes one line without spaces.
 * Reals are the shortest text that reads back equal; NaN and infinity are null.  Bytes
 * that are not UTF-8 become U+FFFD.  Running out of memory shows in the buffer. */
struct json_out {
    struct buf *to;
    int indent, depth;
    bool comma;
};
void json_open_object(struct json_out *o, const char *key);
void json_close_object(struct json_out *o);
void json_open_array(struct json_out *o, const char *key);
void json_close_array(struct json_out *o);
void json_add_int(struct json_out *o, const char *key, int64_t v);
void json_add_real(struct json_out *o, const char *key, double v);
void json_add_bool(struct json_out *o, const char *key, bool v);
void json_add_text(struct json_out *o, const char *key, const char *v);
void json_add_null(struct json_out *o, const char *key);

#endif
