/* SPDX-License-Identifier: MIT */
/* profile.c - the texts of both files, cut into lines in place. */
#include "profile.h"

#include <string.h>

#include "err.h"
#include "file.h"
#include "mem.h"

/* One "key = value", or with key NULL the head of a profile; all point into a text. */
struct setting {
    enum profile_place place;
    const char *name, *key, *value;
};

struct profiles {
    char *text[PROFILE_PLACES]; // owned
    size_t size[PROFILE_PLACES];
    struct setting *at;
    int64_t n, cap;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts blanks off both ends. */
static char *trim(char *s)
{
    while (is_blank(*s))
        s++;
    size_t n = strlen(s);
    while (n > 0 && is_blank(s[n - 1]))
        s[--n] = 0;
    return s;
}

static int add(struct profiles *p, struct setting what)
{
    struct setting *at = mem_room(p->at, p->n, &p->cap, sizeof *at);
    if (!at)
        return E_MEMORY;
    p->at = at;
    p->at[p->n++] = what;
    return 0;
}

/* The name of a profile in the head of a section; NULL for sections of other kinds. */
static char *section_name(char *text, enum profile_place place)
{
    text = trim(text);
    if (place == PROFILE_CREDENTIALS || strcmp(text, "default") == 0)
        return text;
    if (strncmp(text, "profile", 7) != 0 || !is_blank(text[7]))
        return NULL;
    text = trim(text + 7);
    size_t n = strlen(text);
    if (n >= 2 && (*text == '"' || *text == '\'') && text[n - 1] == *text) {
        text[n - 1] = 0;
        text++;
    }
    return text;
}

/* *name: the profile that the lines belong to, NULL: none.  1: the line is well formed.
 */
static int take_line(struct profiles *p, char *line, enum profile_place place,
                     const char **name, bool *section)
{
    bool nested = is_blank(*line);
    char *end, *equals;
    line = trim(line);
    if (*line == 0 || *line == '#' || *line == ';' || nested)
        return 1;
    if (*line == '[') {
        if (!(end = strchr(line, ']')))
            return 0;
        *end = 0;
        *section = true;
        *name = section_name(line + 1, place);
        TRY(*name ? add(p, (struct setting){place, *name, NULL, NULL}) : 0);
        return 1;
    }
    if (!(equals = strchr(line, '=')) || !*section)
        return 0;
    *equals = 0;
    if (*name)
        TRY(add(p, (struct setting){place, *name, trim(line), trim(equals + 1)}));
    return 1;
}

static int load(struct profiles *p, const char *path, enum profile_place place)
{
    const char *name = NULL;
    bool section = false;
    if (!path || !file_exists(path))
        return 0;
    TRY(file_read(path, &p->text[place], &p->size[place]));
    if (strlen(p->text[place]) != p->size[place])
        return err_set(E_CONFIG, "%s: has a NUL byte", path);
    int number = 1;
    size_t mark = file_mark(p->text[place], p->size[place]);
    for (char *line = p->text[place] + mark, *next; line; line = next, number++) {
        if ((next = strchr(line, '\n')))
            *next++ = 0;
        int well = take_line(p, line, place, &name, &section);
        TRY(well);
        if (!well)
            return err_set(E_CONFIG, "%s, line %d: neither [section] nor key = value",
                           path, number);
    }
    return 0;
}

int profile_load(struct profiles **out, const char *credentials, const char *config)
{
    struct profiles *p = mem_zero(1, sizeof *p);
    *out = NULL;
    if (!p)
        return E_MEMORY;
    int rc = load(p, credentials, PROFILE_CREDENTIALS);
    if (rc == 0)
        rc = load(p, config, PROFILE_CONFIG);
    if (rc < 0) {
        profile_free(p);
        return rc;
    }
    *out = p;
    return 0;
}

void profile_free(struct profiles *p)
{
    if (!p)
        return;
    for (int i = 0; i < PROFILE_PLACES; i++) {
        if (p->text[i])
            explicit_bzero(p->text[i], p->size[i]);
        mem_free(p->text[i]);
    }
    mem_free(p->at);
    mem_free(p);
}

bool profile_has(const struct profiles *p, const char *name)
{
    for (int64_t i = 0; i < p->n; i++)
        if (strcmp(p->at[i].name, name) == 0)
            return true;
    return false;
}

/* The last one counts, as when a file is read from the top. */
const char *profile_get(const struct profiles *p, enum profile_place place,
                        const char *name, const char *key)
{
    const char *found = NULL;
    for (int64_t i = 0; i < p->n; i++) {
        const struct setting *s = &p->at[i];
        if (s->place == place && s->key && strcmp(s->name, name) == 0 &&
            strcmp(s->key, key) == 0)
            found = s->value;
    }
    return found && *found ? found : NULL;
}

const char *profile_find(const struct profiles *p, const char *name, const char *key)
{
    const char *found = profile_get(p, PROFILE_CREDENTIALS, name, key);
    return found ? found : profile_get(p, PROFILE_CONFIG, name, key);
}
