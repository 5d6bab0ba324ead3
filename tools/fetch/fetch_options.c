/* SPDX-License-Identifier: MIT */
/* fetch_options.c - a wrong call is refused here, before anything is asked or made. */
#include "fetch_options.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "creds_link.h"
#include "err.h"
#include "limits.h"
#include "put.h"
#include "tool.h"

struct fetch_options cfg = {.connections = 128,
                            .piece = 8 << 20,
                            .memory = 256 << 20,
                            .retries = 10,
                            .stall = 20};

const struct opt fetch_options[] = {
    OPT_HEAD("output"),
    OPT_TEXT('o', "output", &cfg.output, "DEST", "the folder to bring objects to", 0),
    OPT_FLAG(0, "put", &cfg.put,
             "the other way: upload files and folders to the last operand, s3://...",
             0),
    OPT_FLAG(0, "dry-run", &cfg.dry_run,
             "only print size and name of what would be moved", 0),
    OPT_FLAG(0, "json", &cfg.json,
             "print one JSON object for each object, and what became of it", 0),
    OPT_FLAG(0, "verify", &cfg.verify,
             "reread every file in DEST and fetch it again if its checksum is wrong",
             0),
    OPT_HEAD("which objects"),
    OPT_TEXT(0, "urls", &cfg.urls, "FILE",
             "also the https:// URLs in FILE, one a line, each may have a SHA-256", 0),
    OPT_TEXT(0, "include", &cfg.include, "GLOBS",
             "only names that match one of these, separated by commas", 0),
    OPT_TEXT(0, "exclude", &cfg.exclude, "GLOBS",
             "not names that match one of these; wins over --include", 0),
    OPT_TEXT(0, "part", &cfg.part, "I/N",
             "only part I (from 0) of N, by a hash of the name", 0),
    OPT_HEAD("S3"),
    OPT_TEXT(0, "endpoint", &cfg.endpoint, "URL",
             "the server of s3:// sources; default: AWS, by region", 0),
    OPT_TEXT(
        0, "addressing", &cfg.addressing, "HOW",
        "the bucket is in the \"path\" or, \"virtual\", in the host name; default: "
        "path with an endpoint, else virtual",
        0),
    OPT_TEXT(0, "region", &cfg.region, "NAME",
             "its region; default: us-east-1, or what the server says", 0),
    OPT_TEXT(0, "profile", &cfg.profile, "NAME",
             "whose keys to use, of AWS's files of profiles", 0),
    OPT_TEXT(0, "credentials-file", &cfg.credentials, "FILE",
             "the file of profiles with keys; default: ~/.aws/credentials", 0),
    OPT_FLAG(0, "no-sign", &cfg.no_sign, "do not sign requests: public buckets", 0),
    OPT_FLAG(0, "requester-pays", &cfg.requester_pays,
             "agree to pay for requests and transfer", 0),
    OPT_FLAG(0, "no-checksum", &cfg.no_checksum,
             "do not ask for checksums, for servers that refuse the question", 0),
    OPT_FLAG(0, "check-etag", &cfg.check_etag,
             "hold objects without a checksum against the MD5 in their ETag", 0),
    OPT_HEAD("network"),
    OPT_INT(0, "connections", &cfg.connections, "N", "requests in flight at most", 0),
    OPT_INT(0, "part-size", &cfg.piece, "BYTES",
            "larger objects are fetched in parts of this size", 0),
    OPT_INT(0, "memory", &cfg.memory, "BYTES", "memory to use at most", 0),
    OPT_INT(0, "rate", &cfg.rate, "BYTES", "bytes a second at most; 0: any", 0),
    OPT_INT(0, "retries", &cfg.retries, "N", "attempts after the first, each request",
            0),
    OPT_REAL(0, "stall", &cfg.stall, "SECONDS", "silence that ends a request", 0),
    OPT_TEXT(0, "ca", &cfg.ca, "FILE",
             "certificates to trust (PEM); default: the system's", 0),
    TOOL_OPTIONS,
    OPT_END,
};

/* ---- checks ---- */

static int check_numbers(void)
{
    return limits_check(&(struct limits){cfg.connections, cfg.piece, cfg.memory,
                                         cfg.rate, cfg.retries, cfg.stall});
}

