/* SPDX-License-Identifier: MIT */
/* read_raw.h - files that hold numbers and nothing else: --format raw, --dtype says of
 * which type, --separator where documents end. */
#ifndef READ_RAW_H
#define READ_RAW_H

#include "reader.h"

/* Of struct reader; the others are tokens_block and tokens_parse. */
int read_raw_open(void **state, struct inflow *in, const struct read_rules *rules);

#endif
