/* SPDX-License-Identifier: MIT */
/* cut.h - documents that are longer than a row.
 *
 * split cuts them into pieces of a row's length and a rest; a piece begins without the
 * context that came before it, so the first `block` tokens of each continuation are not
 * supervised.  cut keeps the first piece only, drop nothing. */
#ifndef CUT_H
#define CUT_H

#include <stdint.h>

enum cut_how { CUT_SPLIT, CUT_CUT, CUT_DROP };

struct cut {
    enum cut_how how;
    int64_t length, block; /* of a row; of a continuation's unsupervised beginning */
    int64_t tokens;        /* of the document */
    int64_t at, n;         /* the piece: first token, tokens */
    int64_t unsupervised;  /* how many tokens at its beginning are not supervised */
};

/* cut_parse reads "split", "cut" or "drop"; else E_USAGE. */
int cut_parse(enum cut_how *out, const char *text);

/* cut_begin stands before the first piece of a document; cut_next goes to the next
 * piece: 1, or 0 when there is none. */
void cut_begin(struct cut *c, int64_t tokens);
int cut_next(struct cut *c);

#endif
