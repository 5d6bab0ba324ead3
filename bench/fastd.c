/* SPDX-License-Identifier: MIT */
/* fastd.c - a fast S3 server of made-up objects: what fetch benches measure against.
 *
 *     fastd [--tls CERT KEY] NAME=COUNTxBYTES[,COUNTxBYTES]...
 *
 * Each NAME is a bucket of COUNT objects, 000000.bin and so on, of BYTES bytes, then
 * COUNT others of other BYTES.  The
 * port is printed, then requests are answered until a signal comes.  It knows what a
 * downloader asks for: ListObjectsV2 with pages and a prefix, GET and HEAD with Range
 * and If-Match, HEAD of a bucket.
 *
 * One thread, one epoll.  All objects are windows into one block of random bytes: byte
 * j of object i is byte (i * STRIDE + j) mod BLOCK, so nothing is read from a disk, and
 * a body leaves by sendfile; short ones together with their head in one call. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "err.h"
#include "mem.h"
#include "num.h"
#include "rng.h"

enum {
    BLOCK = 64 << 20,
    STRIDE = 4096,
    SETS = 8,
    SIZES = 4,
    PAGE = 1000,
    ROW = 400,           // bytes of one object in a list, at most
    REQUEST = 16 << 10,  // bytes of a request, at most
    TOGETHER = 64 << 10, // bodies up to this leave with their head
    RECORD = 16 << 10    // bytes of a TLS record
};

struct set {
    char name[64];
    int64_t count; // of all
    struct {
        int64_t end, bytes; // of objects below `end` and not below the one before
    } size[SIZES];
    int sizes;
};

/* A connection is reading a request or sending an answer: head, then either the rest of
 * `head` (lists) or `left` bytes of the block from `at` on. */
struct conn {
    int fd;
    SSL *ssl;  // NULL: plain
    bool last; // close behind this answer
    bool want_write;
    size_t got, head_len, head_sent;
    int64_t at, left;
    char *head; // owned, head_cap bytes
    size_t head_cap;
    char in[REQUEST + 1];
};

static struct {
    struct set set[SETS];
    int sets, epoll, block_fd;
    const char *block;
    SSL_CTX *tls;
} srv;

/* ---- requests ---- */

struct request {
    bool head_only, ranged, close;
    char bucket[64];
    const char *key, *query, *match; // within the connection's buffer
    int64_t first, last;
};

/* The value of a header, NULL when it is not there; ends at the line's end. */
static const char *header(const char *headers, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = headers; line; line = strstr(line, "\r\n")) {
        line += *line == '\r' ? 2 : 0;
        if (strncasecmp(line, name, n) == 0 && line[n] == ':')
            return line + n + 1 + strspn(line + n + 1, " ");
    }
    return NULL;
}

/* Takes "GET /bucket/key?query HTTP/1.1" apart, in place. */
static bool parse(struct request *q, char *text)
{
    memset(q, 0, sizeof *q);
    char *end = strstr(text, "\r\n"), *path = strchr(text, ' ');
    if (!end || !path || path > end || path[1] != '/')
        return false;
    q->head_only = strncmp(text, "HEAD ", 5) == 0;
    if (!q->head_only && strncmp(text, "GET ", 4) != 0)
        return false;
    const char *range = header(end, "Range"), *how = header(end, "Connection");
    q->match = header(end, "If-Match");
    q->ranged = range && sscanf(range, "bytes=%" SCNd64 "-", &q->first) == 1;
    if (q->ranged && sscanf(range, "bytes=%*d-%" SCNd64, &q->last) != 1)
        q->last = INT64_MAX;
    q->close = how && strncasecmp(how, "close", 5) == 0;
    path += 2;
    path[strcspn(path, " ")] = '\0';
    char *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    q->query = query ? query : "";
    char *key = strchr(path, '/');
    if (key)
        *key++ = '\0';
    q->key = key ? key : "";
    return snprintf(q->bucket, sizeof q->bucket, "%s", path) < (int)sizeof q->bucket;
}

/* The value of a query parameter, into `out`; empty when it is not there. */
static void parameter(char *out, size_t size, const char *query, const char *name)
{
    size_t n = strlen(name);
    *out = '\0';
    for (const char *p = query; p && *p; p = strchr(p, '&')) {
        p += *p == '&';
        if (strncmp(p, name, n) == 0 && p[n] == '=')
            snprintf(out, size, "%.*s", (int)strcspn(p + n + 1, "&"), p + n + 1);
    }
}

