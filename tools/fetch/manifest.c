/* SPDX-License-Identifier: MIT */
/* manifest.c - loading is tolerant, because a lost entry costs one more copy and no
 * more; saving is strict.  Later entries of a key replace earlier ones on saving. */
#include "manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buf.h"
#include "err.h"
#include "file.h"
#include "hash.h"
#include "json.h"
#include "mem.h"

static int append(struct manifest *m, const struct entry *e)
{
    struct entry *at = mem_room(m->at, m->n, &m->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    m->at = at;
    struct entry *to = &m->at[m->n];
    *to = *e;
    to->age = m->n;
    to->key = texts_add(&m->texts, e->key);
    to->etag = e->etag ? texts_add(&m->texts, e->etag) : NULL;
    if (!to->key || (e->etag && !to->etag))
        return E_MEMORY;
    m->n++;
    return 0;
}

/* ---- reading, line by line: a tree of all would take many times the memory ---- */

static int read_entry(struct manifest *m, const struct json *o, bool own)
{
    struct entry e = {.own = own};
    const char *sum;
    TRY(json_need_text(o, "key", &e.key));
    TRY(json_need_int(o, "size", &e.size));
    TRY(json_need_int(o, "mtime_ns", &e.mtime_ns));
    TRY(json_have_text(o, "etag", &e.etag));
    TRY(json_need_text(o, "crc64nvme", &sum));
    TRY(hash_parse(sum, &e.sum));
    return append(m, &e);
}

static int read_line(struct manifest *m, const char *line, size_t n, bool own)
{
    struct json *o = NULL;
    int rc = json_parse(&o, line, n);
    if (rc == 0)
        rc = read_entry(m, o, own);
    json_free(o);
    return rc;
}

static const char opening[] = "{\"format\":2,\"objects\":[", closing[] = "]}";

static bool is_line(const char *line, size_t n, const char *what)
{
    return n == strlen(what) && memcmp(line, what, n) == 0;
}

/* Lines as write_all makes them.  A journal has objects alone, and what stands behind
 * its last line end was cut off by a kill and is no damage. */
static int read_lines(struct manifest *m, FILE *f, bool journal, bool own)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int rc = 0;
    bool begun = journal, ended = journal;
    while (rc == 0 && (n = getline(&line, &room, f)) > 0) {
        size_t len = (size_t)n;
        bool whole = line[len - 1] == '\n';
        len -= whole;
        if (journal && !whole)
            break;
        if (!begun)
            begun = is_line(line, len, opening);
        else if (!journal && is_line(line, len, closing))
            ended = true;
        else if (ended && !journal)
            begun = false; // something behind the end
        else
            rc = read_line(m, line, len - (!journal && line[len - 1] == ','), own);
        if (!begun)
            break;
    }
    free(line);
    if (rc == 0 && ferror(f))
        return err_errno(errno, "cannot read %s", m->dir);
    return rc < 0 || (begun && ended) ? rc : err_set(E_FORMAT, "not a manifest");
}

static int read_file(struct manifest *m, const char *path, bool journal, bool own)
{
    FILE *f = fopen(path, "re");
    if (!f)
        return err_errno(errno, "cannot open %s", path);
    int rc = read_lines(m, f, journal, own);
    fclose(f);
    return rc;
}

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0;
}

static bool is_journal(const char *name)
{
    return ends_in(name, ".journal");
}

static bool is_ours(const char *name)
{
    return strncmp(name, "manifest", 8) == 0 &&
           (is_journal(name) || ends_in(name, ".json"));
}

/* Is a file of the folder this run's own? */
static bool is_own(const struct manifest *m, const char *name)
{
    size_t n = strlen(m->name);
    return strncmp(name, m->name, n) == 0 && name[n] == '.';
}

static int read_one(struct manifest *m, const char *name, int64_t *damaged)
{
    char *path = file_path(m->dir, name);
    if (!path)
        return E_MEMORY;
    bool own = is_own(m, name);
    int rc = read_file(m, path, is_journal(name), own);
    mem_free(path);
    if (rc == E_FORMAT) {
        (*damaged)++;
        rc = 0;
    }
    if (own ? is_journal(name) : m->whole) // to be folded in
        m->changed = true;
    return rc;
}

/* Journals are newer than manifests, so they are read behind them. */
static int read_all(struct manifest *m, int64_t *damaged)
{
    char **names;
    int64_t n;
    int rc = 0;
    TRY(file_list(m->dir, &names, &n));
    for (int journals = 0; journals < 2; journals++)
        for (int64_t i = 0; i < n && rc == 0; i++)
            if (is_ours(names[i]) && is_journal(names[i]) == journals)
                rc = read_one(m, names[i], damaged);
    file_list_free(names, n);
    return rc;
}

static int by_key_and_age(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->key, y->key);
    return order ? order : (x->age > y->age) - (x->age < y->age);
}

static void sort(struct manifest *m)
{
    if (m->n > 0)
        qsort(m->at, (size_t)m->n, sizeof *m->at, by_key_and_age);
    m->sorted = m->n;
}

