/* SPDX-License-Identifier: MIT */
/* test_creds.c - the chain of credentials, link by link, against tests/credsd.py; keys
 * that are replaced before they expire; what a call looks like when it is signed. */
#include "../tools/fetch/creds.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tools/fetch/creds_link.h"
#include "../tools/fetch/profile.h"
#include "../tools/fetch/sign.h"
#include "../tools/fetch/xml.h"
#include "err.h"
#include "file.h"
#include "kit.h"
#include "log.h"
#include "mem.h"

enum { NOW = 1369353600 };

/* ---- a world of our own: no variable, no home but what a test makes ---- */

static const char *home;

static void enter(void)
{
    static const char *const keep[] = {"PATH", "ASAN_OPTIONS", "TSAN_OPTIONS",
                                       "UBSAN_OPTIONS"};
    char *value[4];
    for (int i = 0; i < 4; i++)
        value[i] = getenv(keep[i]) ? strdup(getenv(keep[i])) : NULL;
    clearenv();
    for (int i = 0; i < 4; i++) {
        if (value[i])
            setenv(keep[i], value[i], 1);
        free(value[i]);
    }
    home = kit_tmp_dir();
    setenv("HOME", home, 1);
    setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
    ck_assert(mkdir(kit_path("%s/.aws", home), 0700) == 0);
}

static void config(const char *text)
{
    kit_write_text(kit_path("%s/.aws/config", home), text);
}

static void credentials(const char *text)
{
    kit_write_text(kit_path("%s/.aws/credentials", home), text);
}

/* ---- the server ---- */

static pid_t server;
static char at[64]; // http://127.0.0.1:PORT

static void stop_server(void)
{
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
}

/* tests/credsd.py with a token file and two more arguments, which may be NULL. */
static void start_server(const char *ttl, const char *option, const char *value)
{
    const char *ready = kit_path("%s/ready", home), *token = kit_path("%s/token", home);
    kit_write_text(token, "open-sesame\n");
    server = fork();
    if (server == 0) {
        execlp("python3", "python3", "tests/credsd.py", "--ready", ready, "--token",
               token, "--ttl", ttl, option, value, NULL);
        _exit(127);
    }
    for (int i = 0; i < 1000 && !file_exists(ready); i++)
        usleep(10000);
    size_t n;
    char *port = kit_read(ready, &n);
    snprintf(at, sizeof at, "http://127.0.0.1:%d", (int)strtol(port, NULL, 10));
    mem_free(port);
    setenv("AWS_ENDPOINT_URL_STS", at, 1);
}

static void tell_server(const char *path, const char *body)
{
    struct http *http;
    struct http_call call = {.method = "PUT", .send = body, .send_size = strlen(body)};
    const struct http_rules rules = {.connections = 1, .connect = 5, .stall = 5};
    buf_addf(&call.url, "%s%s", at, path);
    kit_ok(http_open(&http, &rules));
    kit_ok(http_run(http, &call));
    ck_assert_int_eq(call.head.status, 204);
    http_close(http);
    http_call_drop(&call);
}

/* ---- asking ---- */

static char access_id[160], session[160];

static int take(struct creds *c)
{
    struct sigv4_key key = {0};
    struct buf token = {0};
    int rc = creds_take(c, NOW, "us-east-1", "s3", &key, &token);
    snprintf(access_id, sizeof access_id, "%s", key.access);
    snprintf(session, sizeof session, "%s", buf_text(&token));
    sigv4_key_drop(&key);
    buf_drop(&token);
    return rc;
}

static const struct creds_rules plain;

/* The keys that a fresh search finds. */
static int find(const struct creds_rules *rules)
{
    struct creds *c;
    TRY(creds_open(&c, rules));
    int rc = take(c);
    creds_close(c);
    return rc;
}

static void finds(const char *access)
{
    int rc = find(&plain);
    kit_ok(rc);
    ck_assert_int_eq(rc, 1);
    ck_assert_str_eq(access_id, access);
}

/* ---- files of profiles ---- */

