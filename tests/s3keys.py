#!/usr/bin/env python3
"""s3keys.py - keys that are hard to bring home, and what must become of each.

    s3keys.py objects FILE                   JSON lines for faultd.py --objects
    s3keys.py put ENDPOINT ID:SECRET FILE    stores them in bucket "keys" of a real server;
                                             what it refuses is printed, the rest named
                                             in FILE
    s3keys.py look ENDPOINT ID:SECRET FILE   and leaves those that it lists
    s3keys.py check FILE DEST PREFIX LOG TABLE SERVER
                                             holds a folder and draft-fetch's messages
                                             against the keys that are stored, and adds
                                             what it found to a file
    s3keys.py table TABLE                    shows what was found at all servers

Requests are signed here (SigV4 by hand), so that a key reaches a server byte for byte.
A key must arrive whole under its name, or be named in a message; a folder marker is
passed over.  Anything else in DEST, or beside it, is an error.
"""
import datetime
import hashlib
import http.client
import json
import os
import re
import sys
from html import unescape
from urllib.parse import quote, unquote_plus, urlsplit

import faultd_s3 as s3

KINDS = {
    "plain": ["plain.txt", "-dash", "dot.", "UPPER", "upper", "deep/" * 30 + "leaf", "c" * 255],
    "spaces": ["with space", " leading space", "trailing space "],
    "`+`": ["a+b", "a%2Bb"],
    "`#`": ["a#b"],
    "`%`": ["100%", "%41", "%2e%2e/x"],
    "`=`": ["k=v/x=y.bin"],
    "`:`": ["c:d"],
    "other marks": [
        "q?x=1&y", "semi;colon", "comma,comma", "star*", "[br]", "{br}", "~tilde", "$(dollar)",
        "@at", "^hat", "pipe|", "`tick`", "quote\"'", "back\\slash", "amp&amp;", "<tag>"],
    "not ASCII": ["é/ü.txt", "e\u0301", "日本語", "emoji😀", "\u202eright", "\ufeffmark"],
    "control characters": ["tab\there", "new\nline", "ctl\x01", "del\x7f"],
    "`..` inside": ["...", "..a", "a.."],
    "`..` or `.` as a component": ["..", "../up", "x/../y", "x/..", ".", "./b", "m/./n"],
    "leading slash": ["/lead", "//lead"],
    "double slash": ["dbl//slash"],
    "trailing slash": ["trail/"],
    "no bytes": ["zero"],
    "folder marker": ["marker/"],
    "equal to the prefix": [""],
    "`a` beside `a/b`": ["both", "both/child"],
    "1,024 bytes": [],  # long_key
    "a component of over 255 bytes": ["d" * 256],
    "our own folder": [".draft-fetch/manifest.json"],
}
NAMES = [name for names in KINDS.values() for name in names if name]
EMPTY = ("zero", "marker/")


def long_key(prefix, step):
    """A key of 1,024 bytes in parts of `step`."""
    text = prefix
    while len(text) + step + 1 < 1024:
        text += "l" * step + "/"
    return text + "l" * (1024 - len(text))


def all_keys():
    """Every name at the top, below a prefix, and the prefix itself."""
    keys = {"pre/": ""}  # first, as it is how some servers make folders
    for prefix in "", "pre/":
        for name in NAMES + [long_key(prefix, 200)[len(prefix):]]:
            keys[prefix + name] = "" if name in EMPTY else f"bytes of {prefix + name!r}"
    keys["pre2"] = "a key that begins like the prefix"
    return keys


def kind_of(name):
    return next((k for k, names in KINDS.items() if name in names), "1,024 bytes")


def outcome(name, names):
    """arrives, refused, passed over; either of the first two, where names collide."""
    parts = name.split("/")
    if name == "" or name == "marker/" or name == "pre/" or name == "pre/marker/":
        return "passed over"
    if any(p in ("", ".", "..", ".draft-fetch") or len(p.encode()) > 255 for p in parts):
        return "refused"
    if any(ord(c) < 32 or ord(c) == 127 for c in name):
        return "refused"
    clash = any(n.startswith(name + "/") or name.startswith(n + "/") for n in names)
    return "either" if clash else "arrives"


# ---- a client ----

def request(endpoint, auth, method, path, body=b"", query=""):
    host, now = urlsplit(endpoint).netloc, datetime.datetime.now(datetime.timezone.utc)
    stamp, who, secret = now.strftime("%Y%m%dT%H%M%SZ"), *auth.split(":")
    digest = hashlib.sha256(body).hexdigest()
    scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
    signed = "host;x-amz-content-sha256;x-amz-date"
    canonical = "\n".join([method, path, query, f"host:{host}", f"x-amz-content-sha256:{digest}",
                           f"x-amz-date:{stamp}", "", signed, digest])
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope,
                      hashlib.sha256(canonical.encode()).hexdigest()])
    c = http.client.HTTPConnection(host, timeout=20)
    c.request(method, path + ("?" + query if query else ""), body, {
        "Host": host, "x-amz-date": stamp, "x-amz-content-sha256": digest,
        "Content-Length": str(len(body)),
        "Authorization": f"AWS4-HMAC-SHA256 Credential={who}/{scope}, SignedHeaders="
        f"{signed}, Signature={s3.signature(secret, scope, text)}"})
    answer = c.getresponse()
    text = answer.read()
    c.close()
    return answer.status, text


