/* SPDX-License-Identifier: MIT */
/* arrow_schema.h - the columns of an Arrow file that pack reads, and where they lie.
 *
 * A record batch lists the buffers of all columns, those inside of lists too, in the
 * order of the schema.  So all columns are walked through once, and of those that count
 * the first buffer is kept; they are those of fields.h.  Source: format/Schema.fbs of
 * apache/arrow, and arrow.apache.org/docs/format/Columnar.html. */
#ifndef ARROW_SCHEMA_H
#define ARROW_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "fields.h"
#include "flat.h"

enum arrow_form {
    ARROW_ABSENT, /* not there, or nothing but nulls */
    ARROW_LIST,   /* offsets of 4 bytes */
    ARROW_LARGE,  /* of 8 */
    ARROW_FIXED   /* none: `fixed` items a row */
};

struct arrow_column {
    enum arrow_form form;
    int64_t fixed;
    enum ints_type type;  /* of an item; INTS_NONE: a bit */
    int64_t node, buffer; /* the first of its own; the items' follow */
    int64_t views;        /* columns before it whose number of buffers varies */
};

struct arrow_schema {
    struct arrow_column column[FIELDS];
};

/* arrow_schema_read fills `s` from a schema table of metadata `version` (3: V4, 4: V5).
 * E_FORMAT: no input_ids, a column of ours of a type that cannot be read, or garbage.
 */
int arrow_schema_read(struct arrow_schema *s, const struct flat_table *schema,
                      int64_t version);

#endif
