#!/usr/bin/env python3
"""hubd.py - the Hugging Face hub and the store to which it redirects, on two ports.

    hubd.py --ready FILE [--token TOKEN] [--old N] [--hub-fault SPEC] [--link BYTES]
            [the options of faultd.py]

FILE receives both ports.  What the hub knows is tests/golden/hub/tree.json: repositories,
each with a commit, whether it is private, and pages of its tree as the API answers.  A
file's bytes follow from its name and its size (content below), so that the recorded
hashes are theirs.  Large files ("lfs") are redirected to the store with a URL that is good
for --old requests; the store refuses a request that carries Authorization, as S3 does, and
every such request is in the log as op "leak".  "old/name" has been renamed.  --fault hits
the store, --hub-fault the files of the hub itself (op=small) and its API (op=api).  --link
makes the Link headers of the listing longer by so much.

    hubd.py --record       prints tree.json anew
"""
import hashlib
import json
import os
import sys
import threading
from urllib.parse import quote, unquote

sys.dont_write_bytecode = True
import faultd
import faultd_s3 as s3
from faultd import Response

TREE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden/hub/tree.json")


def content(path, size):
    seed = hashlib.sha256(path.encode()).digest()
    return (seed * (size // 32 + 1))[:size]


class Hub(faultd.Server):
    def __init__(self, opt):
        super().__init__(opt)
        with open(TREE, encoding="utf-8") as f:
            self.repos = json.load(f)
        self.store_server = None

    def note(self, what=None, **more):
        with self.lock:
            if self.log_file:
                print(json.dumps({**(what or {}), **more}), file=self.log_file, flush=True)

    def pick(self, rq):
        """A flipped bit in a listing cannot be seen; chaos leaves it out."""
        return [f for f in super().pick(rq)
                if rq.op != "api" or f.kind != "flip" or not self.opt.chaos]

    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, rq):
        rq.op = "api"
        if rq.path.startswith("/-/"):
            rq.op = "control"
            return self.control(rq)
        given = rq.headers.get("authorization")
        if given and given != f"Bearer {self.opt.token}":
            return self.refuse(401, "Invalid credentials in Authorization header")
        part = [unquote(x) for x in rq.path.lstrip("/").split("/")]
        api = part[0] == "api"
        part = part[1:] if api else part
        kind = part.pop(0) if part[0] in ("models", "datasets") else "models"
        repo, part = f"{kind}/{part[0]}/{part[1]}", part[2:]
        if repo == "models/old/name":
            there = rq.path.replace("old/name", "acme/tiny", 1)
            there += "?" + rq.query_raw if rq.query_raw else ""
            return Response(307, b"Temporary Redirect", {"Location": there})
        known = self.repos.get(repo)
        if not known or (known["private"] and not given):
            return self.refuse(401 if not given else 404, "Repository not found")
        head = {"X-Repo-Commit": known["sha"], "Content-Type": "application/json"}
        if part[0] == "revision" and part[1] in ("main", "refs/pr/1", known["sha"]):
            return Response(200, json.dumps({"_id": "1", "id": repo.partition("/")[2],
                                             "sha": known["sha"],
                                             "lastModified": "2026-02-03T04:05:06.000Z"}
                                            ).encode(), head)
        if len(part) < 2 or part[1] != known["sha"]:
            return self.refuse(404, "Invalid rev id")
        if api and part[0] == "tree":
            return self.tree(rq, known, head)
        return self.file(rq, repo, known, "/".join(part[2:]))

    def refuse(self, status, why):
        return Response(status, json.dumps({"error": why}).encode(), {"X-Error-Message": why})

    def tree(self, rq, known, head):
        page = int(rq.query.get("cursor", "cGFnZQ:0=").strip("=").partition(":")[2])
        if page + 1 < len(known["pages"]):
            there = f"{self.url()}{rq.path}?recursive=true&cursor=" + quote(
                f"cGFnZQ:{page + 1}=", safe="")
            pad = "x" * self.opt.link
            head["Link"] = f'<{there}>; title="{pad}"; rel="next"'
        return Response(200, json.dumps(known["pages"][page]).encode(), head)

    def file(self, rq, repo, known, path):
        entry = next((e for p in known["pages"] for e in p
                      if e["path"] == path and e["type"] == "file"), None)
        if not entry:
            return self.refuse(404, "Entry not found")
        if "lfs" not in entry:
            return self.serve_bytes(rq, path, entry["size"])
        rq.op = "resolve"
        there = self.store_server.sign(path, entry["size"])
        return Response(302, b"Found", {"Location": there, "X-Linked-Size": str(entry["size"]),
                                        "X-Linked-Etag": f'"{entry["lfs"]["oid"]}"'})

    def serve_bytes(self, rq, path, size):
        self.store.bucket("b")
        self.store.buckets["b"].setdefault(path, s3.Object(content(path, size)))
        rq.op, rq.bucket, rq.key = "small", "b", path
        return self.do_get(rq)


class Store(faultd.Server):
    """Signed URLs: /NUMBER?sig=...; each is good for some requests."""

    def __init__(self, opt, hub):
        super().__init__(opt)
        self.hub, self.given = hub, {}
        hub.store_server = self

    def sign(self, path, size):
        with self.lock:
            n = len(self.given)
            self.given[n] = [path, size, self.opt.old]
        return (f"http://localhost:{self.server_address[1]}/{n}?response-content-disposition="
                f"inline%3B%20filename%3D%22x%22%3B&sig=%2B%2F{n}")

    def answer(self, rq):
        rq.op = "get"
        if "authorization" in rq.headers:
            self.hub.note(op="leak", key=rq.path)
            return faultd.error(400, "InvalidArgument", "Only one auth mechanism allowed")
        n = int(rq.path.strip("/"))
        path, size, left = self.given[n]
        with self.lock:
            self.given[n][2] -= 1
        if left <= 0 or rq.query.get("sig") != f"+/{n}":
            return faultd.error(403, "AccessDenied", "Request has expired")
        data = content(path, size)
        self.store.bucket("b")
        self.store.buckets["b"][path] = s3.Object(data)
        rq.bucket, rq.key = "b", path
        return self.do_get(rq)


def record():
    def entry(path, size, lfs):
        data = content(path, size)
        blob = hashlib.sha1(b"blob %d\0" % size + data).hexdigest()
        out = {"type": "file", "oid": blob, "size": size, "path": path}
        if lfs:
            oid = hashlib.sha256(data).hexdigest()
            out.update(lfs={"oid": oid, "size": size, "pointerSize": 135},
                       xetHash=hashlib.sha256(oid.encode()).hexdigest())
        return out

    def folder(path):
        return {"type": "directory", "oid": hashlib.sha1(path.encode()).hexdigest(),
                "size": 0, "path": path}

    tiny = [[entry(".gitattributes", 1519, False), entry("README.md", 700, False),
             entry("config.json", 651, False)],
            [entry("model-00001-of-00002.safetensors", 300000, True),
             entry("model-00002-of-00002.safetensors", 100001, True), folder("onnx")],
            [entry("onnx/a b+#%é=.bin", 70000, True), entry("onnx/empty", 0, False)]]
    data = [[folder("data"), entry("data/train-00000.jsonl", 5000, True)]]
    print(json.dumps({
        "models/acme/tiny": {"sha": "5f0b02c75b57c5855da9ae460ce51323ea669d8a",
                             "private": False, "pages": tiny},
        "datasets/acme/talk": {"sha": "0123456789abcdef0123456789abcdef01234567",
                               "private": True, "pages": data}},
        indent=1, ensure_ascii=False))


def main():
    if sys.argv[1:] == ["--record"]:
        return record()
    p = faultd.options()
    p.add_argument("--token", default="hf_secret")
    p.add_argument("--old", type=int, default=1000000)
    p.add_argument("--hub-fault", action="append", default=[])
    p.add_argument("--link", type=int, default=0)
    opt = p.parse_args()
    with Hub(opt) as hub, Store(opt, hub) as store:
        store.faults = hub.faults
        hub.faults = [faultd.Fault(f) for f in opt.hub_fault]
        threading.Thread(target=store.serve_forever, daemon=True).start()
        with open(opt.ready + ".tmp", "w", encoding="ascii") as f:
            f.write(f"{hub.server_address[1]} {store.server_address[1]}\n")
        os.rename(opt.ready + ".tmp", opt.ready)
        hub.serve_forever()


if __name__ == "__main__":
    main()
