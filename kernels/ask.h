/* SPDX-License-Identifier: MIT */
/* ask.h - what op.c asks of the tensors of a call, one predicate per question.
 *
 * ASK names the rule and prints both tensors, with shapes and types, through bug():
 * a wrong call is a mistake of ours, not of the user. */
#ifndef ASK_H
#define ASK_H

#include "dev.h"

#define ASK(ok, rule, a, b)                                                            \
    do {                                                                               \
        if (!(ok))                                                                     \
            ask_bug(__FILE__, __LINE__, __func__, rule, a, b);                         \
    } while (0)

_Noreturn void ask_bug(const char *file, int line, const char *op, const char *rule,
                       struct tensor a, struct tensor b);

/* Types.  All but ask_weight also demand T_ROWS and, unless empty, data. */
bool ask_act(const struct dev *d, struct tensor t);    /* A */
bool ask_weight(const struct dev *d, struct tensor t); /* A, bf16, f32; any layout */
bool ask_grad(const struct dev *d, struct tensor t);   /* A or f32 */
bool ask_store(const struct dev *d, struct tensor t);  /* A or bf16 */
bool ask_real(struct tensor t);                        /* any type of reals */
bool ask_type(struct tensor t, enum dtype type);

/* Shapes. */
bool ask_dim1(struct tensor t, int64_t a);
bool ask_dim2(struct tensor t, int64_t a, int64_t b);
bool ask_same(struct tensor a, struct tensor b); /* of one shape */

/* Memory. */
bool ask_apart(struct tensor a, struct tensor b); /* no byte in common */
bool ask_alias(struct tensor a, struct tensor b); /* apart, or one and the same */

#endif
