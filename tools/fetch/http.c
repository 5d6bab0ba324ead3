/* SPDX-License-Identifier: MIT */
/* http.c - libcurl's multi interface on epoll.
 *
 * Handles are reused and set up once, the header list lies in the slot, and a socket
 * stays registered with epoll between two calls: a small object costs little more than
 * the two system calls that move it. */
#include "http.h"

#include <curl/curl.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "err.h"
#include "log.h"
#include "mem.h"
#include "tls.h"
#include "tool.h"
#include "url.h"

/* Of a socket: watched, although libcurl has let go of it; opened by us. */
enum { IDLE = 1 << 30, CONNECTION = 1 << 29 };

/* The cheapest first: 128 bits are as safe, and what S3 itself prefers. */
#define CIPHERS                                                                        \
    "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"

/* A handle of libcurl and the call that it carries. */
struct slot {
    CURL *easy;
    struct http_call *call;
    struct slot *next; // idle, or of all
    struct slot *all;
    struct curl_slist line[HTTP_LINES + 3];
    char why[CURL_ERROR_SIZE];
    bool refused;
    curl_socket_t fd; // what it waits for, CURL_SOCKET_BAD: nothing
};

struct http {
    CURLM *multi;
    int epoll, wake, flying;
    double timer; // when libcurl wants to be called, HUGE_VAL: not
    bool tls;     // read ahead, so look for what was read (tls.h)
    struct slot *idle, *all;
    struct http_rules rules;
    int *interest; // by descriptor: what epoll watches, and the two above
    int64_t interests;
    CURLMcode broken; // why it cannot go on
};

void http_add(struct http_lines *to, const char *name, const char *value)
{
    buf_adds(&to->text, name);
    buf_adds(&to->text, ": ");
    buf_adds(&to->text, value);
    buf_addc(&to->text, 0);
    to->n++;
}

void http_forget(struct http_lines *from, const char *name)
{
    size_t n = strlen(name);
    char *at = from->text.p, *to = at;
    int kept = 0;
    for (int i = 0; i < from->n; i++) {
        size_t size = strlen(at) + 1;
        if (strncasecmp(at, name, n) != 0 || at[n] != ':') {
            memmove(to, at, size);
            to += size;
            kept++;
        }
        at += size;
    }
    from->n = kept;
    from->text.len = (size_t)(to - from->text.p);
}

void http_call_move(struct http_call *c, const char *url)
{
    static const char *const secret[] = {"Authorization", "Cookie",
                                         "X-Amz-Security-Token"};
    bool same = url_same_host(buf_text(&c->url), url);
    for (size_t i = 0; i < sizeof secret / sizeof *secret && !same; i++)
        http_forget(&c->lines, secret[i]);
    buf_clear(&c->url);
    buf_adds(&c->url, url);
}

void http_call_clear(struct http_call *c)
{
    buf_clear(&c->url);
    buf_clear(&c->lines.text);
    c->lines.n = 0;
    c->send = NULL;
    c->send_size = 0;
    c->patience = 0;
}

void http_call_drop(struct http_call *c)
{
    buf_drop(&c->url);
    buf_drop(&c->lines.text);
    buf_drop(&c->text);
    c->lines.n = 0;
}

/* ---- what libcurl calls ---- */

static size_t on_header(char *line, size_t one, size_t n, void *user)
{
    struct slot *s = user;
    (void)one;
    head_line(&s->call->head, line, n);
    return n;
}

/* What is kept of a body that has no function of its own. */
static bool keep(struct http_call *c, const char *bytes, size_t n)
{
    bool good = c->head.status / 100 == 2;
    size_t limit = good ? c->limit : HTTP_ERROR_TEXT;
    size_t room = limit > c->text.len ? limit - c->text.len : 0;
    buf_add(&c->text, bytes, n < room ? n : room);
    return !c->text.failed && (n <= room || !good);
}

