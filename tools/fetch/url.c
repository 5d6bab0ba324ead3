/* SPDX-License-Identifier: MIT */
/* url.c - no normalising anywhere: a key with "/../" is a key, not a path. */
#include "url.h"

#include <string.h>
#include <strings.h>

#include "err.h"

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '-' || c == '.' || c == '_' || c == '~';
}

void url_escape(struct buf *out, const char *text, const char *keep)
{
    static const char digit[] = "0123456789ABCDEF";
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (is_plain((char)*c) || strchr(keep, *c)) {
            buf_addc(out, (char)*c);
        } else {
            char escape[] = {'%', digit[*c >> 4], digit[*c & 15]};
            buf_add(out, escape, sizeof escape);
        }
    }
}

static int hex(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int url_unescape(struct buf *out, const char *text, bool plus)
{
    for (const char *c = text; *c; c++) {
        if (*c == '+' && plus) {
            buf_addc(out, ' ');
        } else if (*c != '%') {
            buf_addc(out, *c);
        } else {
            int value = hex(c[1]) < 0 || hex(c[2]) < 0 ? 0 : hex(c[1]) << 4 | hex(c[2]);
            if (value == 0)
                return err_set(E_FORMAT, "%s: a broken percent escape", text);
            buf_addc(out, (char)value);
            c += 2;
        }
    }
    return 0;
}

/* Of "host", "host:1" and "[::1]:1"; none is fine. */
static bool is_port(const char *host, size_t n)
{
    const char *name = memchr(host, ']', n);
    size_t before = name ? (size_t)(name - host) : 0;
    const char *colon = memchr(host + before, ':', n - before);
    int port = 0;
    if (!colon)
        return true;
    for (const char *c = colon + 1; c < host + n; c++) {
        if (*c < '0' || *c > '9' || port > 65535)
            return false;
        port = 10 * port + (*c - '0');
    }
    return port > 0 && port <= 65535;
}

int url_split(struct url *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c <= ' ' || *c == 0x7f)
            return err_set(E_USAGE, "%s: a space or control character in a URL", text);
    const char *host = strstr(text, "://");
    if (!host || host == text)
        return err_set(E_USAGE, "%s: not a URL", text);
    host += 3;
    *out = (struct url){.scheme = text, .host = host};
    out->scheme_n = (size_t)(host - 3 - text);
    out->host_n = strcspn(host, "/?#");
    if (memchr(host, '@', out->host_n))
        return err_set(E_USAGE, "a URL with a user name or password is refused");
    if (out->host_n == 0)
        return err_set(E_USAGE, "%s: a URL without a host", text);
    if (!is_port(host, out->host_n))
        return err_set(E_USAGE, "%s: a port is a number from 1 to 65535", text);
    out->path = host + out->host_n;
    out->path_n = strcspn(out->path, "?#");
    out->query = out->path + out->path_n;
    if (*out->query == '?')
        out->query_n = strcspn(++out->query, "#");
    return 0;
}

static bool is_scheme(const struct url *u, const char *name)
{
    return u->scheme_n == strlen(name) &&
           strncasecmp(u->scheme, name, u->scheme_n) == 0;
}

bool url_is_web(const struct url *u)
{
    return is_scheme(u, "http") || is_scheme(u, "https");
}

int url_shown(const char *text)
{
    return (int)strcspn(text, "?#");
}

int url_join(struct buf *out, const char *base, const char *location)
{
    struct url from, to;
    TRY(url_split(&from, base));
    bool local = location[0] == '/' && location[1] != '/';
    if (local) {
        buf_add(out, base, (size_t)(from.host + from.host_n - base));
        buf_adds(out, location);
        TRY(buf_check(out));
        location = buf_text(out);
    }
    if (url_split(&to, location) < 0)
        return err_set(E_FORMAT, "redirected to %s, which is not a URL", location);
    bool secure = is_scheme(&to, "https");
    if (!url_is_web(&to))
        return err_set(E_FORMAT, "redirected to %s: neither http nor https", location);
    if (!secure && is_scheme(&from, "https"))
        return err_set(E_FORMAT, "redirected from https to http (%s)", location);
    if (!local)
        buf_adds(out, location);
    return buf_check(out);
}

bool url_same_host(const char *a, const char *b)
{
    struct url x, y;
    return url_split(&x, a) == 0 && url_split(&y, b) == 0 && x.scheme_n == y.scheme_n &&
           x.host_n == y.host_n && strncasecmp(x.scheme, y.scheme, x.scheme_n) == 0 &&
           strncasecmp(x.host, y.host, x.host_n) == 0;
}
