/* SPDX-License-Identifier: MIT */
/* spare.h - how much memory the host has to spare.
 *
 * The lesser of what the kernel calls available and what a container (cgroup v2) may
 * still take before it is killed; pages that can be dropped count as spare. */
#ifndef SPARE_H
#define SPARE_H

#include <stddef.h>

/* spare_memory reads proc/meminfo and sys/fs/cgroup below `root` ("" but in tests); in
 * bytes, SIZE_MAX where nothing is told. */
size_t spare_memory(const char *root);

#endif
