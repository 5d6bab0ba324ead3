/* SPDX-License-Identifier: MIT */
/* sha256.c - pieces arrive in any order, and this sum wants them in one: so the file is
 * read again, from the page cache, when it is whole. */
#include "sha256.h"

#include <openssl/evp.h>
#include <string.h>

#include "err.h"
#include "file.h"
#include "mem.h"

enum { BUFFER = 1 << 20, DIGEST = 32 };

static int add_file(EVP_MD_CTX *sum, int fd, int64_t size, const char *name)
{
    char *buffer = mem_alloc(BUFFER);
    int rc = buffer ? 0 : E_MEMORY;
    for (int64_t at = 0; rc == 0 && at < size; at += BUFFER) {
        size_t n = size - at < BUFFER ? (size_t)(size - at) : BUFFER;
        rc = file_pread(fd, buffer, n, at, name);
        if (rc == 0 && !EVP_DigestUpdate(sum, buffer, n))
            bug("SHA-256 failed");
    }
    mem_free(buffer);
    return rc;
}

int sha256_check(int fd, int64_t size, const char *want, const char *name)
{
    unsigned char digest[DIGEST];
    char got[2 * DIGEST + 1] = "";
    if (!want)
        return 0;
    EVP_MD_CTX *sum = EVP_MD_CTX_new();
    if (!sum || !EVP_DigestInit_ex(sum, EVP_sha256(), NULL)) {
        EVP_MD_CTX_free(sum);
        return err_set(E_MEMORY, "out of memory for a SHA-256");
    }
    int rc = add_file(sum, fd, size, name);
    if (rc == 0 && !EVP_DigestFinal_ex(sum, digest, NULL))
        bug("SHA-256 failed");
    EVP_MD_CTX_free(sum);
    TRY(rc);
    static const char digit[] = "0123456789abcdef";
    for (int i = 0; i < DIGEST; i++) {
        got[2 * i] = digit[digest[i] >> 4];
        got[2 * i + 1] = digit[digest[i] & 15];
    }
    if (strcmp(got, want) != 0)
        return err_set(E_FORMAT, "%s: its SHA-256 is %s, but should be %s", name, got,
                       want);
    return 0;
}