static const struct set *find_set(const char *name)
{
    for (int i = 0; i < srv.sets; i++)
        if (strcmp(srv.set[i].name, name) == 0)
            return &srv.set[i];
    return NULL;
}

static int64_t bytes_of(const struct set *s, int64_t number)
{
    int i = 0;
    while (number >= s->size[i].end)
        i++;
    return s->size[i].bytes;
}

/* ---- answers: each fills the connection's head and says what follows ---- */

__attribute__((format(printf, 2, 3))) static void add(struct conn *c, const char *fmt,
                                                      ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(c->head + c->head_len, c->head_cap - c->head_len, fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= c->head_cap - c->head_len)
        bug("an answer of over %zu bytes", c->head_cap);
    c->head_len += (size_t)n;
}

static void answer_plain(struct conn *c, int status, const char *code, bool head_only)
{
    char body[200];
    int n = snprintf(body, sizeof body, "<Error><Code>%s</Code></Error>", code);
    add(c,
        "HTTP/1.1 %d -\r\nContent-Type: application/xml\r\nContent-Length: %d\r\n\r\n",
        status, n);
    if (!head_only)
        add(c, "%s", body);
}

static void list_page(struct conn *c, const struct set *s, const char *query)
{
    char token[32], prefix[64], keys[16];
    parameter(token, sizeof token, query, "continuation-token");
    parameter(prefix, sizeof prefix, query, "prefix");
    parameter(keys, sizeof keys, query, "max-keys");
    int64_t i = strtoll(token, NULL, 10), n = 0, most = strtoll(keys, NULL, 10);
    most = most > 0 && most < PAGE ? most : PAGE;
    add(c,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult xmlns=\""
        "http://s3.amazonaws.com/doc/2006-03-01/\"><Name>%s</Name>",
        s->name);
    for (; i < s->count && n < most; i++) {
        char key[32];
        snprintf(key, sizeof key, "%06" PRId64 ".bin", i);
        if (strncmp(key, prefix, strlen(prefix)) != 0)
            continue;
        n++;
        add(c,
            "<Contents><Key>%s</Key><LastModified>2026-01-01T00:00:00.000Z"
            "</LastModified><ETag>&quot;%032" PRIx64 "-2&quot;</ETag><Size>%" PRId64
            "</Size><StorageClass>STANDARD</StorageClass></Contents>",
            key, (uint64_t)i, bytes_of(s, i));
    }
    add(c, "<KeyCount>%" PRId64 "</KeyCount><IsTruncated>%s</IsTruncated>", n,
        i < s->count ? "true" : "false");
    if (i < s->count)
        add(c, "<NextContinuationToken>%" PRId64 "</NextContinuationToken>", i);
    add(c, "</ListBucketResult>");
}

static void answer_list(struct conn *c, const struct set *s, const char *query)
{
    // The length stands in front of the text: a field of fixed width is filled in.
    add(c, "HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: ");
    size_t field = c->head_len;
    add(c, "%10d\r\n\r\n", 0);
    size_t body = c->head_len;
    list_page(c, s, query);
    char digits[16];
    snprintf(digits, sizeof digits, "%10zu", c->head_len - body);
    memcpy(c->head + field, digits, 10);
}

static void answer_object(struct conn *c, const struct set *s, struct request *q,
                          int64_t number)
{
    char etag[40];
    int64_t bytes = bytes_of(s, number);
    snprintf(etag, sizeof etag, "\"%032" PRIx64 "-2\"", (uint64_t)number);
    if (q->match && strncmp(q->match, etag, strlen(etag)) != 0) {
        answer_plain(c, 412, "PreconditionFailed", q->head_only);
        return;
    }
    if (!q->ranged) {
        q->first = 0;
        q->last = bytes - 1;
    } else if (q->first >= bytes || q->last < q->first) {
        answer_plain(c, 416, "InvalidRange", q->head_only);
        return;
    }
    if (q->last >= bytes)
        q->last = bytes - 1;
    int64_t n = q->last - q->first + 1;
    add(c, "HTTP/1.1 %s\r\nContent-Length: %" PRId64 "\r\nETag: %s\r\n",
        q->ranged ? "206 Partial Content" : "200 OK", n, etag);
    if (q->ranged)
        add(c, "Content-Range: bytes %" PRId64 "-%" PRId64 "/%" PRId64 "\r\n", q->first,
            q->last, bytes);
    add(c, "Accept-Ranges: bytes\r\nLast-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
           "Content-Type: application/octet-stream\r\nServer: fastd\r\n\r\n");
    c->at = (number * STRIDE + q->first) % BLOCK;
    c->left = q->head_only ? 0 : n;
}

