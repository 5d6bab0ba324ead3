#!/usr/bin/env python3
"""sink.py - an S3 server that takes uploads and keeps their sizes alone.

    sink.py [CERT]      with TLS if there is a certificate; its key lies in CERT.key

The port is printed, then requests are answered.  For measuring draft-fetch --put.
"""
import http.server
import ssl
import sys
import threading
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BLOCK, PAGE = 1 << 20, 1000


class Sink(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave together
    size, parts, lock = {}, {}, threading.Lock()  # by key; by id and number

    def log_message(self, *_):
        pass

    def answer(self, status, text="", **head):
        self.send_response(status)
        for name, value in head.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def ask(self):
        """The key, the query, and how many bytes came."""
        url = urlsplit(self.path)
        size = left = int(self.headers.get("Content-Length", 0))
        while left > 0:
            left -= len(self.rfile.read(min(left, BLOCK)))
        return unquote(url.path), parse_qs(url.query, True), size

    def do_PUT(self):
        key, query, size = self.ask()
        with self.lock:
            if "uploadId" in query:
                self.parts[query["uploadId"][0]][query["partNumber"][0]] = size
            else:
                self.size[key] = size
        self.answer(200, ETag='"0-1"')

    def do_POST(self):
        key, query, _ = self.ask()
        with self.lock:
            if "uploads" in query:
                name = str(len(self.parts))
                self.parts[name] = {}
                text = f"<InitiateMultipartUploadResult><UploadId>{name}</UploadId>" \
                       "</InitiateMultipartUploadResult>"
            else:
                self.size[key] = sum(self.parts[query["uploadId"][0]].values())
                text = '<CompleteMultipartUploadResult><ETag>"0-1"</ETag>' \
                       "</CompleteMultipartUploadResult>"
        self.answer(200, text)

    def do_HEAD(self):
        key, _, _ = self.ask()
        if key in self.size:
            self.answer(200, **{"Content-Length": self.size[key], "ETag": '"0-1"'})
        else:
            self.answer(404)

    def do_GET(self):
        key, query, _ = self.ask()
        if "uploads" in query:
            self.answer(200, "<ListMultipartUploadsResult></ListMultipartUploadsResult>")
        elif "list-type" in query:
            self.list(key.strip("/"), query)
        else:
            self.answer(404, "<Error><Code>NoSuchKey</Code></Error>")

    def list(self, bucket, query):
        start = f"/{bucket}/"
        prefix = start + query.get("prefix", [""])[0]
        after = query.get("continuation-token", [""])[0]
        with self.lock:
            keys = sorted(k for k in self.size if k.startswith(prefix) and k > after)
        page = keys[:PAGE]
        rows = "".join(
            f"<Contents><Key>{escape(k[len(start):])}</Key><Size>{self.size[k]}</Size>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>\"0-1\"</ETag>"
            "</Contents>" for k in page)
        more = f"<NextContinuationToken>{escape(page[-1])}</NextContinuationToken>" \
            if len(keys) > PAGE else ""
        self.answer(200, f"<ListBucketResult>{rows}{more}<IsTruncated>"
                         f"{str(len(keys) > PAGE).lower()}</IsTruncated></ListBucketResult>")


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
    server.daemon_threads = True
    if len(sys.argv) > 1:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[1] + ".key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
