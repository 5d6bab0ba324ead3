/* SPDX-License-Identifier: MIT */
/* arrow_schema.c - how many buffers each type has, and the types that pack can use. */
#include "arrow_schema.h"

#include <inttypes.h>

#include "buf.h"
#include "err.h"

/* Numbers of fields in Schema.fbs. */
enum { SCHEMA_ENDIANNESS, SCHEMA_FIELDS };
enum { A_NAME, A_TYPE = 2, A_TYPE_TABLE, A_DICTIONARY, A_CHILDREN };
enum { INT_BITS, INT_SIGNED };
enum { FIXED_SIZE };

enum type { T_NULL = 1, T_INT = 2, T_BOOL = 6, T_LIST = 12, T_UNION = 14 };
enum { T_FIXED_LIST = 16, T_LARGE_LIST = 21, TYPES = 27 };

/* Of each type, in the order of Schema.fbs: its name, and the buffers of its own. */
static const struct {
    const char *name;
    int buffers;
    bool view; // and as many more as each batch says
} types[TYPES] = {
    [0] = {"unknown type", 0, false},
    [T_NULL] = {"null", 0, false},
    [T_INT] = {"integer", 2, false},
    [3] = {"float", 2, false},
    [4] = {"binary", 3, false},
    [5] = {"text", 3, false},
    [T_BOOL] = {"bool", 2, false},
    [7] = {"decimal", 2, false},
    [8] = {"date", 2, false},
    [9] = {"time", 2, false},
    [10] = {"timestamp", 2, false},
    [11] = {"interval", 2, false},
    [T_LIST] = {"list", 2, false},
    [13] = {"struct", 1, false},
    [T_UNION] = {"union", 1, false},
    [15] = {"fixed-size binary", 2, false},
    [T_FIXED_LIST] = {"fixed-size list", 1, false},
    [17] = {"map", 2, false},
    [18] = {"duration", 2, false},
    [19] = {"large binary", 3, false},
    [20] = {"large text", 3, false},
    [T_LARGE_LIST] = {"large list", 2, false},
    [22] = {"run-end encoded", 0, false},
    [23] = {"binary view", 2, true},
    [24] = {"text view", 2, true},
    [25] = {"list view", 3, false},
    [26] = {"large list view", 3, false},
};

enum {
    DEEPEST = 64,       // columns inside of columns
    PASSED_MAX = 100000 // a few bytes can describe any number of them
};

/* What has been passed of the schema. */
struct walk {
    int64_t version;
    int64_t nodes, buffers, views, fields;
};

static int type_of(const struct flat_table *field)
{
    int64_t type = flat_int(field, A_TYPE, 1, 0);
    return type > 0 && type < TYPES ? (int)type : 0;
}

static bool is_dictionary(const struct flat_table *field)
{
    return flat_table(field, A_DICTIONARY).at != 0;
}

/* ---- walking ---- */

static int pass(struct walk *w, const struct flat_table *field, int depth);

static int pass_children(struct walk *w, const struct flat_table *field, int depth)
{
    struct flat_vector children = flat_vector(field, A_CHILDREN, 4);
    for (int64_t i = 0; i < children.n; i++) {
        struct flat_table child = flat_item(&children, i);
        TRY(pass(w, &child, depth + 1));
    }
    return 0;
}

/* A union's form, sparse or dense, is a number in its type's table. */
static int union_buffers(const struct walk *w, const struct flat_table *field)
{
    struct flat_table type = flat_table(field, A_TYPE_TABLE);
    bool dense = flat_int(&type, 0, 2, 0) == 1, valid = w->version < 4;
    return 1 + dense + valid;
}

static int pass(struct walk *w, const struct flat_table *field, int depth)
{
    int type = type_of(field);
    if (field->of->bad || depth > DEEPEST || ++w->fields > PASSED_MAX)
        return err_set(E_FORMAT, "the schema is damaged");
    if (type == 0)
        return err_set(E_FORMAT, "the schema has a type that is not known");
    w->nodes++;
    if (is_dictionary(field)) { // then only keys are here
        w->buffers += 2;
        return 0;
    }
    w->buffers += type == T_UNION ? union_buffers(w, field) : types[type].buffers;
    w->views += types[type].view;
    return pass_children(w, field, depth);
}

/* ---- our columns ---- */

static int odd_type(const char *name, const char *of, int type)
{
    return err_set(E_FORMAT, "column %s is %s%s, not a list of whole numbers", name, of,
                   types[type].name);
}

