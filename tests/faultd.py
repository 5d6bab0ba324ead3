#!/usr/bin/env python3
"""faultd.py - an S3 server on loopback that fails on command, to test draft-fetch.

    faultd.py --ready FILE [--bucket NAME=FOLDER] [--objects NAME=FILE] [--fault SPEC]...

FILE receives the port once the server listens.  --bucket serves what lies in a folder
when the server starts; --objects reads JSON lines, {"key": K} with "text", "file" or
"size" and "seed" (random bytes), "part_size" (a multipart object) and "mtime".  Without
faults the server is a good one: lists with pages (--page) and encoding, ranges,
conditions, checksums (--checksum), uploads, signatures (--auth ID:SECRET[:TOKEN]).  At
NAME.s3.localhost it serves bucket NAME.
--log FILE gets one JSON object a request.

A fault is "KIND key=value...".  Which requests it hits: op= (a comma list of get, head,
list, put, create, part, parts, complete, abort, delete; default get), match= (a glob over the
key), query= (a part of it), skip= (so many are left alone first), times= (default 1; all).  The kinds and their
own values stand beside the functions below.  --chaos RATE --seed N hits that share of
requests with faults that a client must survive.  PUT /-/faults replaces the list (one
SPEC a line), PUT /-/chaos the rate, GET /-/log returns the log, PUT /-/clock sets the
clock's offset.
"""
import argparse
import fnmatch
import gzip
import json
import os
import random
import socket
import socketserver
import ssl
import struct
import sys
import threading
import time
from urllib.parse import unquote

import faultd_s3 as s3