START_TEST(files_of_profiles)
{
    struct profiles *p;
    enter();
    credentials("\xef\xbb\xbf# keys\n[default]\naws_access_key_id=A\n aws_nested = no\n"
                "aws_secret_access_key = b=c/d \r\n; end\n[two words]\nx = \n\n[two]\n"
                "x=1\n[two]\nx=2");
    config("[default]\nregion = eu-west-1\ns3 =\n  endpoint = no\n"
           "[profile \"two words\"]\nregion=r2\n[sso-session default]\nregion=no\n"
           "[profilex]\nregion=no\n[profile  three ]\ny=3\n");
    kit_ok(profile_load(&p, kit_path("%s/.aws/credentials", home),
                        kit_path("%s/.aws/config", home)));
    ck_assert_str_eq(profile_find(p, "default", "aws_access_key_id"), "A");
    ck_assert_str_eq(profile_find(p, "default", "aws_secret_access_key"), "b=c/d");
    ck_assert_str_eq(profile_find(p, "default", "region"), "eu-west-1");
    ck_assert_str_eq(profile_find(p, "two words", "region"), "r2");
    ck_assert_str_eq(profile_find(p, "two", "x"), "2");
    ck_assert_str_eq(profile_find(p, "three", "y"), "3");
    ck_assert(!profile_find(p, "two words", "x"));
    ck_assert(!profile_find(p, "default", "endpoint"));
    ck_assert(!profile_find(p, "default", "aws_nested"));
    ck_assert(profile_has(p, "two words") && !profile_has(p, "x"));
    ck_assert(!profile_get(p, PROFILE_CONFIG, "default", "aws_access_key_id"));
    profile_free(p);
    static const char *const bad[] = {"[default\n", "x = 1\n", "[a]\nAKIAsecret\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        credentials(bad[i]);
        kit_fails(profile_load(&p, kit_path("%s/.aws/credentials", home), NULL),
                  E_CONFIG, i < 2 ? "line 1: neither" : "line 2: neither");
        ck_assert(!strstr(err_text(), "AKIA"));
    }
    kit_ok(profile_load(&p, NULL, kit_path("%s/none", home)));
    ck_assert(!profile_has(p, "default"));
    profile_free(p);
}
END_TEST

/* ---- links that ask nobody ---- */

START_TEST(who_was_asked)
{
    enter();
    kit_fails(find(&plain), E_ACCESS,
              "(environment: AWS_ACCESS_KEY_ID is not set; web identity: ");
    static const char *const why[] = {
        "web identity: AWS_WEB_IDENTITY_TOKEN_FILE is not set",
        "profile: there is no profile default",
        "container: AWS_CONTAINER_CREDENTIALS_FULL_URI is not set",
        "instance metadata: disabled by AWS_EC2_METADATA_DISABLED"};
    for (size_t i = 0; i < sizeof why / sizeof *why; i++)
        ck_assert_msg(strstr(err_text(), why[i]) != NULL, "%s", err_text());
    const struct creds_rules named = {.profile = "nobody"},
                             unsigned_ = {.no_sign = true},
                             file = {.credentials = "/nonexistent/keys"};
    kit_fails(find(&named), E_CONFIG, "there is no profile nobody");
    kit_fails(find(&file), E_CONFIG, "there is no file /nonexistent/keys");
    ck_assert_int_eq(find(&unsigned_), 0);
    setenv("AWS_PROFILE", "other", 1);
    kit_fails(find(&plain), E_CONFIG, "there is no profile other");
}
END_TEST

START_TEST(environment)
{
    enter();
    setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    kit_fails(find(&plain), E_CONFIG, "only one of");
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    finds("ENV");
    ck_assert_str_eq(session, "");
    setenv("AWS_SESSION_TOKEN", "t", 1);
    finds("ENV");
    ck_assert_str_eq(session, "t");
    setenv("AWS_SESSION_TOKEN", "t\r\nX-Evil: 1", 1);
    kit_fails(find(&plain), E_ACCESS, "blanks");
    ck_assert(!strstr(err_text(), "Evil"));
}
END_TEST

START_TEST(keys_of_a_profile)
{
    enter();
    config("[default]\naws_access_key_id = CONF\naws_secret_access_key = x\n"
           "[profile half]\naws_access_key_id = HALF\n"
           "[profile sso]\nsso_start_url = https://x\n");
    finds("CONF");
    credentials("[default]\naws_access_key_id = CRED\naws_secret_access_key = x\n"
                "[other]\naws_access_key_id = OTHER\naws_secret_access_key = x\n"
                "aws_session_token = tok\n");
    finds("CRED");
    setenv("AWS_PROFILE", "other", 1);
    finds("OTHER");
    ck_assert_str_eq(session, "tok");
    setenv("AWS_PROFILE", "half", 1);
    kit_fails(find(&plain), E_CONFIG, "half has only one of");
    setenv("AWS_PROFILE", "sso", 1);
    kit_fails(find(&plain), E_CONFIG, "export-credentials --profile sso");
    setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    finds("ENV"); // goes before a profile, unless that is named by option
    const struct creds_rules named = {.profile = "other"};
    ck_assert_int_eq(find(&named), 1);
    ck_assert_str_eq(access_id, "OTHER");
    kit_write_text(kit_path("%s/keys", home),
                   "[default]\naws_access_key_id = FILE\naws_secret_access_key = x\n");
    const struct creds_rules file = {.profile = "default",
                                     .credentials = kit_path("%s/keys", home)};
    ck_assert_int_eq(find(&file), 1);
    ck_assert_str_eq(access_id, "FILE");
}
END_TEST

