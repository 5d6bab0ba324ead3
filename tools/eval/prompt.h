/* SPDX-License-Identifier: MIT */
/* prompt.h - the prompts of a JSON-lines file: one object a line with input_ids. */
#ifndef PROMPT_H
#define PROMPT_H

#include <stdint.h>

struct prompt {
    int32_t *ids; /* owned */
    int64_t n;    /* at least 1 */
    int64_t line; /* from 1, for messages */
};

struct prompts {
    struct prompt *prompt;
    int64_t n, room;
    int64_t longest;
    uint64_t digest; /* xxh3 of the file's bytes */
};

/* prompt_read reads PATH ("-": stdin), all of it or the first `most` (0: all); blank
 * lines are skipped.  Bad JSON, no input_ids, no ids, ids outside [0, vocab) are
 * E_FORMAT naming file and line; a file without prompts is E_FORMAT, too. */
int prompt_read(struct prompts *p, const char *path, int64_t vocab, int64_t most);
void prompt_free(struct prompts *p);

#endif
