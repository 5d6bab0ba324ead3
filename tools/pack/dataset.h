/* SPDX-License-Identifier: MIT */
/* dataset.h - what folders written by Hugging Face datasets say about themselves.
 *
 * A saved dataset lists its files in state.json, and their order is that of the list.
 * There may be others beside them, left by its cache, which are no part of it.  A
 * DatasetDict is a folder of such folders, one a split, named in dataset_dict.json. */
#ifndef DATASET_H
#define DATASET_H

#include <stdint.h>

#include "buf.h"

/* dataset_split tells whether `dir` has splits and which one to take: `want`, or if it
 * is NULL "train", or the only one.  1: its name is in *name (mem_free), and when there
 * are others `said` gets a line about the choice; 0: it has none.  E_USAGE: none is
 * named and none goes without saying; E_MISSING: the one named is not there. */
int dataset_split(char **name, const char *dir, const char *want, struct buf *said);

/* dataset_files gives the files of a saved dataset in order: 1, or 0 when `dir` is
 * none.  *names is freed by file_list_free. */
int dataset_files(char ***names, int64_t *n, const char *dir);

#endif
