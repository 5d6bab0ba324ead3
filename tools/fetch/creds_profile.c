/* SPDX-License-Identifier: MIT */
/* creds_profile.c - keys of a profile: its own, those of a role that it takes on with
 * the keys of another profile, or what a command prints. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "creds_link.h"
#include "err.h"
#include "log.h"

enum { PROFILES_DEEP = 8, OUTPUT_MAX = 64 << 10 };
static const double PROCESS_SECONDS = 60;

extern char **environ;

/* ---- a command ---- */

static int spawn(pid_t *pid, int out, const char *command)
{
    char *const argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    int errnum = posix_spawn(pid, "/bin/sh", &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return errnum ? err_errno(errnum, "cannot start a process") : 0;
}

/* All that a process writes until it ends its output. */
static int collect(char *text, size_t *n, int fd)
{
    double until = log_now() + PROCESS_SECONDS;
    for (*n = 0; *n < OUTPUT_MAX;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        double left = until - log_now();
        int ready = left > 0 ? poll(&p, 1, (int)ceil(1e3 * left)) : 0;
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return err_set(E_REMOTE, "no end of its output for %g s", PROCESS_SECONDS);
        ssize_t got = read(fd, text + *n, OUTPUT_MAX - *n);
        if (got < 0 && errno != EINTR)
            return err_errno(errno, "cannot read its output");
        if (got == 0)
            return 0;
        *n += got > 0 ? (size_t)got : 0;
    }
    return err_set(E_FORMAT, "over %d bytes of output", OUTPUT_MAX);
}

static int run(char *text, size_t *n, const char *command)
{
    int fd[2], status = 0;
    pid_t pid;
    if (pipe2(fd, O_CLOEXEC) != 0)
        return err_errno(errno, "cannot make a pipe");
    int rc = spawn(&pid, fd[1], command);
    close(fd[1]);
    if (rc == 0) {
        rc = collect(text, n, fd[0]);
        if (rc < 0)
            kill(pid, SIGKILL);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
        if (rc == 0 && status != 0)
            rc = err_set(E_ACCESS, "the process ended with status %d",
                         WIFEXITED(status) ? WEXITSTATUS(status)
                                           : 128 + WTERMSIG(status));
    }
    close(fd[0]);
    return rc;
}

int creds_process(struct keys *out, const char *profile, const char *command)
{
    char text[OUTPUT_MAX];
    size_t n = 0;
    int rc = run(text, &n, command);
    if (rc == 0)
        rc = creds_json(out, text, n, "SessionToken", time(NULL));
    explicit_bzero(text, sizeof text);
    return rc < 0 ? err_wrap(rc, "profile %s, credential_process", profile) : 0;
}

/* ---- a profile ---- */

static int resolve(const struct chain *c, struct keys *out, const char *name, int deep);

static int own_keys(const struct chain *c, struct keys *out, const char *name)
{
    const struct profiles *p = c->profiles;
    for (enum profile_place at = 0; at < PROFILE_PLACES; at++) {
        const char *access = profile_get(p, at, name, "aws_access_key_id");
        const char *secret = profile_get(p, at, name, "aws_secret_access_key");
        if (!access && !secret)
            continue;
        if (!access || !secret)
            return err_set(E_CONFIG,
                           "profile %s has only one of aws_access_key_id and "
                           "aws_secret_access_key",
                           name);
        TRY(creds_keys(out, access, secret,
                       profile_get(p, at, name, "aws_session_token")));
        return 1;
    }
    return creds_nothing("profile %s has no keys", name);
}

static int from_source(const struct chain *c, struct keys *out, const char *name)
{
    static const struct {
        const char *name;
        creds_link *link;
    } source[] = {{"Environment", creds_environment},
                  {"EcsContainer", creds_container},
                  {"Ec2InstanceMetadata", creds_metadata}};
    for (size_t i = 0; i < sizeof source / sizeof *source; i++)
        if (strcmp(source[i].name, name) == 0)
            return source[i].link(c, out);
    return err_set(E_CONFIG, "credential_source = %s is not known", name);
}

/* A role of a profile that is its own source is taken on with the profile's own keys.
 */
static int source_keys(const struct chain *c, struct keys *out, const char *name,
                       int deep)
{
    const char *source = profile_find(c->profiles, name, "source_profile");
    const char *other = profile_find(c->profiles, name, "credential_source");
    if (!source && !other)
        return err_set(E_CONFIG,
                       "profile %s has role_arn, but neither source_profile, "
                       "credential_source nor web_identity_token_file",
                       name);
    if (!source)
        return from_source(c, out, other);
    return strcmp(source, name) == 0 ? own_keys(c, out, name)
                                     : resolve(c, out, source, deep + 1);
}

static int take_role(const struct chain *c, struct keys *out, const char *name,
                     const char *arn, int deep)
{
    const struct profiles *p = c->profiles;
    const struct creds_role role = {
        .arn = arn,
        .session = profile_find(p, name, "role_session_name"),
        .external = profile_find(p, name, "external_id"),
        .duration = profile_find(p, name, "duration_seconds"),
        .web = profile_find(p, name, "web_identity_token_file")};
    struct keys from = {0};
    if (profile_find(p, name, "mfa_serial"))
        return err_set(E_CONFIG,
                       "profile %s wants mfa_serial, which needs a person; use "
                       "credential_process",
                       name);
    if (role.web) {
        TRY(creds_assume(c, out, &role, NULL));
        return 1;
    }
    int rc = source_keys(c, &from, name, deep);
    if (rc > 0)
        rc = creds_assume(c, out, &role, &from);
    else if (rc == 0)
        rc = err_wrap(E_ACCESS, "profile %s: nobody to take on %s", name, arn);
    creds_keys_drop(&from);
    return rc < 0 ? rc : 1;
}

static int resolve(const struct chain *c, struct keys *out, const char *name, int deep)
{
    const struct profiles *p = c->profiles;
    if (deep > PROFILES_DEEP)
        return err_set(E_CONFIG, "profile %s: source_profile goes in a circle", name);
    if (!profile_has(p, name))
        return deep == 0 ? creds_nothing("there is no profile %s", name)
                         : err_set(E_CONFIG, "there is no profile %s", name);
    const char *arn = profile_find(p, name, "role_arn");
    if (arn)
        return take_role(c, out, name, arn, deep);
    int rc = own_keys(c, out, name);
    if (rc != 0)
        return rc;
    const char *command = profile_find(p, name, "credential_process");
    if (command) {
        TRY(creds_process(out, name, command));
        return 1;
    }
    if (profile_find(p, name, "sso_session") || profile_find(p, name, "sso_start_url"))
        return err_set(E_CONFIG,
                       "profile %s signs in by SSO; use credential_process = aws "
                       "configure export-credentials --profile %s",
                       name, name);
    return rc;
}

int creds_profile(const struct chain *c, struct keys *out)
{
    return resolve(c, out, c->profile, 0);
}
