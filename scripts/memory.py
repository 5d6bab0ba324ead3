#!/usr/bin/env python3
"""memory.py - the peak memory of draft-fetch, held against --memory.

    scripts/memory.py BUILD [WORD...]      the cases whose names have one of the words

`make test-memory` runs it.  What is counted is the peak of resident memory of the whole
process (ru_maxrss): program, libraries, lists, manifest, connections, windows.  The
server is bench/fastd.c.  A case fails when its peak is above
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
    ("20,000 x 16 KiB", HTTP, "small", [], 256, 40),
    ("20,000 x 16 KiB, https", TLS, "small", [], 256, 112),
    ("a mix of three sizes", HTTP, "mix", [], 256, 96),
    ("a mix, --memory 64M, https", TLS, "mix", ["--connections", "64"], 64, 64),
    ("100,000 objects, first sync", HTTP, "many", [], 256, 80),
    ("100,000 objects, second sync", HTTP, "many", [], 256, 40),
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

    def url(self, scheme):
        if scheme not in self.all:
            tls = ["--tls", self.cert, self.cert + ".key"] if scheme == TLS else []
            server = subprocess.Popen([os.path.join(self.build, "bench", "fastd"), *tls,
                                       *SETS], stdout=subprocess.PIPE)
            port = int(server.stdout.readline())
            self.all[scheme] = server, f"{scheme}://localhost:{port}"
        return self.all[scheme][1]

    def stop(self):
        for server, _ in self.all.values():
            server.kill()
            server.wait()


def peak(command):
    """The peak of a program's resident memory, in MiB."""
    child = subprocess.Popen(command)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"memory: exit {child.returncode} of {' '.join(command)}")
    return used.ru_maxrss * 1024 / MIB


def run(servers, case, folder):
    name, scheme, bucket, options, memory, _ = case
    fetch = [os.path.join(servers.build, "bin", "draft-fetch"), "-q", "--no-sign",
             "--endpoint", servers.url(scheme), "--memory", str(memory * MIB),
             *options, *(["--ca", servers.cert] if scheme == TLS else [])]
    dest = os.path.join(folder, bucket)
    if "second" not in name:
        shutil.rmtree(dest, ignore_errors=True)
    return peak([*fetch, f"s3://{bucket}/", "-o", dest])


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
