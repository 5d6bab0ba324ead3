/* SPDX-License-Identifier: MIT */
/* creds.h - in whose name requests are signed, and keys that stay fresh.
 *
 * The places where AWS's programs look are asked in their order, and the first that has
 * something is kept to:
 *
 *     a profile that was named by option
 *     AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
 *     AWS_WEB_IDENTITY_TOKEN_FILE with AWS_ROLE_ARN, exchanged by STS
 *     the profile AWS_PROFILE or "default": keys, role_arn over source_profile,
 *         credential_source or web_identity_token_file, credential_process
 *     AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI: ECS, and EKS Pod Identity
 *     the instance's metadata service, version 2 only
 *
 * A place that is not set up is passed over; one that is set up and fails ends the
 * search.  Keys that expire are replaced in the background by one thread from two
 * thirds of their life on (five minutes before the end of a long one), and used until
 * they expire; only then does anybody wait.  Lifetimes are measured from the Date of
 * the answer, so a clock that is wrong does not matter.
 *
 * Secrets are never printed, never on a command line, and wiped where they lay. */
#ifndef CREDS_H
#define CREDS_H

#include <stdbool.h>
#include <stdint.h>

#include "buf.h"
#include "http.h"
#include "sigv4.h"

struct creds;

/* Borrowed until creds_close. */
struct creds_rules {
    bool no_sign;            /* requests are not signed, nobody is asked */
    const char *profile;     /* NULL: AWS_PROFILE, else "default" */
    const char *credentials; /* file; NULL: AWS_SHARED_CREDENTIALS_FILE or ~/.aws/... */
    const char *region;      /* of STS; NULL: creds_region */
    const char *ca;          /* as in struct http_rules */
};

/* creds_open reads the files of profiles; nobody is asked yet.  E_CONFIG for files that
 * cannot be read and for a named profile that does not exist. */
int creds_open(struct creds **out, const struct creds_rules *rules);
void creds_close(struct creds *c); /* waits for a refresh under way; NULL is fine */

/* creds_setting is what the profile in use says about `key` ("region", "endpoint_url"),
 * or NULL; it lives as long as creds.  creds_region: by AWS_REGION, AWS_DEFAULT_REGION
 * or the profile; NULL: nobody knows. */
const char *creds_setting(const struct creds *c, const char *key);
const char *creds_region(const struct creds *c);

/* creds_endpoint is the server of S3: by AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or the
 * profile; NULL: AWS's own. */
const char *creds_endpoint(const struct creds *c);

/* creds_take gives what signs a request of this time, and the session token that must
 * be sent with it ("": none).  1: sign; 0: send it unsigned; E_ACCESS: nobody has keys,
 * and the message says who was asked; E_REMOTE: whoever has them does not answer.  Any
 * thread.  The caller drops both; the key for a region is derived once and kept. */
int creds_take(struct creds *c, int64_t time, const char *region, const char *service,
               struct sigv4_key *key, struct buf *token);

/* creds_spoil says that a server has found the keys of this access id expired: others
 * are fetched before the next creds_take returns, if that has not happened already.
 * False when they cannot be replaced. */
bool creds_spoil(struct creds *c, const char *access);

#endif
