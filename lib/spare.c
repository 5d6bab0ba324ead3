/* SPDX-License-Identifier: MIT */
/* spare.c - see spare.h. */
#include "spare.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* number finds the number behind `key` in a file of lines "KEY NUMBER"; with key "" it
 * is the first thing in the file. */
static bool number(uint64_t *out, const char *root, const char *file, const char *key)
{
    char path[256], line[256];
    size_t n = strlen(key);
    bool found = false;
    snprintf(path, sizeof path, "%s/%s", root, file);
    FILE *f = fopen(path, "re");
    while (f && !found && fgets(line, sizeof line, f))
        found = strncmp(line, key, n) == 0 && sscanf(line + n, "%" SCNu64, out) == 1;
    if (f)
        fclose(f);
    return found;
}

/* left is what a container may still take; "max" in memory.max is no number. */
static uint64_t left(const char *root)
{
    uint64_t most, used, idle = 0;
    if (!number(&most, root, "sys/fs/cgroup/memory.max", "") ||
        !number(&used, root, "sys/fs/cgroup/memory.current", ""))
        return UINT64_MAX;
    number(&idle, root, "sys/fs/cgroup/memory.stat", "inactive_file ");
    used = used > idle ? used - idle : 0;
    return most > used ? most - used : 0;
}

size_t spare_memory(const char *root)
{
    uint64_t kib, all = UINT64_MAX, mine = left(root);
    if (number(&kib, root, "proc/meminfo", "MemAvailable:") && kib < UINT64_MAX >> 10)
        all = kib << 10;
    return (size_t)(mine < all ? mine : all);
}
