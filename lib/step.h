/* SPDX-License-Identifier: MIT */
/* step.h - the name of a checkpoint's folder in a run: "step-00000123". */
#ifndef STEP_H
#define STEP_H

#include <stdint.h>

enum {
    STEP_DIGITS = 8,
    STEP_LENGTH = 5 + STEP_DIGITS, /* of a name that step_number reads */
    STEP_NAME = 24                 /* bytes that step_name needs for any step */
};

char *step_name(char out[STEP_NAME], int64_t step); /* returns out */

/* step_number is the number in a name, or -1 for any other name. */
int64_t step_number(const char *name);

#endif
