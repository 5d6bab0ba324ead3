/* SPDX-License-Identifier: MIT */
/* facts.h - what is found out about an input, as aligned text or as one JSON object.
 *
 * The same calls make both forms: text rounds for people, JSON has the numbers.  Keys
 * are single words; in text the underscore becomes a space. */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

struct facts {
    struct buf out;
    struct json_out json;
    bool as_json;
};

/* facts_begin starts an input's facts: a word for JSON, a phrase for people. */
void facts_begin(struct facts *f, const char *input, const char *kind,
                 const char *phrase);

void facts_text(struct facts *f, const char *key, const char *value);
void facts_count(struct facts *f, const char *key, int64_t n);
void facts_bytes(struct facts *f, const char *key, uint64_t n);
void facts_share(struct facts *f, const char *key, double part, double whole);
void facts_hash(struct facts *f, const char *key, uint64_t value);

/* Texts under names that are not ours: an object in JSON. */
void facts_pairs(struct facts *f, const char *key);
void facts_pair(struct facts *f, const char *key, const char *value);
void facts_pairs_end(struct facts *f);

/* A list of things of the same kind, each of a few parts: one line in text, an object
 * in JSON.  In text the parts' keys are not shown where `bare`. */
void facts_list(struct facts *f, const char *key);
void facts_item(struct facts *f);
void facts_part_text(struct facts *f, const char *key, const char *value, bool bare);
void facts_part_shape(struct facts *f, const char *key, int rank, const int64_t *dim);
void facts_part_count(struct facts *f, const char *key, int64_t n);
void facts_part_real(struct facts *f, const char *key, double v);
/* A longer text: in text form on lines of its own, with control bytes but for ends of
 * lines and tabs written as \\xNN, since a terminal would obey them. */
void facts_part_block(struct facts *f, const char *key, const struct buf *text);
void facts_item_end(struct facts *f);
void facts_list_end(struct facts *f);

/* facts_end prints all.  After facts_fail an input has only its name and the reason. */
int facts_end(struct facts *f, FILE *to);
int facts_fail(struct facts *f, FILE *to, const char *input, const char *why);

#endif