START_TEST(output_of_a_process)
{
    static const struct {
        const char *command;
        int code;
        const char *text; // the access id, or what the message says
    } run[] = {
        {"echo '{\"Version\":1,\"AccessKeyId\":\"PROC\",\"SecretAccessKey\":\"s\"}'", 0,
         "PROC"},
        {"echo '{\"Version\":1,\"AccessKeyId\":\"P2\",\"SecretAccessKey\":\"s\","
         "\"SessionToken\":\"t\",\"Expiration\":\"2099-01-01T00:00:00.5Z\"}'",
         0, "P2"},
        {"echo '{\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"s3cr3t\","
         "\"Expiration\":\"2009-01-01T00:00:00Z\"}'",
         E_ACCESS, "had expired"},
        {"echo '{\"AccessKeyId\":\"P\",\"SecretAccessKey\":\"s3cr3t\","
         "\"Expiration\":\"soon\"}'",
         E_FORMAT, "no time"},
        {"echo '{\"AccessKeyId\":\"P\"}'; : s3cr3t", E_FORMAT, "SecretAccessKey"},
        {"echo s3cr3t", E_FORMAT, "profile default, credential_process"},
        {"echo '[]'", E_FORMAT, "not an object"},
        {"exit 3", E_ACCESS, "ended with status 3"},
        {"kill -9 $$", E_ACCESS, "ended with status 137"},
        {"head -c 70000 /dev/zero", E_FORMAT, "bytes of output"},
    };
    enter();
    for (size_t i = 0; i < sizeof run / sizeof *run; i++) {
        config(kit_path("[default]\ncredential_process = %s\n", run[i].command));
        if (run[i].code == 0)
            finds(run[i].text);
        else
            kit_fails(find(&plain), run[i].code, run[i].text);
        ck_assert(!strstr(err_text(), "s3cr3t"));
    }
}
END_TEST

/* ---- links that ask the server ---- */

START_TEST(web_identity)
{
    enter();
    start_server("3600", NULL, NULL);
    setenv("AWS_WEB_IDENTITY_TOKEN_FILE", kit_path("%s/token", home), 1);
    kit_fails(find(&plain), E_CONFIG, "AWS_ROLE_ARN is not");
    setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r", 1);
    finds("KEY1");
    ck_assert_str_eq(session, "token==1");
    config(kit_path("[default]\nrole_arn = arn:aws:iam::1:role/q\n"
                    "web_identity_token_file = %s/token\n",
                    home));
    unsetenv("AWS_WEB_IDENTITY_TOKEN_FILE");
    finds("KEY2");
    kit_write_text(kit_path("%s/stale", home), "stale");
    config(kit_path("[default]\nrole_arn = arn:aws:iam::1:role/q\n"
                    "web_identity_token_file = %s/stale\n",
                    home));
    kit_fails(find(&plain), E_ACCESS,
              "cannot take on arn:aws:iam::1:role/q: STS: status 403: "
              "InvalidIdentityToken: not the token");
    stop_server();
}
END_TEST