static size_t on_body(char *bytes, size_t one, size_t n, void *user)
{
    struct slot *s = user;
    struct http_call *c = s->call;
    (void)one;
    c->received += (int64_t)n;
    bool taken = c->body && c->head.status / 100 == 2 ? c->body(c, bytes, n) >= 0
                                                      : keep(c, bytes, n);
    s->refused = !taken;
    return taken ? n : 0;
}

static int on_timer(CURLM *multi, long ms, void *user)
{
    struct http *h = user;
    (void)multi;
    h->timer = ms < 0 ? HUGE_VAL : log_now() + 1e-3 * (double)ms;
    return 0;
}

static int *interest_of(struct http *h, curl_socket_t fd)
{
    while (fd >= h->interests) {
        int64_t before = h->interests, after = before ? 2 * before : 256;
        int *grown = mem_grow(h->interest, (size_t)before * sizeof *grown,
                              (size_t)after * sizeof *grown);
        if (!grown)
            return NULL;
        memset(grown + before, 0, (size_t)(after - before) * sizeof *grown);
        h->interest = grown;
        h->interests = after;
    }
    return &h->interest[fd];
}

static int watch(const struct http *h, curl_socket_t fd, int how, int want)
{
    struct epoll_event event = {.events = (uint32_t)want, .data.fd = fd};
    return epoll_ctl(h->epoll, how, fd, &event) == 0 ? 0 : -1;
}

/* The socket of a call is the last one that was to be watched for it. */
static void set_socket(struct slot *s, curl_socket_t fd, bool ends)
{
    if (!ends)
        s->fd = fd;
    else if (s->fd == fd)
        s->fd = CURL_SOCKET_BAD;
}

/* A connection that libcurl lets go of stays watched for input: its next call will want
 * that.  If something comes before then, on_event ends the watch.  Other sockets are
 * those of its resolver, which it closes itself. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *data)
{
    struct http *h = user;
    int *now = interest_of(h, fd), want = 0;
    struct slot *s = NULL;
    (void)data;
    bool ends = what == CURL_POLL_REMOVE;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&s) == CURLE_OK && s)
        set_socket(s, fd, ends);
    if (!now)
        return -1;
    bool connection = *now & CONNECTION;
    int before = *now & (EPOLLIN | EPOLLOUT);
    if (ends && !connection) {
        *now = 0;
        return before ? watch(h, fd, EPOLL_CTL_DEL, 0) : 0;
    }
    if (ends)
        want = EPOLLIN;
    else
        want =
            (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    if (want != before &&
        watch(h, fd, before ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, want) != 0)
        return -1;
    *now = want | (ends ? IDLE : 0) | (connection ? CONNECTION : 0);
    return 0;
}

static curl_socket_t on_open(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct http *h = user;
    (void)purpose;
    int fd = socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
    int *now = fd >= 0 ? interest_of(h, fd) : NULL;
    if (!now && fd >= 0)
        close(fd);
    if (!now)
        return CURL_SOCKET_BAD;
    *now = CONNECTION;
    return fd;
}

/* Closing a socket ends epoll's interest in it. */
static int on_close(void *user, curl_socket_t fd)
{
    struct http *h = user;
    if (fd < h->interests)
        h->interest[fd] = 0;
    return close(fd);
}

static CURLcode on_tls(CURL *easy, void *ctx, void *user)
{
    struct http *h = user;
    (void)easy;
    h->tls = true;
    return tls_read_ahead(ctx) < 0 ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

/* ---- slots ---- */

static bool has_openssl(void)
{
    const char *tls = curl_version_info(CURLVERSION_NOW)->ssl_version;
    return tls && strncmp(tls, "OpenSSL/", 8) == 0;
}

/* Records may be read ahead where OpenSSL is what libcurl has for TLS, and not through
 * a proxy that speaks TLS itself: libcurl does not show us that one's SSL. */
static bool may_read_ahead(void)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy", "ALL_PROXY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *proxy = getenv(names[i]);
        if (proxy && strncasecmp(proxy, "https://", 8) == 0)
            return false;
    }
    return has_openssl();
}