int manifest_load(struct manifest *m, const char *dest, int part, int parts,
                  int64_t *damaged)
{
    *m = (struct manifest){.journal = -1, .whole = parts == 1};
    *damaged = 0;
    if (parts == 1)
        snprintf(m->name, sizeof m->name, "manifest");
    else
        snprintf(m->name, sizeof m->name, "manifest-%d-of-%d", part, parts);
    if (!(m->dir = file_path(dest, ".draft-fetch")))
        return E_MEMORY;
    if (file_is_dir(m->dir))
        TRY(read_all(m, damaged));
    sort(m);
    return 0;
}

int64_t manifest_find(const struct manifest *m, const char *key,
                      const struct entry **first)
{
    int64_t lo = 0, hi = m->sorted, n = 0;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (strcmp(m->at[middle].key, key) < 0)
            lo = middle + 1;
        else
            hi = middle;
    }
    while (lo + n < m->sorted && strcmp(m->at[lo + n].key, key) == 0)
        n++;
    *first = n > 0 ? &m->at[lo] : NULL;
    return n;
}

/* ---- writing ---- */

static void write_entry(struct json_out *o, const struct entry *e)
{
    char sum[HASH_TEXT];
    json_open_object(o, NULL);
    json_add_text(o, "key", e->key);
    json_add_int(o, "size", e->size);
    json_add_int(o, "mtime_ns", e->mtime_ns);
    if (e->etag)
        json_add_text(o, "etag", e->etag);
    json_add_text(o, "crc64nvme", hash_text(sum, e->sum));
    json_close_object(o);
}

/* DIR/NAME and an ending; owned by the caller, NULL: E_MEMORY. */
static char *own_path(const struct manifest *m, const char *ending)
{
    struct buf path = {0};
    buf_addf(&path, "%s/%s%s", m->dir, m->name, ending);
    if (buf_check(&path) < 0)
        buf_drop(&path);
    return path.p;
}

static int open_journal(struct manifest *m)
{
    char *path = own_path(m, ".journal");
    if (!path)
        return E_MEMORY;
    m->journal = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int rc = m->journal < 0 ? err_errno(errno, "cannot open %s", path) : 0;
    mem_free(path);
    return rc;
}

int manifest_add(struct manifest *m, const struct entry *e)
{
    struct entry own = *e;
    struct json_out o = {.to = &m->waiting};
    own.own = true;
    TRY(append(m, &own));
    m->changed = true;
    write_entry(&o, &own);
    buf_addc(&m->waiting, '\n');
    return buf_check(&m->waiting);
}

int manifest_flush(struct manifest *m)
{
    if (m->waiting.len == 0)
        return 0;
    if (m->journal < 0)
        TRY(open_journal(m));
    TRY(file_put(m->journal, m->waiting.p, m->waiting.len, "the manifest's journal"));
    buf_clear(&m->waiting);
    return 0;
}

/* One object a line, for people and for diff. */
static void write_all(const struct manifest *m, struct buf *text)
{
    const char *between = "\n";
    buf_adds(text, opening);
    for (int64_t i = 0; i < m->n; i++) {
        const struct entry *e = &m->at[i];
        bool newest = i + 1 == m->n || strcmp(e[0].key, e[1].key) != 0;
        if (!newest || !(e->own || m->whole))
            continue;
        struct json_out o = {.to = text};
        buf_adds(text, between);
        write_entry(&o, e);
        between = ",\n";
    }
    buf_addf(text, "\n%s\n", closing);
}

/* Removes the journal, which the manifest now contains, and what a whole run replaces.
 */
static int remove_old(const struct manifest *m)
{
    char **names;
    int64_t n;
    int rc = 0;
    TRY(file_list(m->dir, &names, &n));
    for (int64_t i = 0; i < n && rc == 0; i++) {
        bool own = is_own(m, names[i]);
        if (!is_ours(names[i]) || !(own ? is_journal(names[i]) : m->whole))
            continue;
        char *path = file_path(m->dir, names[i]);
        rc = path ? file_remove_tree(path) : E_MEMORY;
        mem_free(path);
    }
    file_list_free(names, n);
    return rc;
}

int manifest_save(struct manifest *m)
{
    struct buf text = {0};
    if (!m->changed)
        return 0;
    sort(m);
    write_all(m, &text);
    char *path = own_path(m, ".json");
    int rc = path ? buf_check(&text) : E_MEMORY;
    if (rc == 0)
        rc = file_write(path, text.p, text.len);
    if (rc == 0)
        rc = remove_old(m);
    m->changed = rc < 0;
    mem_free(path);
    buf_drop(&text);
    return rc;
}

void manifest_drop(struct manifest *m)
{
    mem_free(m->at);
    mem_free(m->dir);
    texts_drop(&m->texts);
    buf_drop(&m->waiting);
    if (m->journal >= 0)
        close(m->journal);
    *m = (struct manifest){.journal = -1};
}