START_TEST(roles)
{
    enter();
    start_server("3600", NULL, NULL);
    credentials(
        "[base]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n"
        "[wrong]\naws_access_key_id = BASE\naws_secret_access_key = guess\n"
        "[own]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n"
        "role_arn = arn:aws:iam::1:role/own\nsource_profile = own\n");
    config("[profile one]\nrole_arn = arn:aws:iam::1:role/one\nsource_profile = base\n"
           "external_id = x y&z\nrole_session_name = me\nduration_seconds = 900\n"
           "[profile two]\nrole_arn = arn:aws:iam::1:role/two\nsource_profile = one\n"
           "[profile env]\nrole_arn = arn:aws:iam::1:role/env\n"
           "credential_source = Environment\n"
           "[profile bad]\nrole_arn = arn:aws:iam::1:role/bad\nsource_profile = wrong\n"
           "[profile none]\nrole_arn = arn:aws:iam::1:role/none\n"
           "[profile gone]\nrole_arn = arn:aws:iam::1:role/g\nsource_profile = no\n"
           "[profile a]\nrole_arn = arn:aws:iam::1:role/a\nsource_profile = b\n"
           "[profile b]\nrole_arn = arn:aws:iam::1:role/b\nsource_profile = a\n"
           "[profile mfa]\nrole_arn = arn:aws:iam::1:role/m\nsource_profile = base\n"
           "mfa_serial = x\n");
    setenv("AWS_PROFILE", "one", 1);
    finds("KEY1");
    setenv("AWS_PROFILE", "two", 1);
    finds("KEY3"); // of the second role, by the first one's KEY2
    setenv("AWS_PROFILE", "own", 1);
    finds("KEY4");
    static const char *const bad[][2] = {{"bad", "InvalidClientTokenId"},
                                         {"none", "neither source_profile"},
                                         {"gone", "there is no profile no"},
                                         {"a", "in a circle"},
                                         {"mfa", "mfa_serial"},
                                         {"env", "nobody to take on"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("AWS_PROFILE", bad[i][0], 1);
        kit_fails(find(&plain), i == 0 || i == 5 ? E_ACCESS : E_CONFIG, bad[i][1]);
        ck_assert(!strstr(err_text(), "guess"));
    }
    setenv("AWS_ACCESS_KEY_ID", "BASE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "base-secret", 1);
    const struct creds_rules env = {.profile = "env"};
    ck_assert_int_eq(find(&env), 1);
    ck_assert_str_eq(access_id, "KEY5");
    stop_server();
}
END_TEST

START_TEST(container)
{
    enter();
    start_server("3600", NULL, NULL);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", kit_path("%s/ecs", at), 1);
    kit_fails(find(&plain), E_ACCESS, "/ecs: status 401");
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "open-sesame", 1);
    finds("KEY1"); // ECS
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "stale", 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", kit_path("%s/token", home), 1);
    finds("KEY2"); // EKS Pod Identity
    tell_server("/-/faults", "status op=ecs status=500 times=2 code=X");
    finds("KEY5"); // two of them were lost on the way
    tell_server("/-/faults", "garbage op=ecs");
    kit_fails(find(&plain), E_FORMAT, "/ecs: ");
    static const char *const strangers[] = {"http://example.com/x",
                                            "http://127.0.0.1.example.com/",
                                            "http://169.254.1.1/", "ftp://localhost/"};
    for (size_t i = 0; i < sizeof strangers / sizeof *strangers; i++) {
        setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", strangers[i], 1);
        kit_fails(find(&plain), E_CONFIG, "http to a host that is not this one");
    }
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", kit_path("%s/ecs", at), 1);
    kit_write_text(kit_path("%s/token", home), "two\nlines");
    kit_fails(find(&plain), E_CONFIG, "line end in it");
    setenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "x", 1);
    kit_fails(find(&plain), E_CONFIG, "not a path");
    stop_server();
}
END_TEST

START_TEST(instance_metadata)
{
    enter();
    start_server("3600", NULL, NULL);
    unsetenv("AWS_EC2_METADATA_DISABLED");
    setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", kit_path("%s/", at), 1);
    finds("KEY1");
    tell_server("/-/faults", "status op=imdstoken status=403 code=X");
    kit_fails(find(&plain), E_ACCESS, "instance metadata: "); // no fall back to v1
    tell_server("/-/faults", "stall op=imdstoken at=3 secs=60");
    double begun = log_now();
    kit_fails(find(&plain), E_ACCESS, "no answer within the hop limit");
    ck_assert_msg(log_now() - begun < 5, "took %g s", log_now() - begun);
    tell_server("/-/faults", "status op=imds status=404 code=X");
    kit_fails(find(&plain), E_ACCESS, "instance metadata: the machine has no role");
    tell_server("/-/faults", "truncate op=imds at=20 skip=1");
    kit_fails(find(&plain), E_REMOTE, "instance metadata: ");
    stop_server();
    kit_fails(find(&plain), E_ACCESS, "instance metadata: "); // nobody listens
    setenv("AWS_METADATA_SERVICE_TIMEOUT", "soon", 1);
    ck_assert_int_lt(find(&plain), 0);
}
END_TEST

