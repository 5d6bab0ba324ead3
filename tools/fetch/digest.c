/* SPDX-License-Identifier: MIT */
/* digest.c - a thin front of EVP. */
#include "digest.h"

#include <openssl/evp.h>
#include <string.h>

#include "err.h"
#include "mem.h"

struct digest {
    EVP_MD_CTX *ctx;
};

static const EVP_MD *md_of(enum digest_kind kind)
{
    return kind == DIGEST_MD5    ? EVP_md5()
           : kind == DIGEST_SHA1 ? EVP_sha1()
                                 : EVP_sha256();
}

size_t digest_size(enum digest_kind kind)
{
    return (size_t)EVP_MD_get_size(md_of(kind));
}

struct digest *digest_open(enum digest_kind kind)
{
    struct digest *d = mem_zero(1, sizeof *d);
    const EVP_MD *md = md_of(kind);
    if (!d)
        return NULL;
    d->ctx = EVP_MD_CTX_new();
    if (d->ctx && EVP_DigestInit_ex(d->ctx, md, NULL) == 1)
        return d;
    EVP_MD_CTX_free(d->ctx);
    mem_free(d);
    err_set(E_MEMORY, "OpenSSL has no memory, or no %s", EVP_MD_get0_name(md));
    return NULL;
}

void digest_add(struct digest *d, const void *p, size_t n)
{
    if (n > 0)
        EVP_DigestUpdate(d->ctx, p, n);
}

void digest_take(struct digest *d, uint8_t out[DIGEST_MAX])
{
    const EVP_MD *md = EVP_MD_CTX_get0_md(d->ctx);
    EVP_DigestFinal_ex(d->ctx, out, NULL);
    EVP_DigestInit_ex(d->ctx, md, NULL);
}

void digest_drop(struct digest *d)
{
    if (!d)
        return;
    EVP_MD_CTX_free(d->ctx);
    mem_free(d);
}

void digest_to_hex(char *out, const uint8_t *bytes, size_t n)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *out++ = digit[bytes[i] >> 4];
        *out++ = digit[bytes[i] & 15];
    }
    *out = 0;
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

bool digest_from_hex(uint8_t *out, size_t n, const char *text)
{
    if (strlen(text) != 2 * n)
        return false;
    for (size_t i = 0; i < n; i++) {
        int high = hex(text[2 * i]), low = hex(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int sixbits(char c)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789+/";
    const char *at = c ? strchr(digit, c) : NULL;
    return at ? (int)(at - digit) : -1;
}

bool digest_from_base64(uint8_t *out, size_t n, const char *text)
{
    size_t digits = (8 * n + 5) / 6, size = (n + 2) / 3 * 4;
    unsigned bits = 0;
    int held = 0;
    if (strlen(text) != size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int value = sixbits(text[i]);
        if (i >= digits ? text[i] != '=' : value < 0)
            return false;
        if (i >= digits)
            continue;
        bits = bits << 6 | (unsigned)value;
        if ((held += 6) >= 8) {
            held -= 8;
            *out++ = (uint8_t)(bits >> held);
            bits &= (1u << held) - 1;
        }
    }
    return bits == 0; // the bits that fill up the last digit
}