class Request:
    def __init__(self, method, target, headers, body):
        self.method, self.headers, self.body = method, headers, body
        self.path, _, self.query_raw = target.partition("?")
        self.query = s3.parse_query(self.query_raw)
        self.host = headers.get("host", "")
        virtual, dot, _ = self.host.partition(".s3.localhost:")
        path = f"/{virtual}{self.path}" if dot else self.path
        self.bucket, _, key = path[1:].partition("/")
        self.bucket = unquote(self.bucket)
        self.key = unquote(key, errors="surrogateescape")
        self.op = self._op()

    def _op(self):
        if self.bucket == "-":
            return "control"
        if not self.key:
            return {"GET": "list", "HEAD": "headbucket"}.get(self.method, "bucket")
        if "uploadId" in self.query:
            return {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(
                self.method, "parts")
        if self.method == "POST":
            return "create"
        return self.method.lower()


class Response:
    """What will be sent, and how badly."""

    def __init__(self, status, body=b"", headers=None):
        self.status, self.body = status, body
        self.headers = {"Server": "faultd", "x-amz-request-id": "FAULTD",
                        **(headers or {})}
        self.length = len(body)  # Content-Length; None: not sent
        self.before = b""        # raw bytes in front of the status line
        self.wait = 0            # seconds before anything is sent
        self.slow_headers = 0    # seconds between bytes of the head
        self.drip = None         # (bytes, seconds): so many, then a pause
        self.cut = None          # (bytes of the body, "close" | "reset" | seconds)
        self.chunked = False
        self.close = False


def error(status, code, message="", headers=None, **more):
    return Response(status, s3.error_xml(code, message or code, **more),
                    {"Content-Type": "application/xml", **(headers or {})})


# ---- faults: change(server, request, response, values) ----
# Each gets the good response and spoils it, or returns another one.

def stall(sv, rq, rs, v):
    """at=BYTES secs=60: silence in the middle of the body"""
    rs.cut = (int(v.get("at", rs.length // 2)), float(v.get("secs", 60)))


def truncate(sv, rq, rs, v):
    """at=BYTES: the connection is closed in the middle of the body"""
    rs.cut = (int(v.get("at", rs.length // 2)), "close")


def reset(sv, rq, rs, v):
    """at=BYTES: the connection is reset there"""
    rs.cut = (int(v.get("at", rs.length // 2)), "reset")


def refuse(sv, rq, rs, v):
    """the connection is closed instead of an answer"""
    rs.cut = (-1, v.get("how", "close"))


def wait(sv, rq, rs, v):
    """secs=1: before the answer"""
    rs.wait = float(v.get("secs", 1))


def hold(sv, rq, rs, v):
    """until=GLOB secs=20: the answer comes when an upload of such a key has begun, or an error"""
    end = time.time() + float(v.get("secs", 20))
    while not any(fnmatch.fnmatchcase(key, v["until"]) for key in list(sv.store.begun)):
        if time.time() > end:
            return error(403, "AccessDenied", "nothing of the kind has begun")
        time.sleep(0.05)
    return rs


def norange(sv, rq, rs, v):
    """Range is ignored: 200 and the whole object"""
    o = sv.store.buckets[rq.bucket].get(rq.key)
    if not o or rs.status != 206:
        return rs
    out = Response(200, o.data, rs.headers)
    out.headers.pop("Content-Range", None)
    return out


def wrongrange(sv, rq, rs, v):
    """by=1 total=0: Content-Range says something else than the body is"""
    text = rs.headers.get("Content-Range")
    if text:
        span, _, total = text.removeprefix("bytes ").partition("/")
        a, b = (int(x) + int(v.get("by", 1)) for x in span.split("-"))
        total = int(total) + int(v.get("total", 0))
        rs.headers["Content-Range"] = f"bytes {a}-{b}/{total}"


def norangeheader(sv, rq, rs, v):
    """206 without Content-Range"""
    rs.headers.pop("Content-Range", None)


def shortrange(sv, rq, rs, v):
    """by=1: less than was asked for, and the header says so"""
    text = rs.headers.get("Content-Range")
    by = int(v.get("by", 1))
    if text and len(rs.body) > by:
        span, _, total = text.removeprefix("bytes ").partition("/")
        a, b = (int(x) for x in span.split("-"))
        rs.headers["Content-Range"] = f"bytes {a}-{b - by}/{total}"
        rs.body = rs.body[:-by]
        rs.length = len(rs.body)


def flip(sv, rq, rs, v):
    """at=BYTES: one bit of the body is wrong"""
    if rs.body:
        at = int(v.get("at", len(rs.body) // 2)) % len(rs.body)
        rs.body = rs.body[:at] + bytes([rs.body[at] ^ 1]) + rs.body[at + 1:]


def change(sv, rq, rs, v):
    """size=SAME: the object is overwritten before it is read"""
    if rq.key in sv.store.buckets.get(rq.bucket, {}):
        sv.store.change(rq.bucket, rq.key, int(v["size"]) if "size" in v else None)
    return sv.answer(rq)


def nomatch(sv, rq, rs, v):
    """If-Match is ignored"""
    rq.headers.pop("if-match", None)
    return sv.answer(rq)


def error200(sv, rq, rs, v):
    """code=InternalError: status 200, but the body is an error"""
    return Response(200, s3.error_xml(v.get("code", "InternalError"), "try again"),
                    {"Content-Type": "application/xml", "ETag": rs.headers.get("ETag", "")})


def status(sv, rq, rs, v):
    """status=503 code=SlowDown after=SECONDS: an error"""
    head = {"Retry-After": v["after"]} if "after" in v else {}
    return error(int(v.get("status", 503)), v.get("code", "SlowDown"), headers=head)


def plainstatus(sv, rq, rs, v):
    """status=502 text=HTML: an error from a proxy that knows no S3"""
    return Response(int(v.get("status", 502)), b"<html>Bad Gateway</html>",
                    {"Content-Type": "text/html"})


def redirect(sv, rq, rs, v):
    """status=307 to=http://host:port region=R: look elsewhere, if that is not here; here=1"""
    signed = rq.headers.get("authorization", "")
    here = "to" in v and v["to"].endswith("//" + rq.host)
    if (here or "region" in v and f"/{v['region']}/s3/" in signed) and "here" not in v:
        return rs
    head = {}
    if "to" in v:
        query = "?" + rq.query_raw if rq.query_raw else ""
        head["Location"] = v["to"] + rq.path + query
    if "region" in v:
        head["x-amz-bucket-region"] = v["region"]
    code = "PermanentRedirect" if v.get("status") == "301" else "TemporaryRedirect"
    return error(int(v.get("status", 307)), code, headers=head,
                 Endpoint=v.get("to", "").removeprefix("http://"))


def expired(sv, rq, rs, v):
    """the session token is too old"""
    return error(400, "ExpiredToken", "The provided token has expired.")


def chunked(sv, rq, rs, v):
    """at=BYTES: chunks and no length; with at=, cut there"""
    rs.chunked, rs.length = True, None
    if "at" in v:
        rs.cut = (int(v["at"]), "close")


def nolength(sv, rq, rs, v):
    """no length: the end of the connection is the end; with at=, cut there"""
    rs.length, rs.close = None, True
    if "at" in v:
        rs.body = rs.body[:int(v["at"])]


def length(sv, rq, rs, v):
    """by=1: Content-Length is off by so much"""
    rs.length = max(0, len(rs.body) + int(v.get("by", 1)))
    rs.close = True


def slowheaders(sv, rq, rs, v):
    """secs=0.02: between the bytes of the head"""
    rs.slow_headers = float(v.get("secs", 0.02))


def drip(sv, rq, rs, v):
    """bytes=1000 secs=0.1: the body comes slowly"""
    rs.drip = (int(v.get("bytes", 1000)), float(v.get("secs", 0.1)))


def garbage(sv, rq, rs, v):
    """text=...: the body is something else"""
    text = v.get("text", "<ListBucketResult><Contents><Key>a</Size></Contents>")
    rs.body = text.encode("utf-8", "surrogateescape")
    rs.length = len(rs.body)


def cutbody(sv, rq, rs, v):
    """at=BYTES: the body ends there, and Content-Length agrees"""
    rs.body = rs.body[:int(v.get("at", len(rs.body) // 2))]
    rs.length = len(rs.body)


def replace(sv, rq, rs, v):
    """old=TEXT new=TEXT: in the body"""
    rs.body = rs.body.replace(v["old"].encode(), v.get("new", "").encode())
    rs.length = len(rs.body)


def token(sv, rq, rs, v):
    """how=repeat | endless | empty | missing: continuation that leads nowhere"""
    how = v.get("how", "repeat")
    given = rq.query.get("continuation-token", "")
    rq.query.pop("continuation-token", None)
    text = sv.answer(rq).body.decode().replace(
        "<IsTruncated>false", "<IsTruncated>true")
    text = text.partition("<NextContinuationToken>")[0] + (
        text.partition("</NextContinuationToken>")[2] or
        text.partition("<NextContinuationToken>")[2])
    if how == "empty":  # pages without objects, for ever
        text = text.partition("<Contents>")[0] + "</ListBucketResult>"
    new = {"repeat": "same", "missing": ""}.get(how, str(len(given)) + given[:500] + "x")
    if new:
        text = text.replace("</ListBucketResult>", "<NextContinuationToken>" + new +
                            "</NextContinuationToken></ListBucketResult>")
    return Response(200, text.encode(), rs.headers)


def endless(sv, rq, rs, v):
    """page=1000: so many new keys in every page of the listing, and always one more page"""
    n, given = int(v.get("page", 1000)), int(rq.query.get("continuation-token", 0))
    keys = "".join(f"<Contents><Key>{rq.query.get('prefix', '')}{i:012}</Key><Size>1</Size>"
                   f"<ETag>&quot;{i:032x}&quot;</ETag></Contents>"
                   for i in range(given, given + n))
    text = (f"<ListBucketResult><IsTruncated>true</IsTruncated>{keys}<NextContinuationToken>"
            f"{given + n}</NextContinuationToken></ListBucketResult>")
    return Response(200, text.encode(), {"Content-Type": "application/xml"})


def badsum(sv, rq, rs, v):
    """the checksum header is wrong"""
    for k in list(rs.headers):
        if k.startswith("x-amz-checksum-") and not k.endswith("-type"):
            c = rs.headers[k]
            rs.headers[k] = ("B" if c[0] == "A" else "A") + c[1:]


def etag(sv, rq, rs, v):
    """value=other: another ETag; value= none"""
    rs.headers.pop("ETag", None)
    if v.get("value", "other"):
        rs.headers["ETag"] = '"' + v.get("value", "other") + '"'


def close(sv, rq, rs, v):
    """the connection ends after each answer; quiet=1: unannounced"""
    rs.close = "quiet" if v.get("quiet") else True


def encoded(sv, rq, rs, v):
    """real=1: Content-Encoding: gzip over the stored bytes, or over compressed ones"""
    rs.headers["Content-Encoding"] = "gzip"
    if v.get("real"):
        rs.body = gzip.compress(rs.body)
        rs.length = len(rs.body)


def hints(sv, rq, rs, v):
    """interim answers before the answer"""
    rs.before = (b"HTTP/1.1 100 Continue\r\n\r\n"
                 b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\n\r\n")


def header(sv, rq, rs, v):
    """name=N value=V repeat=1: one more header, V repeated"""
    rs.headers[v["name"]] = v.get("value", "") * int(v.get("repeat", 1))


def nodate(sv, rq, rs, v):
    """no Date"""
    rs.headers["Date"] = "soon"


def noparts(sv, rq, rs, v):
    """partNumber is ignored"""
    rq.query.pop("partNumber", None)
    return sv.answer(rq)


def noise(sv, rq, rs, v):
    """no HTTP at all"""
    rs.before = b"\x16\x03\x01\x00\x00 what is this\r\n\r\n"
    rs.cut = (-1, "close")


FAULTS = {f.__name__: f for f in (
    stall, truncate, reset, refuse, wait, hold, norange, wrongrange, norangeheader, shortrange,
    flip, change, nomatch, error200, status, plainstatus, redirect, expired, chunked,
    nolength, length, slowheaders, drip, garbage, cutbody, replace, token, endless, badsum, etag,
    close, encoded, hints, header, nodate, noparts,
    noise)}

# What a client must survive when it strikes at random; each is drawn equally often.
CHAOS = ("stall secs=3", "truncate", "truncate at=0", "reset", "reset at=0", "refuse",
         "refuse how=reset", "wait secs=0.5", "norange", "wrongrange", "wrongrange by=0 total=1",
         "norangeheader", "shortrange", "error200", "status", "status status=500 code=InternalError",
         "status status=503 code=SlowDown after=1", "plainstatus", "chunked", "chunked at=100",
         "nolength", "nolength at=100", "length by=1", "length by=-1", "slowheaders secs=0.002",
         "drip bytes=20000 secs=0.02", "cutbody", "badsum", "flip", "close", "close quiet=1",
         "hints", "noise", "garbage", "encoded real=1", "etag value=other")


class Fault:
    def __init__(self, spec):
        kind, *pairs = spec.split()
        if kind not in FAULTS:
            raise SystemExit(f"faultd: no fault is called {kind}")
        self.kind, self.change = kind, FAULTS[kind]
        self.values = {k: unquote(v) for k, _, v in (p.partition("=") for p in pairs)}
        self.ops = self.values.pop("op", "get").split(",")
        self.match = self.values.pop("match", "*")
        self.query = self.values.pop("query", "")
        self.skip = int(self.values.pop("skip", 0))
        times = self.values.pop("times", "1")
        self.times = None if times == "all" else int(times)

    def strikes(self, rq):
        if (rq.op not in self.ops or not fnmatch.fnmatchcase(rq.key, self.match)
                or self.query not in rq.query_raw):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
            return self.times >= 0
        return True


# ---- the server ----

class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, opt):
        super().__init__((opt.address, opt.port), Connection)
        self.opt, self.store = opt, s3.Store()
        self.auth = opt.auth.split(":") if opt.auth else None
        self.faults = [Fault(f) for f in opt.fault]
        self.lock, self.random = threading.Lock(), random.Random(opt.seed)
        self.clock, self.log = opt.clock, []
        self.log_file = open(opt.log, "a", encoding="utf-8") if opt.log else None
        for given in opt.bucket:
            name, _, folder = given.partition("=")
            self.store.bucket(name)
            if folder:
                self.store.add_folder(name, folder)
        for given in opt.objects:
            name, _, path = given.partition("=")
            with open(path, encoding="utf-8") as f:
                for line in f:
                    if line.strip():
                        self.store.add_spec(name, json.loads(line))
        self.tls = None
        if opt.tls:
            self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.tls.load_cert_chain(*opt.tls)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (OSError, ssl.SSLError)):
            super().handle_error(request, client_address)

    def now(self):
        return time.time() + self.clock

    def pick(self, rq):
        """The faults that hit this request."""
        if rq.op == "control":
            return []
        with self.lock:
            hit = [f for f in self.faults if f.strikes(rq)]
            if self.opt.chaos and self.random.random() < self.opt.chaos:
                kinds = [c for c in CHAOS if c.split()[0] not in self.opt.without]
                hit.append(Fault(self.random.choice(kinds)))
        return hit

    def note(self, what):
        with self.lock:
            if self.log_file:
                self.log_file.write(json.dumps(what) + "\n")
                self.log_file.flush()

    # -- good answers --

    def answer(self, rq):
        if rq.op == "control":
            return self.control(rq)
        try:
            if self.auth:
                s3.check_signature(rq, self.auth, self.opt.region, self.now())
            if rq.method in ("PUT", "POST"):
                s3.check_body(rq)
            if rq.bucket not in self.store.buckets:
                raise s3.Refused(404, "NoSuchBucket", "The bucket does not exist")
            return getattr(self, "do_" + rq.op)(rq)
        except s3.Refused as e:
            rs = error(e.status, e.code, e.message, **e.more)
        except AttributeError:
            rs = error(405, "MethodNotAllowed")
        if self.opt.region and rs.status in (301, 400, 403):
            rs.headers["x-amz-bucket-region"] = self.opt.region
        return rs

    def control(self, rq):
        if rq.key == "log":
            return Response(200, "\n".join(map(json.dumps, self.log)).encode() + b"\n")
        if rq.key == "faults":
            self.faults = [Fault(f) for f in rq.body.decode().splitlines() if f.strip()]
            return Response(204)
        if rq.key == "chaos":
            self.opt.chaos = float(rq.body)
            return Response(204)
        if rq.key == "uploads":
            return Response(200, str(len(self.store.uploads)).encode())
        if rq.key == "parts":
            parts = sum(len(up["parts"]) for up in self.store.uploads.values())
            return Response(200, str(parts).encode())
        if rq.key == "clock":
            self.clock = float(rq.body)
            return Response(204)
        return Response(404)

    def do_headbucket(self, rq):
        return Response(200, b"", {"x-amz-bucket-region": self.opt.region or "us-east-1"})

    def do_list(self, rq):
        if "uploads" in rq.query:
            return self.list_uploads(rq)
        body = s3.list_xml(self.store, rq.bucket, rq.query, self.opt.page,
                           not self.opt.plain_keys)
        return Response(200, body, {"Content-Type": "application/xml"})

    def do_head(self, rq):
        return self.do_get(rq)

    def do_get(self, rq):
        o = self.store.buckets[rq.bucket].get(rq.key)
        if not o:
            raise s3.Refused(404, "NoSuchKey", "The specified key does not exist.")
        h, quoted = rq.headers, f'"{o.etag}"'
        if h.get("if-match", quoted).strip('"') not in (o.etag, "*"):
            raise s3.Refused(412, "PreconditionFailed", "If-Match")
        if h.get("if-none-match", "").strip('"') == o.etag:
            return Response(304, b"", {"ETag": quoted})
        head = {"ETag": quoted, "Last-Modified": s3.http_date(o.mtime),
                "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        size, span = len(o.data), None
        if h.get("range", "").startswith("bytes="):
            a, _, b = h["range"][6:].partition("-")
            first = int(a) if a else max(0, size - int(b))
            last = min(int(b), size - 1) if a and b else size - 1
            if first > last:
                rs = error(416, "InvalidRange", "not satisfiable")
                rs.headers["Content-Range"] = f"bytes */{size}"
                return rs
            span = (first, last + 1)
        elif "partNumber" in rq.query and o.part_size:
            first = (int(rq.query["partNumber"]) - 1) * o.part_size
            span = (first, min(size, first + o.part_size))
            head["x-amz-mp-parts-count"] = str(len(o.parts()))
        if not span:
            if h.get("x-amz-checksum-mode") == "ENABLED" and self.opt.checksum:
                self.add_checksum(head, o)
            return Response(200, o.data, head)
        head["Content-Range"] = f"bytes {span[0]}-{span[1] - 1}/{size}"
        return Response(206, o.data[span[0]:span[1]], head)

    def add_checksum(self, head, o):
        name, _, kind = self.opt.checksum.partition(":")
        composite = kind == "composite" and o.part_size > 0
        head[f"x-amz-checksum-{name}"] = o.checksum(name, composite)
        head["x-amz-checksum-type"] = "COMPOSITE" if composite else "FULL_OBJECT"

    def do_put(self, rq):
        o = s3.Object(rq.body)
        with self.store.lock:
            have = self.store.buckets[rq.bucket].get(rq.key)
            if have and rq.headers.get("if-none-match") == "*":
                raise s3.Refused(412, "PreconditionFailed", "If-None-Match")
            self.store.buckets[rq.bucket][rq.key] = o
        head = {"ETag": f'"{o.etag}"'}
        if self.opt.checksum:
            self.add_checksum(head, o)
        return Response(200, b"", head)

    def do_delete(self, rq):
        with self.store.lock:
            self.store.buckets[rq.bucket].pop(rq.key, None)
        return Response(204)

    def do_create(self, rq):
        with self.store.lock:
            name = f"up-{len(self.store.begun) + 1}"
            self.store.uploads[name] = {"key": rq.key, "parts": {}}
            self.store.begun.append(rq.key)
        return Response(200, (
            f"<InitiateMultipartUploadResult><Bucket>{rq.bucket}</Bucket>"
            f"<UploadId>{name}</UploadId></InitiateMultipartUploadResult>").encode(),
            {"Content-Type": "application/xml"})

    def upload(self, rq):
        up = self.store.uploads.get(rq.query["uploadId"])
        if not up or up["key"] != rq.key:
            raise s3.Refused(404, "NoSuchUpload", "no such upload")
        return up

    def list_uploads(self, rq):
        with self.store.lock:
            rows = "".join(
                f"<Upload><Key>{s3.escape(up['key'])}</Key><UploadId>{name}</UploadId></Upload>"
                for name, up in self.store.uploads.items()
                if up["key"].startswith(rq.query.get("prefix", "")))
        return Response(200, ("<ListMultipartUploadsResult><IsTruncated>false</IsTruncated>"
                              f"{rows}</ListMultipartUploadsResult>").encode(),
                        {"Content-Type": "application/xml"})

    def do_parts(self, rq):
        with self.store.lock:
            parts = sorted(self.upload(rq)["parts"].items())
        after = int(rq.query.get("part-number-marker", 0))
        page = [p for p in parts if p[0] > after][:self.opt.page]
        more = bool(page) and page[-1][0] < parts[-1][0]
        rows = "".join(
            f"<Part><PartNumber>{n}</PartNumber><ETag>&quot;{o.etag}&quot;</ETag>"
            f"<Size>{len(o.data)}</Size>"
            + (f"<ChecksumCRC64NVME>{o.checksum('crc64nvme')}</ChecksumCRC64NVME>"
               if self.opt.checksum else "") + "</Part>" for n, o in page)
        return Response(200, (
            f"<ListPartsResult><IsTruncated>{str(more).lower()}</IsTruncated>"
            + (f"<NextPartNumberMarker>{page[-1][0]}</NextPartNumberMarker>" if more else "")
            + f"{rows}</ListPartsResult>").encode(), {"Content-Type": "application/xml"})

    def do_part(self, rq):
        o = s3.Object(rq.body)
        with self.store.lock:
            self.upload(rq)["parts"][int(rq.query["partNumber"])] = o
        return Response(200, b"", {"ETag": f'"{o.etag}"'})

    def do_complete(self, rq):
        with self.store.lock:
            data = s3.complete_parts(self.upload(rq), rq.body)
            o = s3.Object(b"".join(data), None, len(data[0]))
            for name in s3.CHECKSUMS:
                want = rq.headers.get(f"x-amz-checksum-{name}")
                if want and want not in (o.checksum(name), o.checksum(name, True)):
                    raise s3.Refused(400, "BadDigest", f"{name} of the whole differs")
            self.store.buckets[rq.bucket][rq.key] = o
            self.store.uploads.pop(rq.query["uploadId"])
        return Response(200, (
            "<CompleteMultipartUploadResult><ETag>&quot;"
            f"{o.etag}&quot;</ETag></CompleteMultipartUploadResult>").encode(),
            {"Content-Type": "application/xml"})

    def do_abort(self, rq):
        with self.store.lock:
            self.upload(rq)
            self.store.uploads.pop(rq.query["uploadId"])
        return Response(204)


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def setup(self):
        if self.server.tls:
            self.request.settimeout(20)
            self.request = self.server.tls.wrap_socket(self.request, server_side=True)
            self.request.settimeout(None)
        super().setup()

    def handle(self):
        while True:
            rq = self.read()
            if rq is None:
                return
            rs, hit = self.server.answer(rq), self.server.pick(rq)
            for f in hit:
                rs = f.change(self.server, rq, rs, f.values) or rs
            what = {"op": rq.op, "key": rq.key, "range": rq.headers.get("range"),
                    "host": rq.host, "at": self.request.getsockname()[0],
                    "secrets": [k for k in ("authorization", "x-amz-security-token")
                                if k in rq.headers],
                    "status": rs.status, "sent": 0, "faults": [f.kind for f in hit]}
            if rq.op != "control":
                self.server.log.append(what)
            keep = False
            try:
                what["sent"], keep = self.send(rq, rs)
            finally:
                if rq.op != "control":
                    self.server.note(what)
            if not keep:
                return

    def read(self):
        line = self.rfile.readline(65536)
        if not line.strip():
            return None
        words = line.decode("latin-1").split()
        if len(words) != 3 or line[0] == 0x16:  # TLS says hello
            self.wfile.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            return None
        headers = {}
        while True:
            line = self.rfile.readline(65536).decode("latin-1").rstrip("\r\n")
            if not line:
                break
            k, _, v = line.partition(":")
            headers[k.strip().lower()] = v.strip()
        if headers.get("expect", "").lower() == "100-continue":
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b"".join(iter(self.read_chunk, b""))
        else:
            body = self.rfile.read(int(headers.get("content-length") or 0))
        return Request(words[0], words[1], headers, body)

    def read_chunk(self):
        data = self.rfile.read(int(self.rfile.readline().split(b";")[0] or b"0", 16))
        self.rfile.readline()
        return data

    def send(self, rq, rs):
        """Returns the bytes of the body that were sent, and whether we go on."""
        time.sleep(rs.wait)
        if rs.before:
            self.wfile.write(rs.before)
        if rs.cut and rs.cut[0] < 0:
            return self.end(0, rs.cut[1])
        rs.headers.setdefault("Date", s3.http_date(self.server.now()))
        if rs.length is not None and rs.status not in (204, 304):
            rs.headers["Content-Length"] = str(rs.length)
        if rs.chunked:
            rs.headers["Transfer-Encoding"] = "chunked"
        if rs.close is True:
            rs.headers["Connection"] = "close"
        head = f"HTTP/1.1 {rs.status} {'OK' if rs.status < 300 else 'No'}\r\n" + "".join(
            f"{k}: {v}\r\n" for k, v in rs.headers.items()) + "\r\n"
        self.slowly(head.encode("latin-1"), (1, rs.slow_headers) if rs.slow_headers else None)
        body = b"" if rq.method == "HEAD" or rs.status in (204, 304) else rs.body
        if rs.cut and body:
            body = body[:rs.cut[0]]
        sent = len(body)
        if rs.chunked:
            step = 10000
            body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (
                body[i:i + step] for i in range(0, len(body), step)))
            body += b"" if rs.cut else b"0\r\n\r\n"
        self.slowly(body, rs.drip)
        if rs.cut:
            return self.end(sent, rs.cut[1])
        return sent, not rs.close and rq.headers.get("connection", "").lower() != "close"

    def slowly(self, data, drip):
        if not drip:
            self.wfile.write(data)
            return
        for i in range(0, len(data), drip[0]):
            self.wfile.write(data[i:i + drip[0]])
            time.sleep(drip[1])

    def end(self, sent, how):
        if isinstance(how, float):
            time.sleep(how)
        elif how == "reset":
            time.sleep(0.02)  # what was sent shall arrive before the reset
            self.request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                    struct.pack("ii", 1, 0))
            self.rfile.close()
            self.request.close()
        return sent, False


def options():
    p = argparse.ArgumentParser(description="an S3 server that fails on command")
    p.add_argument("--ready", help="file that receives the port")
    p.add_argument("--address", default="127.0.0.1")
    p.add_argument("--port", type=int, default=0)
    p.add_argument("--bucket", action="append", default=[], metavar="NAME[=FOLDER]")
    p.add_argument("--objects", action="append", default=[], metavar="NAME=FILE")
    p.add_argument("--auth", metavar="ID:SECRET[:TOKEN]")
    p.add_argument("--region", help="signatures for another one are refused")
    p.add_argument("--clock", type=float, default=0, help="seconds fast")
    p.add_argument("--page", type=int, default=1000, help="keys a page of a list")
    p.add_argument("--plain-keys", action="store_true", help="encoding-type is ignored")
    p.add_argument("--checksum", metavar="ALGORITHM[:composite]",
                   help="offered with whole objects: " + " ".join(s3.CHECKSUMS))
    p.add_argument("--tls", nargs=2, metavar=("CERT", "KEY"))
    p.add_argument("--log")
    p.add_argument("--fault", action="append", default=[], metavar="SPEC")
    p.add_argument("--chaos", type=float, default=0, metavar="RATE")
    p.add_argument("--without", action="append", default=[], metavar="FAULT", help="chaos leaves it out")
    p.add_argument("--seed", type=int, default=1)
    return p


def serve(kind, opt):
    with kind(opt) as server:
        if opt.ready:
            with open(opt.ready + ".tmp", "w", encoding="ascii") as f:
                f.write(f"{server.server_address[1]}\n")
            os.rename(opt.ready + ".tmp", opt.ready)
        server.serve_forever()


if __name__ == "__main__":
    serve(Server, options().parse_args())
