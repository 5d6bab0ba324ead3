/* SPDX-License-Identifier: MIT */
/* http.h - requests over HTTP/1.1 and TLS; the only file that knows libcurl.
 *
 * A `struct http` is one event loop with its connections: it belongs to one thread, and
 * many calls are in flight in it at once.  A call is a struct of its user that says
 * what is asked and receives what is answered.  Redirects are not followed, because
 * they must be signed anew, and bodies arrive as they are stored (no content decoding).
 */
#ifndef HTTP_H
#define HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "head.h"

struct http;

struct http_rules {
    int connections;       /* kept open at most */
    double connect, stall; /* seconds until a connection must stand; of silence */
    const char *ca;        /* a file of certificates, NULL: the system's */
    double send_rate;      /* bytes a second of one body that is sent, 0: any */
    bool direct;           /* never through a proxy */
};

/* How a call ended, the reply's status aside. */
enum http_end {
    HTTP_WHOLE,     /* a whole reply, of whatever status */
    HTTP_UNREACHED, /* no connection: address, port, proxy */
    HTTP_UNTRUSTED, /* the other side's certificate is not accepted */
    HTTP_NO_URL,    /* what was to be asked for is no URL */
    HTTP_NO_TLS,    /* the other side speaks no TLS, or none of ours */
    HTTP_BROKEN,    /* reset, cut short, not HTTP */
    HTTP_STALLED,   /* nothing came for too long */
    HTTP_REFUSED,   /* by the user's body function, or beyond `limit` */
};

/* "Name: value" lines, each ended by a NUL. */
struct http_lines {
    struct buf text;
    int n;
};
void http_add(struct http_lines *to, const char *name, const char *value);
void http_forget(struct http_lines *from, const char *name); /* all of that name */

enum { HTTP_LINES = 30, HTTP_ERROR_TEXT = 64 << 10 };

struct http_call {
    /* What is asked. */
    const char *method; /* GET, HEAD, PUT, POST, DELETE */
    struct buf url;
    struct http_lines lines; /* the headers, up to HTTP_LINES */
    const void *send;        /* the body of a PUT or POST; borrowed until the end */
    size_t send_size;

    /* body takes a piece of a 2xx reply's body, after the head; negative: the call ends
     * (HTTP_REFUSED).  NULL: the body goes to `text`, `limit` bytes at most.  Bodies of
     * other replies always go to `text`, cut at HTTP_ERROR_TEXT. */
    int (*body)(struct http_call *c, const void *bytes, size_t n);
    size_t limit;
    double patience; /* seconds of silence to bear, if more than the rules' stall */

    /* done is called when the call has ended; it may start others.  NULL: nobody is
     * told (http_run). */
    void (*done)(struct http_call *c);
    void *user;
    int known; /* the scheme's: how much it knew when it made the call */

    /* What is answered. */
    enum http_end end;
    struct head head;
    struct buf text;
    char why[256];    /* what libcurl says about an end that is not whole */
    int64_t received; /* bytes of the body */
    bool reused;      /* over a connection that had been used before */
    void *slot;       /* of http.c while in flight */
};

/* http_call_move sends a call that is ready to another URL; what is secret goes only to
 * the host that it was meant for (the lines Authorization, Cookie and
 * X-Amz-Security-Token are taken out for any other). */
void http_call_move(struct http_call *c, const char *url);

/* http_call_clear empties a call to ask for something else, http_call_drop frees what
 * it owns: url, lines, text. */
void http_call_clear(struct http_call *c);
void http_call_drop(struct http_call *c);

/* http_open makes a loop; E_MEMORY, E_IO. */
int http_open(struct http **out, const struct http_rules *rules);
void http_close(
    struct http *h); /* ends calls in flight without telling; NULL is fine */

/* http_start begins a call; E_MEMORY.  http_turn waits up to `seconds` for events and
 * handles them; a signal ends the wait.  http_drop ends a call without telling. */
int http_start(struct http *h, struct http_call *c);
int http_turn(struct http *h, double seconds);
void http_drop(struct http *h, struct http_call *c);
int http_flying(const struct http *h); /* calls in flight */

/* http_wake ends the wait of http_turn, from any thread. */
void http_wake(struct http *h);

/* http_run makes one call and waits for its end; E_AGAIN when a signal stopped it. */
int http_run(struct http *h, struct http_call *c);

#endif
