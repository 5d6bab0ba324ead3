#!/usr/bin/env python3
"""memory.py - the peak memory of draft-fetch, held against --memory.

    scripts/memory.py BUILD [WORD...]      the cases whose names have one of the words

`make test-memory` runs it.  What is counted is the peak of resident memory of the whole
process (ru_maxrss): program, libraries, lists, manifest, connections, windows, parts.  The
server is bench/fastd.c, for uploads scripts/sink.py.  A case fails when its peak is above
what is allowed here: --memory, or little more than it takes today.
"""
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
SETS = ["small=20000x16384", "big=4x1073741824", "many=100000x100",
        "mix=20000x16384,1000x1048576,2x1073741824"]
HTTP, TLS = "http", "https"
# name, scheme, bucket, options, --memory and the peak allowed, in MiB
CASES = [
    ("4 x 1 GiB, 64 connections", HTTP, "big", ["--connections", "64"], 256, 32),
    ("4 x 1 GiB, 64 connections, https", TLS, "big", ["--connections", "64"], 256, 48),
    ("20,000 x 16 KiB", HTTP, "small", [], 256, 44),
    ("20,000 x 16 KiB, https", TLS, "small", [], 256, 112),
    ("a mix of three sizes", HTTP, "mix", [], 256, 96),
    ("a mix, --memory 64M, https", TLS, "mix", ["--connections", "64"], 64, 64),
    ("100,000 objects, first sync", HTTP, "many", [], 256, 80),
    ("100,000 objects, second sync", HTTP, "many", [], 256, 40),
    ("put 4 x 1 GiB", HTTP, "big", [], 256, 256),
    ("put 4 x 1 GiB, https", TLS, "big", [], 256, 256),
    ("put 4 x 1 GiB, --memory 64M", HTTP, "big", [], 64, 64),
    ("put 20,000 x 16 KiB", HTTP, "small", [], 256, 48),
    ("put 20,000 x 16 KiB, https", TLS, "small", [], 256, 52),
]


class Servers:
    def __init__(self, build, work):
        self.build, self.work, self.all = build, work, {}
        self.cert = os.path.join(work, "cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9",
             "-keyout", self.cert + ".key", "-out", self.cert, "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost"],
            check=True, stderr=subprocess.DEVNULL)

    def url(self, scheme, takes=False):
        """Of a server that gives, or of one that takes."""
        if (scheme, takes) not in self.all:
            cert = [self.cert] if scheme == TLS else []
            if takes:
                command = [sys.executable, os.path.join(HERE, "sink.py"), *cert]
            else:
                tls = ["--tls", *cert, self.cert + ".key"] if cert else []
                command = [os.path.join(self.build, "bench", "fastd"), *tls, *SETS]
            server = subprocess.Popen(command, stdout=subprocess.PIPE)
            port = int(server.stdout.readline())
            self.all[scheme, takes] = server, f"{scheme}://localhost:{port}"
        return self.all[scheme, takes][1]

    def stop(self):
        for server, _ in self.all.values():
            server.kill()
            server.wait()


def peak(command):
    """The peak of a program's resident memory, in MiB."""
    keys = dict(os.environ, AWS_ACCESS_KEY_ID="id", AWS_SECRET_ACCESS_KEY="secret")
    child = subprocess.Popen(command, env=keys)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"memory: exit {child.returncode} of {' '.join(command)}")
    return used.ru_maxrss * 1024 / MIB


def sparse_files(folder, bucket):
    """As a bucket has them, but what is in them is not looked at."""
    shutil.rmtree(folder, ignore_errors=True)
    os.mkdir(folder)
    count, size = dict(s.split("=") for s in SETS)[bucket].split("x")
    for i in range(int(count)):
        with open(os.path.join(folder, f"{i:06d}.bin"), "wb") as f:
            f.truncate(int(size))
    return folder


def run(servers, case, folder):
    name, scheme, bucket, options, memory, _ = case
    takes = name.startswith("put")
    fetch = [os.path.join(servers.build, "bin", "draft-fetch"), "-q",
             "--endpoint", servers.url(scheme, takes), "--memory", str(memory * MIB),
             *options, *(["--ca", servers.cert] if scheme == TLS else [])]
    if takes:
        source = sparse_files(os.path.join(folder, "put"), bucket)
        return peak([*fetch, "--put", source, f"s3://b/{name}"])
    dest = os.path.join(folder, bucket)
    if "second" not in name:
        shutil.rmtree(dest, ignore_errors=True)
    return peak([*fetch, "--no-sign", f"s3://{bucket}/", "-o", dest])


def main():
    build, words = os.path.abspath(sys.argv[1]), sys.argv[2:]
    bad = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        servers = Servers(build, folder)
        print(f"{'':36}{'peak':>8}{'allowed':>9}{'--memory':>10}  MiB")
        try:
            for case in CASES:
                name, _, _, _, memory, most = case
                if words and not any(w in name for w in words):
                    continue
                got = run(servers, case, folder)
                fine = got <= most
                bad += not fine
                print(f"{name:36}{got:8.1f}{most:9}{memory:10}  {'' if fine else 'TOO MUCH'}",
                      flush=True)
        finally:
            servers.stop()
    print(f"memory: {'all within limits' if not bad else f'{bad} above'}")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
