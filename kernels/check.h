/* SPDX-License-Identifier: MIT */
/* check.h - what op.c asks of the tensors of a call, one predicate per question.
 *
 * CHECK names the rule and prints both tensors, with shapes and types, through bug():
 * a wrong call is a mistake of ours, not of the user. */
#ifndef CHECK_H
#define CHECK_H

#include "dev.h"

#define CHECK(ok, rule, a, b)                                                          \
    do {                                                                               \
        if (!(ok))                                                                     \
            check_bug(__FILE__, __LINE__, __func__, rule, a, b);                       \
    } while (0)

_Noreturn void check_bug(const char *file, int line, const char *op, const char *rule,
                         struct tensor a, struct tensor b);

/* Types.  All but check_weight also demand T_ROWS and, unless empty, data. */
bool check_act(const struct dev *d, struct tensor t);    /* A */
bool check_weight(const struct dev *d, struct tensor t); /* A, bf16, f32; any layout */
bool check_grad(const struct dev *d, struct tensor t);   /* A or f32 */
bool check_store(const struct dev *d, struct tensor t);  /* A or bf16 */
bool check_real(struct tensor t);                        /* any type of reals */
bool check_type(struct tensor t, enum dtype type);

/* Shapes. */
bool check_dim1(struct tensor t, int64_t a);
bool check_dim2(struct tensor t, int64_t a, int64_t b);
bool check_dim3(struct tensor t, int64_t a, int64_t b, int64_t c);
bool check_same(struct tensor a, struct tensor b); /* of one shape */

/* Memory. */
bool check_apart(struct tensor a, struct tensor b); /* no byte in common */
bool check_alias(struct tensor a, struct tensor b); /* apart, or one and the same */

#endif
