/* SPDX-License-Identifier: MIT */
/* step.c - eight digits, no more and no less, so that names sort as numbers do. */
#include "step.h"

#include <stdio.h>
#include <string.h>

char *step_name(char out[STEP_NAME], int64_t step)
{
    snprintf(out, STEP_NAME, "step-%0*lld", STEP_DIGITS, (long long)step);
    return out;
}

int64_t step_number(const char *name)
{
    int64_t step = 0;
    if (strlen(name) != STEP_LENGTH || strncmp(name, "step-", 5) != 0 ||
        strspn(name + 5, "0123456789") != STEP_DIGITS)
        return -1;
    for (int i = 5; i < STEP_LENGTH; i++)
        step = step * 10 + (name[i] - '0');
    return step;
}