/* An empty name comes from a variable that was not set. */
static int check_texts(char **operand)
{
    for (const struct opt *o = fetch_options; o->kind != OPT_KIND_END; o++) {
        const char *text = o->kind == OPT_KIND_TEXT ? *(const char **)o->value : NULL;
        if (text && !*text)
            return err_set(E_USAGE, "option --%s: is empty", o->name);
    }
    for (; *operand; operand++)
        if (!**operand)
            return err_set(E_USAGE, "an operand is empty");
    return 0;
}

static int check_put(int inputs)
{
    if (inputs < 2)
        return err_set(E_USAGE, "--put wants files or folders, and s3://bucket/prefix");
    if (cfg.output || cfg.part || cfg.verify || cfg.urls)
        return err_set(E_USAGE,
                       "--put does not go with -o, --part, --urls and --verify");
    if (cfg.piece < PUT_PART_MIN)
        return err_set(E_USAGE,
                       "option --part-size: with --put %d or more, not %lld: S3 takes "
                       "no smaller parts",
                       PUT_PART_MIN, (long long)cfg.piece);
    return 0;
}

static int check_fetch(int inputs)
{
    if (inputs == 0 && !cfg.urls)
        return err_set(E_USAGE, "no source given");
    if (!cfg.output)
        return err_set(E_USAGE, "no destination given (-o)");
    if (strstr(cfg.output, "://"))
        return err_set(E_USAGE,
                       "-o %s: a folder of this machine is needed; --put uploads",
                       cfg.output);
    return 0;
}

int fetch_options_check(char **operand, int n)
{
    TRY(check_texts(operand));
    TRY(cfg.put ? check_put(n) : check_fetch(n));
    return check_numbers();
}

/* ---- rules ---- */

static int get_addressing(enum s3_addressing *out)
{
    const char *how = cfg.addressing;
    bool auto_ = !how || strcmp(how, "auto") == 0;
    *out = auto_ ? S3_AUTO : strcmp(how, "path") == 0 ? S3_PATH : S3_VIRTUAL;
    if (*out == S3_VIRTUAL && strcmp(how, "virtual") != 0)
        return err_set(E_USAGE, "option --addressing: %s is not path, virtual or auto",
                       how);
    return 0;
}

/* Where there is something to sign; options go before what the files say. */
static int open_creds(struct scheme_rules *r, char **url)
{
    const struct creds_rules rules = {.no_sign = cfg.no_sign,
                                      .profile = cfg.profile,
                                      .credentials = cfg.credentials,
                                      .region = cfg.region,
                                      .ca = r->http.ca};
    while (*url && strncmp(*url, "s3://", 5) != 0)
        url++;
    if (!*url)
        return 0;
    TRY(creds_open(&r->creds, &rules));
    if (!r->endpoint)
        r->endpoint = creds_endpoint(r->creds);
    if (!r->region)
        r->region = creds_region(r->creds);
    return 0;
}

/* The certificates to trust, NULL: the system's.  What is named must be there. */
static int get_ca(const char **out)
{
    static const char *const names[] = {"AWS_CA_BUNDLE", "SSL_CERT_FILE"};
    *out = cfg.ca;
    for (size_t i = 0; i < sizeof names / sizeof *names && !*out; i++)
        *out = creds_env(names[i]);
    return !*out || access(*out, R_OK) == 0
               ? 0
               : err_errno(errno, "cannot read the certificates in %s", *out);
}

int fetch_options_rules(struct scheme_rules *out, char **url, struct log *log)
{
    const char *ca;
    TRY(get_ca(&ca));
    *out = (struct scheme_rules){.http = {.connections = (int)cfg.connections,
                                          .connect = 10,
                                          .stall = cfg.stall,
                                          .ca = ca,
                                          .send_rate = (double)cfg.rate},
                                 .retries = (int)cfg.retries,
                                 .memory = cfg.memory,
                                 .endpoint = cfg.endpoint,
                                 .region = cfg.region,
                                 .requester_pays = cfg.requester_pays,
                                 .no_checksum = cfg.no_checksum,
                                 .check_etag = cfg.check_etag,
                                 .log = log};
    TRY(get_addressing(&out->addressing));
    return open_creds(out, url);
}
