/* SPDX-License-Identifier: MIT */
/* creds_link.h - the places that may have keys, one function each; private to creds*.c.
 *
 * A link returns 1 with keys, 0 when it is not set up, with the reason as err_text(),
 * and a negative code when it is set up and fails. */
#ifndef CREDS_LINK_H
#define CREDS_LINK_H

#include "creds.h"
#include "profile.h"

struct keys {
    char *access, *secret, *token; /* owned; token NULL: none */
    double lives;                  /* seconds from now; HUGE_VAL: for ever */
};

/* What a link may look at. */
struct chain {
    const struct creds_rules *rules;
    const struct profiles *profiles;
    const char *profile; /* the name in use */
    const char *region;  /* NULL: not known */
};

typedef int creds_link(const struct chain *c, struct keys *out);
creds_link creds_environment, creds_web_identity, creds_profile, creds_container,
    creds_metadata;

/* creds_env is a variable of the environment, NULL when it is not set or empty. */
const char *creds_env(const char *name);

/* creds_token reads a token from a file, without a byte order mark and line ends; *out
 * is owned by the caller, who wipes it. */
int creds_token(char **out, size_t *n, const char *path);

/* creds_nothing sets the reason and returns 0. */
int creds_nothing(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* creds_keys copies texts into keys; token may be NULL or empty.  creds_keys_drop wipes
 * and frees. */
int creds_keys(struct keys *out, const char *access, const char *secret,
               const char *token);
void creds_keys_drop(struct keys *k);

/* creds_expire sets how long keys live from an ISO 8601 time and the time of whoever
 * gave them; E_FORMAT for what is no time, E_ACCESS when it is over.  NULL: for ever.
 */
int creds_expire(struct keys *k, const char *until, int64_t now);

/* creds_json reads the JSON object that containers, the metadata service and processes
 * answer with; `token` is the name of its session token. */
int creds_json(struct keys *out, const char *text, size_t n, const char *token,
               int64_t now);

/* creds_ask makes a call, trying up to `tries` times; 0 for a 2xx reply.  `seconds` is
 * the time in which a connection must stand and after which silence is a failure; local
 * services are reached without a proxy.  What the reply holds is wiped by
 * creds_call_drop. */
int creds_ask(const struct chain *c, struct http_call *call, const char *name,
              double seconds, int tries, bool local);
void creds_call_drop(struct http_call *call);
int64_t creds_call_time(const struct http_call *call); /* by its Date, else ours */

/* creds_assume exchanges keys for those of a role by STS; `web` is a file with a token
 * to be exchanged instead of keys.  What is NULL of the rest is left out. */
struct creds_role {
    const char *arn, *session, *external, *duration, *web;
};
int creds_assume(const struct chain *c, struct keys *out, const struct creds_role *role,
                 const struct keys *from);

/* creds_process runs a command of a profile and reads keys from its output. */
int creds_process(struct keys *out, const char *profile, const char *command);

#endif