/* ---- time ---- */

START_TEST(replaced_before_they_expire)
{
    struct creds *c;
    enter();
    start_server("2", NULL, NULL);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", kit_path("%s/ecs", at), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "open-sesame", 1);
    kit_ok(creds_open(&c, &plain));
    double begun = log_now(), longest = 0;
    int changes = 0;
    char last[160] = "";
    while (log_now() - begun < 4) {
        double before = log_now();
        kit_ok(take(c));
        longest = fmax(longest, changes > 0 ? log_now() - before : 0);
        changes += strcmp(last, access_id) != 0;
        snprintf(last, sizeof last, "%s", access_id);
        usleep(5000);
    }
    ck_assert_msg(changes >= 3 && changes <= 5, "%d keys in 4 s", changes);
    ck_assert_msg(longest < 0.1, "waited %g s", longest); // the service takes its time
    // While it does not answer, what there is is used until it expires, and not longer.
    tell_server("/-/faults", "status op=ecs status=500 code=X times=all");
    kit_ok(take(c));
    begun = log_now();
    int rc;
    while ((rc = take(c)) > 0 && log_now() - begun < 10)
        usleep(20000);
    kit_fails(rc, E_REMOTE, "cannot refresh credentials");
    ck_assert_msg(log_now() - begun < 5, "%g s", log_now() - begun);
    tell_server("/-/faults", "");
    kit_ok(take(c)); // and it recovers
    creds_close(c);
    stop_server();
}
END_TEST

static void *take_once(void *c)
{
    struct sigv4_key key;
    struct buf token = {0};
    int rc = creds_take(c, NOW, "us-east-1", "s3", &key, &token);
    buf_drop(&token);
    return rc == 1 && strcmp(key.access, "KEY1") == 0 ? c : NULL;
}

START_TEST(one_asks_for_all)
{
    struct creds *c;
    pthread_t thread[16];
    enter();
    start_server("3600", NULL, NULL);
    tell_server("/-/faults", "wait op=ecs secs=0.3");
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", kit_path("%s/ecs", at), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "open-sesame", 1);
    kit_ok(creds_open(&c, &plain));
    for (int i = 0; i < 16; i++)
        ck_assert(pthread_create(&thread[i], NULL, take_once, c) == 0);
    for (int i = 0; i < 16; i++) {
        void *well;
        pthread_join(thread[i], &well);
        ck_assert(well);
    }
    creds_close(c);
    stop_server();
}
END_TEST

START_TEST(spoilt)
{
    struct creds *c;
    enter();
    start_server("4", NULL, NULL);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", kit_path("%s/ecs", at), 1);
    setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "open-sesame", 1);
    kit_ok(creds_open(&c, &plain));
    kit_ok(take(c));
    ck_assert(!creds_spoil(c, "KEY1")); // just made: it is not age that is wrong
    ck_assert(creds_spoil(c, "KEY0"));  // others are in use already
    usleep(1300000);
    ck_assert(creds_spoil(c, "KEY1"));
    kit_ok(take(c));
    ck_assert_str_eq(access_id, "KEY2");
    ck_assert(creds_spoil(c, "KEY1")); // by who was late: others are in use already
    creds_close(c);
    setenv("AWS_ACCESS_KEY_ID", "ENV", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "s", 1);
    kit_ok(creds_open(&c, &plain));
    kit_ok(take(c));
    ck_assert(!creds_spoil(c, "ENV")); // there are no others
    creds_close(c);
    stop_server();
}
END_TEST

START_TEST(clocks_that_are_wrong)
{
    static const char *const clock[] = {"7200", "-7200"};
    for (int i = 0; i < 2; i++) {
        enter();
        start_server("600", "--clock", clock[i]);
        credentials("[default]\naws_access_key_id = BASE\n"
                    "aws_secret_access_key = base-secret\n"
                    "role_arn = arn:aws:iam::1:role/own\nsource_profile = default\n");
        finds("KEY1"); // signed again by the server's clock
        struct creds *c;
        kit_ok(creds_open(&c, &plain));
        kit_ok(take(c));
        ck_assert_str_eq(access_id, "KEY2");
        kit_ok(take(c)); // it lives: asked only once
        ck_assert_str_eq(access_id, "KEY2");
        creds_close(c);
        stop_server();
    }
}
END_TEST

/* ---- signing a call ---- */

