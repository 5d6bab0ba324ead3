/* SPDX-License-Identifier: MIT */
/* live.h - decoding prompts: speculative beside plain, or plain alone. */
#ifndef LIVE_H
#define LIVE_H

#include "eval.h"

/* live_run decodes the prompts with the drafter, the untrained drafter, the lookup and
 * plainly (o->plain: only that), compares every sequence, and writes what was asked
 * for. A sequence that differs from plain decoding is E_DEVICE naming prompt and token,
 * after the report has been written. */
int live_run(struct tool *tool, const struct eval_options *o);

#endif
