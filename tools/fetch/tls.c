/* SPDX-License-Identifier: MIT */
/* tls.c - three records are read at once: more would make glibc tidy its heap each time
 * that OpenSSL lets go of the buffer.  Each SSL counts the records that were taken from
 * it, and keeps the count of the last try. */
#include "tls.h"

#include <openssl/ssl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "err.h"

enum { RECORD = SSL3_RT_HEADER_LENGTH + SSL3_RT_MAX_ENCRYPTED_LENGTH, AHEAD = 3 };

static int taken = -1, tried = -1; // numbers of SSL's extra data

static void number_once(void)
{
    taken = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    tried = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
}

static void on_message(int sent, int version, int type, const void *bytes, size_t n,
                       SSL *ssl, void *user)
{
    (void)version;
    (void)bytes;
    (void)n;
    (void)user;
    if (!sent && type == SSL3_RT_HEADER)
        SSL_set_ex_data(ssl, taken,
                        (void *)((uintptr_t)SSL_get_ex_data(ssl, taken) + 1));
}

int tls_read_ahead(void *ssl_ctx)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    SSL_CTX *ctx = ssl_ctx;
    pthread_once(&once, number_once);
    if (taken < 0 || tried < 0)
        return err_set(E_MEMORY, "out of memory in OpenSSL");
    SSL_CTX_set_read_ahead(ctx, 1);
    SSL_CTX_set_default_read_buffer_len(ctx, (size_t)AHEAD * RECORD);
    SSL_CTX_set_msg_callback(ctx, on_message);
    return 0;
}

bool tls_holds(void *ssl)
{
    return SSL_has_pending(ssl) &&
           SSL_get_ex_data(ssl, taken) != SSL_get_ex_data(ssl, tried);
}

void tls_tried(void *ssl)
{
    SSL_set_ex_data(ssl, tried, SSL_get_ex_data(ssl, taken));
}

bool tls_mistaken(const char *why)
{
    static const char *const reasons[] = {
        "wrong version number",   "http request",           "packet length too long",
        "unsupported protocol",   "alert protocol version", "alert handshake failure",
        "no protocols available", "no shared cipher"};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (strstr(why, reasons[i]))
            return true;
    return false;
}
