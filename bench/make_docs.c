/* SPDX-License-Identifier: MIT */
/* make_docs.c - tokenized documents as JSON lines, or their lengths alone.
 *
 *     make_docs MEAN TOKENS [SEED] >docs.jsonl
 *     make_docs MEAN TOKENS [SEED] lengths      one number a line
 *
 * Documents until TOKENS are there (K, M, G as elsewhere); see tests/kit_docs.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "buf.h"
#include "err.h"
#include "kit_docs.h"
#include "num.h"

static void add_list(struct buf *b, const int32_t *v, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        buf_addf(b, i ? ", %d" : "[%d", v[i]);
    buf_addc(b, ']');
}

/* As Python's json.dumps writes it. */
static void write_document(struct rng *r, int32_t n)
{
    static int32_t ids[KIT_DOCS_LONGEST], bits[KIT_DOCS_LONGEST];
    static uint8_t mask[KIT_DOCS_LONGEST];
    struct buf b = {0};
    kit_docs_fill(r, ids, mask, n);
    for (int32_t t = 0; t < n; t++)
        bits[t] = mask[t];
    buf_adds(&b, "{\"input_ids\": ");
    add_list(&b, ids, n);
    buf_adds(&b, ", \"loss_mask\": ");
    add_list(&b, bits, n);
    buf_adds(&b, "}\n");
    fwrite(b.p, 1, b.len, stdout);
    buf_drop(&b);
}

int main(int argc, char **argv)
{
    bool lengths = argc > 1 && strcmp(argv[argc - 1], "lengths") == 0;
    int numbers = argc - 1 - lengths;
    double mean = numbers > 0 ? strtod(argv[1], NULL) : 0;
    int64_t tokens = 0, seed = 1;
    if (numbers < 2 || numbers > 3 || !(mean >= 1) ||
        num_parse_int(argv[2], &tokens) < 0 ||
        (numbers == 3 && num_parse_int(argv[3], &seed) < 0)) {
        fprintf(stderr, "make_docs MEAN TOKENS [SEED] [lengths]\n");
        return 64;
    }
    struct rng length = rng_new((uint64_t)seed), text = rng_new(~(uint64_t)seed);
    while (tokens > 0) {
        int32_t n = kit_docs_length(&length, mean);
        if (lengths)
            printf("%d\n", n);
        else
            write_document(&text, n);
        tokens -= n;
    }
    return fflush(stdout) == 0 ? 0 : 74;
}
