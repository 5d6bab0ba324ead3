/* SPDX-License-Identifier: MIT */
/* ckpt_file.c - streaming tensors from a device in pieces, hashing on the way. */
#include "ckpt_file.h"

#include "err.h"
#include "hash.h"
#include "mem.h"
#include "num.h"

#include <string.h>

enum { PIECE = 1 << 22 }; // elements brought over at once

static const char KEY[] = "data_xxh3";

/* What one write needs; zero struct is fine to drop. */
struct writer {
    struct file_new file;
    struct hash *hash;
    float *piece;
    uint16_t *half;
};

/* put_part writes one tensor piece by piece. */
static int put_part(struct writer *w, struct dev *d, const struct ckpt_part *p)
{
    int64_t n = tensor_count(&p->from);
    for (int64_t at = 0; at < n; at += PIECE) {
        int64_t m = n - at < PIECE ? n - at : PIECE;
        const float *from = (const float *)p->from.data + at;
        const void *out = w->piece;
        size_t bytes = (size_t)m * st_type_size(p->type);
        TRY(dev_get(d, w->piece, from, (size_t)m * sizeof(float)));
        if (p->type == ST_BF16) {
            for (int64_t i = 0; i < m; i++)
                w->half[i] = num_f32_bf16(w->piece[i]);
            out = w->half;
        }
        hash_add(w->hash, out, bytes);
        TRY(file_put(w->file.fd, out, bytes, w->file.path));
    }
    return 0;
}

/* describe lists the parts as a header does. */
static struct st_tensor *describe(const struct ckpt_part *part, int64_t parts)
{
    struct st_tensor *t = mem_zero((size_t)parts, sizeof *t);
    for (int64_t i = 0; t && i < parts; i++) {
        t[i].name = (char *)part[i].name;
        t[i].type = part[i].type;
        t[i].rank = part[i].from.rank;
        for (int k = 0; k < t[i].rank; k++)
            t[i].dim[k] = part[i].from.dim[k];
    }
    return t;
}

/* add_header appends the header with the checksum `sum` (16 digits) to `out`. */
static int add_header(struct buf *out, const struct ckpt_part *part, int64_t parts,
                      const char *const *meta, int64_t metas, const char *sum)
{
    struct st_tensor *t = describe(part, parts);
    const char **all = mem_zero((size_t)(2 * metas + 2), sizeof *all);
    int rc = E_MEMORY;
    if (t && all) {
        for (int64_t i = 0; i < 2 * metas; i++)
            all[i] = meta[i];
        all[2 * metas] = KEY;
        all[2 * metas + 1] = sum;
        rc = st_header_write(out, t, parts, all, metas + 1, 8);
    }
    mem_free(all);
    mem_free(t);
    return rc;
}

int ckpt_file_write(const char *path, struct dev *d, const struct ckpt_part *part,
                    int64_t parts, const char *const *meta, int64_t metas)
{
    char sum[HASH_TEXT] = "0000000000000000";
    struct writer w = {.hash = hash_open(),
                       .piece = mem_alloc(PIECE * sizeof *w.piece),
                       .half = mem_alloc(PIECE * sizeof *w.half)};
    struct buf head = {0};
    int rc = file_new_create(&w.file, path);
    if (rc < 0)
        goto out;
    if (!w.hash || !w.piece || !w.half)
        rc = E_MEMORY;
    if (rc == 0)
        rc = add_header(&head, part, parts, meta, metas, sum);
    if (rc == 0)
        rc = file_put(w.file.fd, head.p, head.len, path);
    for (int64_t i = 0; i < parts && rc == 0; i++)
        rc = put_part(&w, d, &part[i]);
    if (rc == 0) {
        buf_clear(&head);
        rc = add_header(&head, part, parts, meta, metas,
                        hash_text(sum, hash_value(w.hash)));
    }
    if (rc == 0)
        rc = file_pwrite(w.file.fd, head.p, head.len, 0, path);
    if (rc == 0)
        rc = file_new_commit(&w.file);
    else
        file_new_abandon(&w.file);
out:
    buf_drop(&head);
    hash_close(w.hash);
    mem_free(w.piece);
    mem_free(w.half);
    return rc;
}

int ckpt_file_open(struct st_file *f, const char *path)
{
    TRY(st_open(f, path));
    int rc = st_meta(&f->header, KEY) ? st_check_data(f)
                                      : err_set(E_FORMAT, "%s: no %s", path, KEY);
    if (rc < 0)
        st_close(f);
    return rc;
}

int ckpt_file_read(const struct st_file *f, struct dev *d, const char *name,
                   struct tensor to)
{
    const struct st_tensor *t;
    TRY(st_need(f, name, &t, to.rank, to.dim));
    if (t->type != ST_F32)
        return err_set(E_FORMAT, "%s: tensor %s: %s, not F32", f->path, name,
                       st_type_name(t->type));
    return dev_put(d, to.data, st_data(f, t), tensor_bytes(&to));
}