static CURLcode set_up(struct http *h, struct slot *s)
{
    CURLcode rc = CURLE_OK;
#define SET(option, value)                                                             \
    if (rc == CURLE_OK)                                                                \
    rc = curl_easy_setopt(s->easy, option, value)
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_PATH_AS_IS, 1L);
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_CONTENT_DECODING, 0L);
    SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(CURLOPT_USERAGENT, "drafthorse/" TOOL_VERSION);
    SET(CURLOPT_BUFFERSIZE, 60L << 10);     // freeing 64 KiB makes glibc tidy its heap
    SET(CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L); // of each answer, so each connection asks
    SET(CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    SET(CURLOPT_MAXAGE_CONN, 15L); // S3 closes what is idle for about 20 s
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)(1e3 * h->rules.connect));
    SET(CURLOPT_LOW_SPEED_LIMIT, 1L);
    if (h->rules.send_rate > 0)
        SET(CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)ceil(h->rules.send_rate));
    if (h->rules.ca)
        SET(CURLOPT_CAINFO, h->rules.ca);
    if (has_openssl())
        SET(CURLOPT_TLS13_CIPHERS, CIPHERS);
    if (may_read_ahead()) {
        SET(CURLOPT_SSL_CTX_FUNCTION, on_tls);
        SET(CURLOPT_SSL_CTX_DATA, h);
    }
    if (h->rules.direct)
        SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_ERRORBUFFER, s->why);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, s);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, s);
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open);
    SET(CURLOPT_OPENSOCKETDATA, h);
    SET(CURLOPT_CLOSESOCKETFUNCTION, on_close);
    SET(CURLOPT_CLOSESOCKETDATA, h);
    SET(CURLOPT_PRIVATE, s);
    return rc;
}

static int no_memory(void)
{
    return err_set(E_MEMORY, "out of memory in libcurl");
}

static int slot_new(struct slot **out, struct http *h)
{
    struct slot *s = mem_zero(1, sizeof *s);
    if (!s)
        return E_MEMORY;
    s->easy = curl_easy_init();
    if (!s->easy || set_up(h, s) != CURLE_OK) {
        curl_easy_cleanup(s->easy);
        mem_free(s);
        return no_memory();
    }
    s->all = h->all;
    h->all = s;
    *out = s;
    return 0;
}

/* The call's lines, and two that keep libcurl from adding its own. */
static struct curl_slist *link_lines(struct slot *s, const struct http_call *c)
{
    static char no_type[] = "Content-Type:", no_expect[] = "Expect:";
    char *text = c->lines.text.p;
    int n = 0;
    if (c->lines.n > HTTP_LINES)
        bug("%d header lines", c->lines.n);
    for (; n < c->lines.n; n++, text += strlen(text) + 1)
        s->line[n].data = text;
    if (c->send_size > 0 || *c->method == 'P') {
        s->line[n++].data = no_expect;
        bool typed = false;
        for (int i = 0; i < c->lines.n; i++)
            typed |= strncasecmp(s->line[i].data, no_type, strlen(no_type)) == 0;
        if (!typed)
            s->line[n++].data = no_type;
    }
    for (int i = 0; i < n; i++)
        s->line[i].next = i + 1 < n ? &s->line[i + 1] : NULL;
    return n > 0 ? s->line : NULL;
}

static CURLcode ask(struct slot *s, struct http_call *c, double stall)
{
    CURLcode rc = CURLE_OK;
    SET(CURLOPT_URL, buf_text(&c->url));
    SET(CURLOPT_CUSTOMREQUEST, NULL);
    SET(CURLOPT_LOW_SPEED_TIME, (long)ceil(fmax(stall, c->patience)));
    if (strcmp(c->method, "HEAD") == 0) {
        SET(CURLOPT_NOBODY, 1L);
    } else {
        SET(CURLOPT_HTTPGET, 1L); // also ends the NOBODY of a call before
        if (strcmp(c->method, "GET") != 0) {
            SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->send_size);
            SET(CURLOPT_POSTFIELDS, c->send ? c->send : "");
            SET(CURLOPT_CUSTOMREQUEST, c->method);
        }
    }
    SET(CURLOPT_HTTPHEADER, link_lines(s, c));