static int set_items(struct arrow_column *c, const char *name,
                     const struct flat_table *item)
{
    int type = type_of(item);
    struct flat_table number = flat_table(item, A_TYPE_TABLE);
    int64_t bits = flat_int(&number, INT_BITS, 4, 0);
    if (is_dictionary(item) || (type != T_INT && type != T_BOOL))
        return odd_type(name, "a list of ", type);
    if (type == T_BOOL)
        return 0;
    bool is_signed = flat_int(&number, INT_SIGNED, 1, 0) != 0;
    c->type = bits == 8    ? (is_signed ? INTS_I8 : INTS_U8)
              : bits == 16 ? (is_signed ? INTS_I16 : INTS_U16)
              : bits == 32 ? (is_signed ? INTS_I32 : INTS_U32)
              : bits == 64 ? (is_signed ? INTS_I64 : INTS_U64)
                           : INTS_NONE;
    if (c->type == INTS_NONE)
        return err_set(E_FORMAT, "column %s has numbers of %" PRId64 " bits", name,
                       bits);
    return 0;
}

static int set_form(struct arrow_column *c, const char *name,
                    const struct flat_table *field)
{
    int type = type_of(field);
    struct flat_table list = flat_table(field, A_TYPE_TABLE);
    if (is_dictionary(field))
        return err_set(E_FORMAT, "column %s is dictionary-encoded", name);
    if (type != T_LIST && type != T_LARGE_LIST && type != T_FIXED_LIST)
        return odd_type(name, "", type);
    c->form = type == T_LIST         ? ARROW_LIST
              : type == T_LARGE_LIST ? ARROW_LARGE
                                     : ARROW_FIXED;
    c->fixed = type == T_FIXED_LIST ? flat_int(&list, FIXED_SIZE, 4, 0) : 0;
    if (type == T_FIXED_LIST && c->fixed < 1)
        return err_set(E_FORMAT, "column %s has lists of %" PRId64 " items", name,
                       c->fixed);
    return 0;
}

static int set_column(struct arrow_schema *s, int column,
                      const struct flat_table *field, const struct walk *before)
{
    struct arrow_column *c = &s->column[column];
    const char *name = fields_name((enum field)column);
    struct flat_vector children = flat_vector(field, A_CHILDREN, 4);
    if (c->node >= 0)
        return err_set(E_FORMAT, "column %s is there twice", name);
    c->node = before->nodes;
    c->buffer = before->buffers;
    c->views = before->views;
    if (type_of(field) == T_NULL && column != FIELD_IDS) // all of it is absent
        return 0;
    TRY(set_form(c, name, field));
    struct flat_table item = children.n == 1 ? flat_item(&children, 0)
                                             : (struct flat_table){.of = field->of};
    if (!item.at)
        return err_set(E_FORMAT, "column %s has no items", name);
    return set_items(c, name, &item);
}

static int look_at(struct arrow_schema *s, const struct flat_table *field,
                   const struct walk *before)
{
    struct flat_vector v = flat_vector(field, A_NAME, 1);
    const char *name = (const char *)v.of->at + v.at;
    enum field f = v.n > 0 ? fields_named(name, (size_t)v.n) : FIELDS;
    if (f == FIELDS || *name == 't') // "tokens" are often words
        return 0;
    return set_column(s, (int)f, field, before);
}

static int no_ids(const struct flat_vector *fields)
{
    struct buf list = {0};
    for (int64_t i = 0; i < fields->n && list.len < 200; i++) {
        struct flat_table field = flat_item(fields, i);
        struct flat_vector name = flat_vector(&field, A_NAME, 1);
        buf_adds(&list, i ? ", " : "");
        if (name.n > 0)
            buf_add(&list, name.of->at + name.at, (size_t)(name.n < 40 ? name.n : 40));
    }
    int rc = err_set(E_FORMAT, "no column input_ids, but: %s", buf_text(&list));
    buf_drop(&list);
    return rc;
}

int arrow_schema_read(struct arrow_schema *s, const struct flat_table *schema,
                      int64_t version)
{
    struct flat_vector fields = flat_vector(schema, SCHEMA_FIELDS, 4);
    struct walk w = {.version = version};
    *s = (struct arrow_schema){0};
    for (int c = 0; c < FIELDS; c++)
        s->column[c].node = -1;
    if (version != 3 && version != 4)
        return err_set(E_FORMAT, "metadata of version %" PRId64 ", not V4 or V5",
                       version + 1);
    if (flat_int(schema, SCHEMA_ENDIANNESS, 2, 0) != 0)
        return err_set(E_FORMAT, "its numbers are big-endian");
    for (int64_t i = 0; i < fields.n; i++) {
        struct flat_table field = flat_item(&fields, i);
        struct walk before = w;
        TRY(pass(&w, &field, 0));
        TRY(look_at(s, &field, &before));
    }
    if (schema->of->bad)
        return err_set(E_FORMAT, "the schema is damaged");
    return s->column[FIELD_IDS].node < 0 ? no_ids(&fields) : 0;
}