static void answer(struct conn *c, char *text)
{
    struct request q;
    c->head_len = c->head_sent = 0;
    c->left = 0;
    if (!parse(&q, text)) {
        c->last = true;
        answer_plain(c, 405, "MethodNotAllowed", false);
        return;
    }
    c->last = q.close;
    const struct set *s = find_set(q.bucket);
    char *end;
    int64_t number = strtoll(q.key, &end, 10);
    if (!s)
        answer_plain(c, 404, "NoSuchBucket", q.head_only);
    else if (*q.key == '\0' && q.head_only)
        add(c, "HTTP/1.1 200 OK\r\nx-amz-bucket-region: us-east-1\r\n"
               "Content-Length: 0\r\n\r\n");
    else if (*q.key == '\0')
        answer_list(c, s, q.query);
    else if (strcmp(end, ".bin") != 0 || number < 0 || number >= s->count)
        answer_plain(c, 404, "NoSuchKey", q.head_only);
    else
        answer_object(c, s, &q, number);
}

/* ---- connections ---- */

static void drop(struct conn *c)
{
    SSL_free(c->ssl);
    close(c->fd); // leaves the epoll by itself
    mem_free(c->head);
    mem_free(c);
}

/* 1: went on, 0: the socket is not ready, -1: the connection is over. */
static int moved(struct conn *c, ssize_t n)
{
    if (n > 0)
        return 1;
    if (!c->ssl)
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    int why = SSL_get_error(c->ssl, (int)n);
    ERR_clear_error();
    return why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE ? 0 : -1;
}

static int64_t piece(const struct conn *c)
{
    int64_t whole = BLOCK - c->at;
    return c->left < whole ? c->left : whole;
}

static void sent(struct conn *c, ssize_t n)
{
    size_t head = c->head_len - c->head_sent;
    if ((size_t)n < head)
        head = (size_t)n;
    c->head_sent += head;
    c->left -= n - (ssize_t)head;
    c->at = (c->at + n - (ssize_t)head) % BLOCK;
}

static int send_plain(struct conn *c)
{
    size_t head = c->head_len - c->head_sent;
    ssize_t n;
    if (head > 0) {
        int64_t with = piece(c) < TOGETHER ? piece(c) : TOGETHER;
        struct iovec v[2] = {{c->head + c->head_sent, head},
                             {(void *)(uintptr_t)(srv.block + c->at), (size_t)with}};
        n = writev(c->fd, v, 2);
    } else {
        off_t at = c->at;
        n = sendfile(c->fd, srv.block_fd, &at, (size_t)piece(c));
    }
    if (n > 0)
        sent(c, n);
    return moved(c, n);
}

/* A head and the first bytes of its body share a record. */
static int send_tls(struct conn *c)
{
    char record[RECORD];
    size_t head = c->head_len - c->head_sent;
    const char *from = srv.block + c->at;
    int64_t size = piece(c);
    if (head > 0) {
        head = head < RECORD ? head : RECORD;
        size = size < (int64_t)(RECORD - head) ? size : (int64_t)(RECORD - head);
        memcpy(record, c->head + c->head_sent, head);
        memcpy(record + head, from, (size_t)size);
        from = record;
        size += (int64_t)head;
    } else if (size > RECORD) {
        size = RECORD;
    }
    int n = SSL_write(c->ssl, from, (int)size);
    if (n > 0)
        sent(c, n);
    return moved(c, n);
}

static int send_some(struct conn *c)
{
    return c->ssl ? send_tls(c) : send_plain(c);
}

static int receive(struct conn *c)
{
    if (c->got == REQUEST)
        return -1; // a request of over 16 KiB
    size_t room = REQUEST - c->got;
    ssize_t n = c->ssl ? SSL_read(c->ssl, c->in + c->got, (int)room)
                       : recv(c->fd, c->in + c->got, room, 0);
    if (n > 0)
        c->got += (size_t)n;
    c->in[c->got] = '\0';
    return moved(c, n);
}

/* The next whole request of the buffer is answered; what lies behind it stays. */
static bool take_request(struct conn *c)
{
    char *end = strstr(c->in, "\r\n\r\n");
    if (!end)
        return false;
    end[2] = '\0';
    answer(c, c->in);
    size_t used = (size_t)(end + 4 - c->in);
    c->got -= used;
    memmove(c->in, c->in + used, c->got + 1);
    return true;
}

static bool sending(const struct conn *c)
{
    return c->head_sent < c->head_len || c->left > 0;
}

