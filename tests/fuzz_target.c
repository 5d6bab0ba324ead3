/* SPDX-License-Identifier: MIT */
/* fuzz_target.c - any config.json, and any header of a checkpoint beside it, are
 * refused with a message or make an outline that adds up.
 *
 * An input is the config, a NUL and the JSON of the header, which gets the data that it
 * tells of: as holes, so that shapes may be as large as published ones. */
#include <fcntl.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "fuzz.h"
#include "safetensors.h"
#include "target.h"

static char dir[] = "/tmp/fuzz-target-XXXXXX";

static void leave(void)
{
    file_remove_tree(dir);
}

/* put writes a file of the folder, and holes up to `size` behind it. */
static void put(const char *name, const void *head, size_t n, const void *data,
                size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    must(fd >= 0 && write(fd, head, n) == (ssize_t)n);
    must(write(fd, data, size) == (ssize_t)size);
    close(fd);
}

static void put_model(const char *text, size_t n)
{
    uint64_t length = n;
    struct st_header h;
    char path[64];
    put("model.safetensors", &length, sizeof length, text, n);
    if (st_header_parse(&h, text, n) < 0)
        return;
    snprintf(path, sizeof path, "%s/model.safetensors", dir);
    if (h.data_bytes < (uint64_t)1 << 40)
        must(truncate(path, (off_t)(8 + n + h.data_bytes)) == 0);
    st_header_drop(&h);
}

static bool allowed(int rc)
{
    return rc == E_FORMAT || rc == E_CONFIG;
}

static void look(const char *device, enum target_head head)
{
    struct dev card;
    struct target *t;
    must(dev_outline(&card, device) == 0);
    int rc = target_outline(&t, &card, dir, -1, head);
    must(card.held == 0);
    if (rc < 0) {
        must(allowed(rc) && *err_text());
        return;
    }
    struct target_sizes s = target_sizes(t);
    must(s.whole > 0 && s.loading <= s.whole + (1 << 20));
    must((s.parts > 0) == (head == TARGET_HEADLESS));
    must(target_bytes(t, 100, 15) >= target_bytes(t, 100, 0));
    must(target_group_bytes(t, 100, 2) >= target_group_bytes(t, 100, 1));
    target_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool made;
    const uint8_t *end = size ? memchr(data, 0, size) : NULL;
    size_t config = end ? (size_t)(end - data) : size;
    if (!made) {
        must(mkdtemp(dir) != NULL && atexit(leave) == 0);
        made = true;
    }
    put("config.json", data, config, "", 0);
    if (end)
        put_model((const char *)end + 1, size - config - 1);
    else
        put_model("{}", 2);
    look("cpu", TARGET_LOGITS);
    look("cuda", TARGET_HEADLESS);
    return 0;
}