#undef SET
    return rc;
}

/* ---- calls ---- */

int http_start(struct http *h, struct http_call *c)
{
    struct slot *s = h->idle;
    if (s)
        h->idle = s->next;
    else
        TRY(slot_new(&s, h));
    head_start(&c->head);
    buf_clear(&c->text);
    c->received = 0;
    c->why[0] = s->why[0] = 0;
    s->refused = false;
    s->call = c;
    s->fd = CURL_SOCKET_BAD;
    c->slot = s;
    if (c->lines.text.failed || c->url.failed ||
        ask(s, c, h->rules.stall) != CURLE_OK ||
        curl_multi_add_handle(h->multi, s->easy) != CURLM_OK) {
        c->slot = NULL;
        s->call = NULL;
        s->next = h->idle;
        h->idle = s;
        return no_memory();
    }
    h->flying++;
    return 0;
}

static void land(struct http *h, struct slot *s)
{
    curl_multi_remove_handle(h->multi, s->easy);
    s->call->slot = NULL;
    s->call = NULL;
    s->next = h->idle;
    h->idle = s;
    h->flying--;
}

void http_drop(struct http *h, struct http_call *c)
{
    if (c->slot)
        land(h, c->slot);
}

static enum http_end end_of(const struct slot *s, CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return HTTP_WHOLE;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        return HTTP_UNREACHED;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        return HTTP_UNTRUSTED;
    case CURLE_URL_MALFORMAT:
        return HTTP_NO_URL;
    case CURLE_SSL_CONNECT_ERROR: // of a line that breaks, too
        return tls_mistaken(s->why) ? HTTP_NO_TLS : HTTP_BROKEN;
    case CURLE_OPERATION_TIMEDOUT: {
        double connected = 0;
        curl_easy_getinfo(s->easy, CURLINFO_PRETRANSFER_TIME, &connected);
        return connected > 0 ? HTTP_STALLED : HTTP_UNREACHED;
    }
    case CURLE_WRITE_ERROR:
        return s->refused ? HTTP_REFUSED : HTTP_BROKEN;
    default:
        return HTTP_BROKEN;
    }
}

static void finish(struct http *h, struct slot *s, CURLcode code)
{
    struct http_call *c = s->call;
    long connects = 0;
    c->end = end_of(s, code);
    if (code != CURLE_OK) {
        const char *why = s->why[0] ? s->why : curl_easy_strerror(code);
        memcpy(c->why, why, strnlen(why, sizeof c->why - 1) + 1);
        c->why[sizeof c->why - 1] = 0;
        curl_easy_getinfo(s->easy, CURLINFO_NUM_CONNECTS, &connects);
        c->reused = connects == 0;
    }
    land(h, s);
    if (c->done)
        c->done(c);
}

static void reap(struct http *h)
{
    CURLMsg *m;
    int more;
    while ((m = curl_multi_info_read(h->multi, &more))) {
        struct slot *s = NULL;
        CURLcode code = m->data.result;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&s);
        finish(h, s, code);
    }
}

/* A multi handle that has failed once does nothing any more. */
static void act(struct http *h, curl_socket_t fd, int what)
{
    int running;
    CURLMcode code = curl_multi_socket_action(h->multi, fd, what, &running);
    if (code != CURLM_OK)
        h->broken = code;
}

