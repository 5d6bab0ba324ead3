/* SPDX-License-Identifier: MIT */
/* tls.h - what libcurl leaves out of OpenSSL: records read ahead of their use.
 *
 * OpenSSL reads each record with two system calls, one of them for its five bytes of
 * header; in read-ahead mode it takes what the socket has, a few records at once.
 * libcurl may then wait for a socket whose bytes have been read already, so whoever
 * drives it looks for an SSL that holds some, and lets libcurl read once more. */
#ifndef TLS_H
#define TLS_H

#include <stdbool.h>

/* tls_read_ahead sets up a new SSL_CTX; E_MEMORY. */
int tls_read_ahead(void *ssl_ctx);

/* tls_holds: are there bytes in an SSL that may be worth another read?  Not when
 * nothing has come of the one that tls_tried announced: then it is half a record. */
bool tls_holds(void *ssl);
void tls_tried(void *ssl);

/* tls_mistaken: does OpenSSL's reason for a handshake that failed say that the other
 * side speaks no TLS, or none that we do?  Else the line may have broken. */
bool tls_mistaken(const char *why);

#endif
