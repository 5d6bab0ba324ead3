/* SPDX-License-Identifier: MIT */
/* profile.h - the two files of profiles that AWS's programs share.
 *
 * In ~/.aws/credentials a profile is "[NAME]", in ~/.aws/config "[profile NAME]" (and
 * "[default]"); below it stand lines "key = value".  Lines that begin with a blank
 * belong to a nested setting and are passed over; so are comments, which begin with '#'
 * or ';'. */
#ifndef PROFILE_H
#define PROFILE_H

#include <stdbool.h>

enum profile_place { PROFILE_CREDENTIALS, PROFILE_CONFIG, PROFILE_PLACES };

struct profiles;

/* profile_load reads both files; NULL, and a file that does not exist, are empty.  A
 * line that is none of the above is E_CONFIG with file and line, and never shows the
 * line, which may hold a secret. */
int profile_load(struct profiles **out, const char *credentials, const char *config);
void profile_free(struct profiles *p); /* wipes; NULL is fine */

/* profile_has: is there a profile of this name?  profile_get gives a value that lives
 * as long as the profiles, NULL: not set; profile_find looks into both files, the
 * credentials first. */
bool profile_has(const struct profiles *p, const char *name);
const char *profile_get(const struct profiles *p, enum profile_place place,
                        const char *name, const char *key);
const char *profile_find(const struct profiles *p, const char *name, const char *key);

#endif