START_TEST(signed_call)
{
    struct creds *c;
    struct http_call call = {.method = "GET"};
    enter();
    setenv("AWS_ACCESS_KEY_ID", "AKIAIOSFODNN7EXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", 1);
    kit_ok(creds_open(&c, &plain));
    const struct sign_rules rules = {
        .region = "us-east-1", .payload = SIGN_EMPTY, .time = NOW};
    buf_adds(&call.url, "https://examplebucket.s3.amazonaws.com/test.txt");
    http_add(&call.lines, "Range", "bytes=0-9");
    kit_ok(sign_call(&call, c, &rules));
    ck_assert_int_eq(call.lines.n, 4);
    ck_assert(
        memmem(call.lines.text.p, call.lines.text.len,
               "Signature=f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c60"
               "36bdb41",
               74));
    http_call_clear(&call);
    buf_adds(&call.url, "https://examplebucket.s3.amazonaws.com/?prefix=J&max-keys=2");
    kit_ok(sign_call(&call, c, &rules));
    ck_assert(
        memmem(call.lines.text.p, call.lines.text.len,
               "Signature=34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef"
               "69dc6f7",
               74));
    creds_close(c);
    const struct creds_rules none = {.no_sign = true};
    kit_ok(creds_open(&c, &none));
    http_call_clear(&call);
    buf_adds(&call.url, "https://examplebucket.s3.amazonaws.com/x");
    kit_ok(sign_call(&call, c, &rules));
    ck_assert_int_eq(call.lines.n, 0);
    creds_close(c);
    http_call_drop(&call);
}
END_TEST

START_TEST(settings)
{
    struct creds *c;
    enter();
    config(
        "[default]\nregion = r1\nendpoint_url = http://x\n[profile p]\nregion = r2\n");
    kit_ok(creds_open(&c, &plain));
    ck_assert_str_eq(creds_region(c), "r1");
    ck_assert_str_eq(creds_setting(c, "endpoint_url"), "http://x");
    setenv("AWS_DEFAULT_REGION", "r3", 1);
    ck_assert_str_eq(creds_region(c), "r3");
    setenv("AWS_REGION", "r4", 1);
    ck_assert_str_eq(creds_region(c), "r4");
    creds_close(c);
}
END_TEST

/* ---- XML ---- */

static int note(void *user, const char *path, const char *text)
{
    buf_addf(user, "%s=%s;", path, text);
    return strcmp(text, "stop") == 0 ? err_set(E_AGAIN, "stopped") : 0;
}

static int read_xml(struct buf *out, const char *text)
{
    buf_clear(out);
    return xml_read(text, strlen(text), note, out);
}

START_TEST(xml)
{
    struct buf out = {0}, deep = {0};
    kit_ok(read_xml(&out, "<?xml version='1.0'?><a xmlns='http://x'><b>1 &lt; 2</b>"
                          "<c><b/>t</c></a>"));
    ck_assert_str_eq(buf_text(&out), "a/b=1 < 2;a/c/b=;a/c=t;a=;");
    kit_fails(read_xml(&out, "<a><b>stop</b><c/></a>"), E_AGAIN, "stopped");
    ck_assert_str_eq(buf_text(&out), "a/b=stop;");
    kit_fails(read_xml(&out, "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>"), E_FORMAT,
              "document type");
    kit_fails(read_xml(&out, "<a><b>"), E_FORMAT, "line 1");
    kit_fails(read_xml(&out, ""), E_FORMAT, "line 1");
    for (int i = 0; i < 40; i++)
        buf_adds(&deep, "<a>");
    kit_fails(read_xml(&out, buf_text(&deep)), E_FORMAT, "too deep");
    buf_clear(&deep);
    buf_addc(&deep, '<');
    buf_fill(&deep, 'a', 2000);
    buf_adds(&deep, "/>");
    kit_fails(read_xml(&out, buf_text(&deep)), E_FORMAT, "too deep");
    buf_clear(&deep);
    buf_adds(&deep, "<a>");
    buf_fill(&deep, 'a', XML_TEXT_MAX + 1);
    buf_adds(&deep, "</a>");
    kit_fails(read_xml(&out, buf_text(&deep)), E_FORMAT, "text of over");
    buf_drop(&deep);
    buf_drop(&out);
}
END_TEST

KIT_MAIN("creds", files_of_profiles, who_was_asked, environment, keys_of_a_profile,
         output_of_a_process, web_identity, roles, container, instance_metadata,
         replaced_before_they_expire, one_asks_for_all, spoilt, clocks_that_are_wrong,
         signed_call, settings, xml)