static void watch(struct conn *c, bool write)
{
    struct epoll_event e = {.events = write ? EPOLLOUT : EPOLLIN, .data.ptr = c};
    if (write != c->want_write)
        epoll_ctl(srv.epoll, EPOLL_CTL_MOD, c->fd, &e);
    c->want_write = write;
}

static void serve(struct conn *c)
{
    int rc = 1;
    while (rc > 0) {
        if (sending(c))
            rc = send_some(c);
        else if (c->last)
            rc = -1;
        else if (!take_request(c))
            rc = receive(c);
    }
    if (rc < 0)
        drop(c);
    else
        watch(c, sending(c));
}

/* ---- the process ---- */

static void accept_all(int listener)
{
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        struct conn *c = mem_zero(1, sizeof *c);
        if (!c)
            bug("%s", err_text());
        c->fd = fd;
        c->head_cap = (size_t)PAGE * ROW;
        c->head = mem_alloc(c->head_cap);
        c->ssl = srv.tls ? SSL_new(srv.tls) : NULL;
        if (!c->head || (srv.tls && !c->ssl))
            bug("no memory for a connection");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
        if (c->ssl) {
            SSL_set_fd(c->ssl, fd);
            SSL_set_accept_state(c->ssl);
        }
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(srv.epoll, EPOLL_CTL_ADD, fd, &e);
    }
}

static int listen_here(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, n) != 0 || listen(fd, 1024) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &n) != 0)
        return err_set(E_IO, "cannot listen: %s", strerror(errno));
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    return fd;
}

static int make_block(void)
{
    struct rng r = rng_new(1);
    srv.block_fd = memfd_create("fastd", 0);
    if (srv.block_fd < 0 || ftruncate(srv.block_fd, BLOCK) != 0)
        return err_set(E_MEMORY, "cannot make the block of bytes");
    uint32_t *p =
        mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_SHARED, srv.block_fd, 0);
    if (p == MAP_FAILED)
        return err_set(E_MEMORY, "cannot map the block of bytes");
    for (size_t i = 0; i < BLOCK / sizeof *p; i++)
        p[i] = rng_u32(&r);
    srv.block = (const char *)p;
    return 0;
}

static int make_tls(const char *cert, const char *key)
{
    srv.tls = SSL_CTX_new(TLS_server_method());
    if (!srv.tls || SSL_CTX_use_certificate_chain_file(srv.tls, cert) != 1 ||
        SSL_CTX_use_PrivateKey_file(srv.tls, key, SSL_FILETYPE_PEM) != 1)
        return err_set(E_CONFIG, "cannot use %s with %s", cert, key);
    SSL_CTX_set_mode(srv.tls, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    return 0;
}

static int parse_set(const char *text)
{
    struct set *s = &srv.set[srv.sets];
    const char *at = strchr(text, '=');
    bool fine = srv.sets < SETS && at && at - text < (int)sizeof s->name;
    for (; fine && at; at = strchr(at + 1, ',')) {
        int64_t count = 0;
        fine = s->sizes < SIZES && sscanf(at + 1, "%" SCNd64 "x%" SCNd64, &count,
                                          &s->size[s->sizes].bytes) == 2;
        s->count += count;
        if (fine)
            s->size[s->sizes++].end = s->count;
    }
    if (!fine)
        return err_set(E_USAGE, "\"%s\" is not NAME=COUNTxBYTES[,...]", text);
    memcpy(s->name, text, (size_t)(strchr(text, '=') - text));
    srv.sets++;
    return 0;
}

static int run(int argc, char **argv)
{
    int first = 1;
    if (argc > 3 && strcmp(argv[1], "--tls") == 0) {
        TRY(make_tls(argv[2], argv[3]));
        first = 4;
    }
    for (int i = first; i < argc; i++)
        TRY(parse_set(argv[i]));
    if (srv.sets == 0)
        return err_set(E_USAGE, "fastd [--tls CERT KEY] NAME=COUNTxBYTES[,...]...");
    TRY(make_block());
    srv.epoll = epoll_create1(0);
    int listener = listen_here();
    TRY(listener);
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL}, ready[256];
    epoll_ctl(srv.epoll, EPOLL_CTL_ADD, listener, &e);
    for (;;) {
        int n = epoll_wait(srv.epoll, ready, 256, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.ptr)
                serve(ready[i].data.ptr);
            else
                accept_all(listener);
        }
    }
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN);
    int rc = run(argc, argv);
    fprintf(stderr, "fastd: %s\n", err_text());
    return -rc;
}