def listed(endpoint, auth):
    """The keys that a server says it has."""
    keys, token = set(), ""
    while token is not None:
        query = f"encoding-type=url&list-type=2&max-keys=500{token}"
        if token:  # in the order that is signed
            query = f"{token[1:]}&encoding-type=url&list-type=2&max-keys=500"
        status, text = request(endpoint, auth, "GET", "/keys", query=query)
        if status != 200:
            sys.exit(f"s3keys: cannot list: {status} {text[:300]}")
        text = text.decode()
        keys.update(unquote_plus(unescape(k)) for k in re.findall("<Key>([^<]*)</Key>", text))
        more = re.search("<NextContinuationToken>([^<]*)<", text)
        token = "&continuation-token=" + quote(unescape(more[1]), safe="") if more else None
    return keys


def put(endpoint, auth, path):
    status, text = request(endpoint, auth, "PUT", "/keys")
    if status != 200:
        sys.exit(f"s3keys: cannot make a bucket: {status} {text[:300]}")
    stored = {}
    for key, text in all_keys().items():
        target = "/keys/" + quote(key, safe="/-._~")
        try:
            status, reply = request(endpoint, auth, "PUT", target, text.encode())
        except (OSError, http.client.HTTPException) as e:
            status, reply = 0, str(e).encode()
        if status == 200 and text:  # what it says it has, it must give back
            status, reply = request(endpoint, auth, "GET", target)
            status = 200 if status == 200 and reply == text.encode() else -1
        if status == 200:
            stored[key] = text
        else:
            print(f"# not stored ({status or 'broken off'}): {key!r:.60}")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(stored, f)


def look(endpoint, auth, path):
    with open(path, encoding="utf-8") as f:
        stored = json.load(f)
    have = listed(endpoint, auth)
    for key in [k for k in stored if k not in have]:
        print(f"# not stored (kept under another name): {key!r:.60}")
        request(endpoint, auth, "DELETE", "/keys/" + quote(key, safe="/-._~"))
        del stored[key]
    # What it lists beside them is its own matter: it may come, but it need not.
    stored.update({key: None for key in listed(endpoint, auth) if key not in stored})
    with open(path, "w", encoding="utf-8") as f:
        json.dump(stored, f)


# ---- what came ----

def shown(name):
    """A name as messages show it."""
    return "".join("?" if ord(c) < 32 or ord(c) == 127 else c for c in name)


def note(table, server, prefix, got):
    """Adds what became of the keys of one kind: of all in the bucket, and of the prefix."""
    found = {}
    for key in all_keys():
        name = key[len(prefix):]
        if key.startswith(prefix) and (name == "") == (prefix != "") and \
                (prefix or not key.startswith("pre")):
            count = found.setdefault(kind_of(name), {})
            what = got.get(name, "not stored")
            count[what] = count.get(what, 0) + 1
    with open(table, "a", encoding="ascii") as f:
        print(json.dumps([server, found]), file=f)


def show(path):
    servers = {}
    with open(path, encoding="ascii") as f:
        for line in f:
            server, found = json.loads(line)
            servers.setdefault(server, {}).update(found)
    print("| key | " + " | ".join(servers) + " |")
    print("| --- " * (len(servers) + 1) + "|")
    for kind in KINDS:
        cells = (", ".join(f"{n} {what}" for what, n in sorted(found.get(kind, {}).items()))
                 for found in servers.values())
        print(f"| {kind} | " + " | ".join(c or "not tried" for c in cells) + " |")


def check(path, dest, prefix, log, table, server):
    with open(path, encoding="utf-8") as f:
        stored = json.load(f)
    with open(log, encoding="utf-8") as f:
        said = f.read()
    keys = {k[len(prefix):]: v for k, v in stored.items() if k.startswith(prefix)}
    bad, count, found = [], {}, {}
    for name, text in keys.items():
        if text is None:
            continue
        file = os.path.join(dest, name)
        want = outcome(name, keys)
        safe = want in ("arrives", "either")
        there = safe and os.path.isfile(file)
        if there:
            with open(file, encoding="utf-8") as f:
                if f.read() != text:
                    bad.append(f"{name!r:.80} has other bytes")
        named = name != "" and shown(name) in said
        if want == "passed over" and not os.path.isfile(file):
            got = want  # its name may be a part of others'
        else:
            got = "arrives" if there else "refused" if named else "passed over"
        if got != want and not (want == "either" and got != "passed over"):
            bad.append(f"{name!r:.80}: {got}, not {want}")
        count[got] = count.get(got, 0) + 1
        found[name] = got
    for at, folders, names in os.walk(dest):
        if at == dest:
            folders.remove(".draft-fetch")
        for n in names:
            if os.path.relpath(os.path.join(at, n), dest) not in keys:
                bad.append(f"{os.path.join(at, n)!r:.80} came from nowhere")
    note(table, server, prefix, found)
    print(", ".join(f"{n} {what}" for what, n in sorted(count.items())))
    sys.exit("\n".join(bad) if bad else 0)


def main():
    what, *rest = sys.argv[1:]
    if what == "objects":
        with open(rest[0], "w", encoding="utf-8") as f:
            json.dump(all_keys(), f)
        with open(rest[0] + ".objects", "w", encoding="utf-8") as f:
            f.writelines(json.dumps({"key": k, "text": v}) + "\n"
                         for k, v in all_keys().items())
    else:
        {"put": put, "look": look, "check": check, "table": show}[what](*rest)


if __name__ == "__main__":
    main()
