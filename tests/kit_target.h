/* SPDX-License-Identifier: MIT */
/* kit_target.h - what the tests of targets share: golden texts, passes, comparisons.
 *
 * A golden folder (tests/golden/README.md) holds nine documents of 1 to 130 tokens and
 * what the model of its name makes of each alone.  A failure fails the running test. */
#ifndef KIT_TARGET_H
#define KIT_TARGET_H

#include "kit_model.h"
#include "target.h"

enum { KIT_DOCS = 9, KIT_TOKENS = 350, KIT_GREEDY = 16 };

struct kit_text {
    struct st_file file;
    const int32_t *ids, *cu, *argmax, *greedy;
    const float *hidden, *logits;
    int64_t
        entries; /* of hidden: the embedding and every layer, or the last one alone */
    int32_t doc[KIT_TOKENS], pos[KIT_TOKENS], lo[KIT_TOKENS], hi[KIT_TOKENS];
};
void kit_text_open(struct kit_text *g, const char *path);
void kit_text_close(struct kit_text *g);

/* A target on the CPU, all of it. */
struct kit_bench {
    struct par *par;
    struct dev *dev;
    struct target *target;
    int64_t hidden, vocab, layers;
};
void kit_bench_open(struct kit_bench *b, const char *model, int threads);
void kit_bench_close(struct kit_bench *b);

/* What a pass gives for each row: the residual after every layer, side by side, the
 * last one again, and logits; f32. */
struct kit_outcome {
    struct tensor aux, last, logits;
};
struct kit_outcome kit_outcome_new(const struct kit_bench *b, int64_t rows);
void kit_outcome_free(struct kit_outcome *o);

/* kit_pass runs rows given by host arrays, into rows [at, at + rows) of o. */
void kit_pass(struct kit_bench *b, struct kit_outcome *o, int64_t at, int64_t rows,
              const int32_t *ids, const int32_t *pos, const int32_t *lo,
              const int32_t *hi, struct cache *cache);

/* kit_packed runs the whole text as one packed row into a new outcome; kit_piece
 * appends tokens [begin, end) of document d to a cache (NULL: begin is 0). */
void kit_packed(struct kit_bench *b, struct kit_outcome *o, const struct kit_text *g);
void kit_piece(struct kit_bench *b, struct kit_outcome *o, const struct kit_text *g,
               int d, int64_t begin, int64_t end, struct cache *cache);

/* kit_cache opens a cache for `capacity` rows, of which `window` of a pass may be cut.
 */
void kit_cache(struct cache *c, struct kit_bench *b, int64_t capacity, int64_t window);

/* kit_same_rows demands that document d's rows of `alone` are those of `packed`. */
void kit_same_rows(const char *what, struct kit_outcome *alone,
                   struct kit_outcome *packed, const struct kit_text *g, int d);

/* kit_layer copies layer l's part out of aux, [KIT_TOKENS, hidden]. */
void kit_layer(float *out, const struct kit_bench *b, const struct kit_outcome *o,
               int64_t l);

int32_t kit_best(const float *logits, int64_t vocab);

/* kit_values runs the text packed and compares everything golden, each tensor within
 * `share` of its largest value; kit_decode decodes greedily behind every document and
 * demands the same tokens. */
void kit_values(struct kit_bench *b, const struct kit_text *g, double share);
void kit_decode(struct kit_bench *b, const struct kit_text *g);

/* kit_check does both with one thread; kit_check_elsewhere does it with every folder
 * DIR/NAME/{model,golden.safetensors} whose target is a hybrid or not, where DIR is
 * what the environment variable GOLDEN says, and says "skip:" without it. */
void kit_check(const char *model, const char *golden, double share);
void kit_check_elsewhere(bool hybrid, double share);

#endif