static void on_event(struct http *h, const struct epoll_event *e)
{
    int what = 0, fd = e->data.fd;
    if (fd == h->wake) {
        eventfd_t value;
        eventfd_read(fd, &value);
        return;
    }
    if (h->interest[fd] & IDLE) { // the server has closed it; libcurl will find out
        epoll_ctl(h->epoll, EPOLL_CTL_DEL, fd, NULL);
        h->interest[fd] = CONNECTION;
        return;
    }
    if (e->events & EPOLLIN)
        what |= CURL_CSELECT_IN;
    if (e->events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (e->events & (EPOLLERR | EPOLLHUP))
        what |= CURL_CSELECT_ERR;
    act(h, fd, what);
}

static void on_time(struct http *h)
{
    while (h->timer <= log_now()) {
        h->timer = HUGE_VAL;
        act(h, CURL_SOCKET_TIMEOUT, 0);
    }
}

static void *ssl_of(const struct slot *s)
{
    struct curl_tlssessioninfo *info = NULL;
    if (!s->call || curl_easy_getinfo(s->easy, CURLINFO_TLS_SSL_PTR, &info) != CURLE_OK)
        return NULL;
    return info && info->backend == CURLSSLBACKEND_OPENSSL ? info->internals : NULL;
}

/* Lets libcurl read what OpenSSL has read ahead; true: there may be more. */
static bool read_held(struct http *h)
{
    bool more = false;
    for (struct slot *s = h->tls ? h->all : NULL; s; s = s->all) {
        void *ssl = s->fd != CURL_SOCKET_BAD ? ssl_of(s) : NULL;
        if (!ssl || !tls_holds(ssl))
            continue;
        tls_tried(ssl);
        act(h, s->fd, CURL_CSELECT_IN);
        more |= (ssl = ssl_of(s)) && tls_holds(ssl);
    }
    return more;
}

int http_turn(struct http *h, double seconds)
{
    struct epoll_event event[64];
    on_time(h);
    bool more = read_held(h);
    reap(h); // may start calls, whose time is now
    double wait = more ? 0 : fmin(seconds, h->timer - log_now());
    int ms = wait > 0 ? (int)ceil(1e3 * wait) : 0;
    int n = epoll_wait(h->epoll, event, sizeof event / sizeof *event, ms);
    if (n < 0 && errno != EINTR)
        return err_errno(errno, "cannot wait for the network");
    for (int i = 0; i < n; i++)
        on_event(h, &event[i]);
    reap(h);
    if (h->broken != CURLM_OK)
        return err_set(E_MEMORY, "libcurl fails: %s", curl_multi_strerror(h->broken));
    return 0;
}

int http_flying(const struct http *h)
{
    return h->flying;
}

void http_wake(struct http *h)
{
    eventfd_write(h->wake, 1);
}

int http_run(struct http *h, struct http_call *c)
{
    TRY(http_start(h, c));
    while (c->slot) {
        int rc = tool_stopped() ? err_set(E_AGAIN, "stopped by a signal")
                                : http_turn(h, 0.2);
        if (rc < 0) {
            http_drop(h, c);
            return rc;
        }
    }
    return 0;
}

/* ---- loops ---- */

static CURLcode begun;
static void begin_once(void)
{
    begun = curl_global_init(CURL_GLOBAL_ALL);
}

int http_open(struct http **out, const struct http_rules *rules)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http *h = mem_zero(1, sizeof *h);
    *out = NULL;
    if (!h)
        return E_MEMORY;
    pthread_once(&once, begin_once);
    h->rules = *rules;
    h->timer = HUGE_VAL;
    h->epoll = epoll_create1(EPOLL_CLOEXEC);
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->multi = begun == CURLE_OK ? curl_multi_init() : NULL;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = h->wake};
    if (h->epoll < 0 || h->wake < 0 || !h->multi ||
        epoll_ctl(h->epoll, EPOLL_CTL_ADD, h->wake, &event) != 0) {
        http_close(h);
        return err_set(E_MEMORY, "cannot set up libcurl");
    }
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(h->multi, CURLMOPT_SOCKETDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(h->multi, CURLMOPT_TIMERDATA, h);
    curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)rules->connections);
    *out = h;
    return 0;
}

void http_close(struct http *h)
{
    if (!h)
        return;
    for (struct slot *s = h->all, *next; s; s = next) {
        next = s->all;
        if (s->call)
            land(h, s);
        curl_easy_cleanup(s->easy);
        mem_free(s);
    }
    if (h->multi)
        curl_multi_cleanup(h->multi);
    if (h->epoll >= 0)
        close(h->epoll);
    if (h->wake >= 0)
        close(h->wake);
    mem_free(h->interest);
    mem_free(h);
}
