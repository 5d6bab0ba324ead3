#!/usr/bin/env python3
"""bench_fetch.py - draft-fetch beside other S3 clients, all against one server.

    bench/bench_fetch.py BUILD [--sets small,mid,big] [--schemes http,https]
        [--to tmpfs,disk] [--tools a,b] [--repeat 3] [--disk FOLDER] [--tsv FILE]

`make bench-fetch` runs it.  fastd, pinned to the first core, serves 20,000 x 16 KiB
(small), 2,000 x 1 MiB (mid) and 4 x 1 GiB (big); each client, pinned to the second core,
brings a whole bucket to an empty folder.  Clients take turns, so that what else the
machine does meets all alike.  Columns, medians of the repeats (a client that takes twice
draft-fetch's wall and processor seconds in the first round is not repeated):

    wall    seconds of the client
    user, sys, cpu    its processor seconds (getrusage of the child)
    busy    share of the wall time in which the server's core worked: up to 67 %, the
            server could have served 1.5 times as fast, so wall time counts; above, or on
            a machine that does other work too (# load), the processor seconds decide
    sync    seconds of one syncfs behind it: what durability still costs.  draft-fetch
            has paid already, the others sync nothing; its second row is the same run
            with fsync and syncfs turned off by a preloaded library
    durable    wall and sync: until the files would survive a loss of power
    rss     the client's peak of resident memory, MiB

So wall is fair between the others and the row without sync, durable between all.  The
lines below a table say which column decides, by the fastest client, and how far each row
of draft-fetch is ahead of the best other client (2.0: it takes half).  With --tsv the rows
are also kept in a file, and a set that is in it already is not run again: an interrupted
bench goes on where it was.

The first round's files are compared with draft-fetch's, name by name and byte by byte.
Clients that scripts/deps.sh rivals has not installed are skipped by name.
"""
import argparse
import ctypes
import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SETS = {"small": (20000, 16 << 10), "mid": (2000, 1 << 20), "big": (4, 1 << 30)}
LIMIT = 600  # seconds a client may take

COLUMNS = ("wall", "user", "sys", "cpu", "busy", "sync", "durable", "rss")

NO_SYNC = """
int fsync(int fd) { (void)fd; return 0; }
int fdatasync(int fd) { (void)fd; return 0; }
int syncfs(int fd) { (void)fd; return 0; }
"""


def pin(cores):
    return lambda: os.sched_setaffinity(0, cores)


def cpu_of(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        field = f.read().rpartition(")")[2].split()
    return (int(field[11]) + int(field[12])) / os.sysconf("SC_CLK_TCK")


class Bench:
    def __init__(self, opt, work):
        self.opt, self.work = opt, work
        self.cores = sorted(os.sched_getaffinity(0))[:2]
        if len(self.cores) < 2:
            sys.exit("bench_fetch: needs two cores")
        rivals = os.path.join(HERE, "..", "build", "rivals", "bin")
        self.fetch = os.path.join(opt.build, "bin", "draft-fetch")
        self.bin = {n: os.path.join(rivals, n) for n in ("s5cmd", "rclone", "python3")}
        self.cert = os.path.join(work, "cert.pem")
        self.no_sync = os.path.join(work, "nosync.so")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9",
             "-keyout", self.cert + ".key", "-out", self.cert, "-subj", "/CN=localhost",
             "-addext", "subjectAltName=DNS:localhost"],
            check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", self.no_sync, "-"],
                       input=NO_SYNC.encode(), check=True)

    def serve(self, scheme):
        tls = ["--tls", self.cert, self.cert + ".key"] if scheme == "https" else []
        sets = [f"{n}={c}x{b}" for n, (c, b) in SETS.items()]
        server = subprocess.Popen(
            [os.path.join(self.opt.build, "bench", "fastd"), *tls, *sets],
            stdout=subprocess.PIPE, preexec_fn=pin(self.cores[:1]))
        port = server.stdout.readline().decode().strip()
        return server, f"{scheme}://localhost:{port}"

    def commands(self, url, name, dest, scheme):
        """The clients, each as its manual says a bucket is brought to a folder."""
        tls = scheme == "https"
        fetch = [self.fetch, "-q", f"s3://{name}/", "-o", dest, "--endpoint", url,
                 "--no-sign"] + (["--ca", self.cert] if tls else [])
        library = [self.bin["python3"], os.path.join(HERE, "rivals.py")]
        tail = [url, name, dest] + ([self.cert] if tls else [])
        return {
            "draft-fetch": fetch,
            "draft-fetch, no sync": fetch,
            "s5cmd": [self.bin["s5cmd"], "--log", "error", "--no-sign-request",
                      "--endpoint-url", url, "cp", f"s3://{name}/*", dest + "/"],
            "rclone": [self.bin["rclone"], "copy", f":s3:{name}", dest, "-q",
                       "--config", "/dev/null", "--s3-provider", "Other",
                       "--s3-endpoint", url, "--s3-list-version", "2",
                       "--s3-no-check-bucket", "--use-server-modtime", "--fast-list",
                       "--transfers", "32"] + (["--ca-cert", self.cert] if tls else []),
            "awscrt": library + ["crt"] + tail,
            "obstore": library + ["obstore"] + tail,
        }

    def run(self, tool, command, server, dest):
        """One run: its columns."""
        shutil.rmtree(dest, ignore_errors=True)
        os.makedirs(dest)
        self.sync(dest)
        env = dict(os.environ, AWS_CA_BUNDLE=self.cert, SSL_CERT_FILE=self.cert,
                   AWS_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true")
        if tool.endswith("no sync"):
            env["LD_PRELOAD"] = self.no_sync
        begun, server_begun = time.monotonic(), cpu_of(server.pid)
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(command, env=env, stdout=said, stderr=said,
                                     preexec_fn=pin(self.cores[1:]))
            timer = threading.Timer(LIMIT, child.kill)
            timer.start()
            _, status, used = os.wait4(child.pid, 0)
            wall = time.monotonic() - begun
            timer.cancel()
            child.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read()[-300:].decode(errors="replace").strip()
        served = cpu_of(server.pid) - server_begun
        if child.returncode:
            raise RuntimeError(f"exit {child.returncode}: {text}")
        cpu, sync = used.ru_utime + used.ru_stime, self.sync(dest)
        return (wall, used.ru_utime, used.ru_stime, cpu, served / wall, sync, wall + sync,
                used.ru_maxrss / 1024)

    @staticmethod
    def sync(folder):
        fd, begun = os.open(folder, os.O_RDONLY), time.monotonic()
        ctypes.CDLL(None).syncfs(fd)
        os.close(fd)
        return time.monotonic() - begun

    def check(self, dest, name, like):
        """Every object is there, whole, and as the first client has it."""
        count, size = SETS[name]
        names = [f"{i:06d}.bin" for i in range(count)]
        for n in names:
            if os.path.getsize(os.path.join(dest, n)) != size:
                raise RuntimeError(f"{n} is not of {size} bytes")
        if like:
            _, differ, wrong = filecmp.cmpfiles(dest, like, names, shallow=False)
            if differ or wrong:
                raise RuntimeError(f"{(differ + wrong)[0]} differs from draft-fetch's")

    def clients(self, url, name, scheme):
        """Those that are asked for and installed."""
        chosen = self.opt.tools.split(",") if self.opt.tools else None
        for tool, command in self.commands(url, name, "DEST", scheme).items():
            if chosen and tool.split(",")[0] not in chosen:
                continue
            if os.path.exists(command[0]):
                yield tool, command
            else:
                print(f"{tool:22}skipped: scripts/deps.sh rivals installs it")

    def rounds(self, clients, server, name, folder):
        """Each client's runs.  They take turns, and a round begins with another one, so
        that what else the machine does meets all alike."""
        runs = {tool: [] for tool, _ in clients}
        own = os.path.join(folder, "fetch")
        for i in range(self.opt.repeat):
            at = i % max(1, len(clients))
            for tool, command in clients[at:] + clients[:at]:
                if len(runs.get(tool, [])) < i:
                    continue  # it has failed, or is out of the running
                dest = own if "fetch" in tool else os.path.join(folder, "other")
                try:
                    row = self.run(tool, [a.replace("DEST", dest) for a in command],
                                   server, dest)
                    if i == 0:
                        self.check(dest, name, own if os.path.exists(own) else None)
                except (RuntimeError, OSError) as e:
                    print(f"{tool:22}failed: {e}", flush=True)
                    del runs[tool]
                    continue
                runs[tool].append(row)
                if dest != own:  # their files do not fill the disk for others
                    shutil.rmtree(dest)
            clients = [c for c in clients if i > 0 or not self.is_slow(c[0], runs)]
        return runs

    @staticmethod
    def is_slow(tool, runs):
        own, it = runs.get("draft-fetch"), runs.get(tool)
        return "fetch" not in tool and own and it and all(
            it[0][i] > 2 * own[0][i] for i in (0, 3))

    def case(self, scheme, name, place, folder):
        count, size = SETS[name]
        load = os.getloadavg()[0]
        print(f"\n{count} x {size >> 10} KiB, {scheme}, to {place}   # load {load:.1f}")
        print(f"{'client':22}" + "".join(f"{c:>8}" for c in COLUMNS), flush=True)
        server, url = self.serve(scheme)
        try:
            runs = self.rounds(list(self.clients(url, name, scheme)), server, name, folder)
        finally:
            server.kill()
            server.wait()
            shutil.rmtree(os.path.join(folder, "fetch"), ignore_errors=True)
            shutil.rmtree(os.path.join(folder, "other"), ignore_errors=True)
        rows = {tool: tuple(map(statistics.median, zip(*r))) for tool, r in runs.items()}
        for tool, row in rows.items():
            self.keep(name, scheme, place, tool, len(runs[tool]), row, load)
            print(f"{tool:22}" + "".join(f"{100 * v:7.0f}%" if c == "busy" else f"{v:8.2f}"
                                         for c, v in zip(COLUMNS, row)), flush=True)
        self.judge(rows)

    @staticmethod
    def judge(rows):
        others = [row for tool, row in rows.items() if "fetch" not in tool]
        if "draft-fetch" not in rows or not others:
            return
        fastest = min(rows.values())
        column = "wall" if fastest[4] <= 1 / 1.5 else "cpu"
        print(f"the server is {1 / fastest[4]:.1f} times as fast as the fastest client: "
              f"{column} decides; ahead of the best other one are")
        for tool, own in rows.items():
            if "fetch" in tool:
                print(f"    {tool}: " + ", ".join(
                    f"{min(row[i] for row in others) / own[i]:.2f} in {c}"
                    for i, c in enumerate(COLUMNS) if c in ("wall", "cpu", "durable")),
                      flush=True)

    # ---- the file of results ----

    def keep(self, name, scheme, place, tool, n, row, load):
        if not self.opt.tsv:
            return
        new = not os.path.exists(self.opt.tsv)
        with open(self.opt.tsv, "a", encoding="ascii") as f:
            if new:
                print("set", "scheme", "to", "client", "runs", *COLUMNS, "load", sep="\t",
                      file=f)
            print(name, scheme, place, tool, n, *(f"{v:.3f}" for v in row), f"{load:.1f}",
                  sep="\t", file=f)

    def have(self, name, scheme, place):
        """Is a case in the file?  All its rows come at once."""
        if not self.opt.tsv or not os.path.exists(self.opt.tsv):
            return False
        with open(self.opt.tsv, encoding="ascii") as f:
            return any(line.split("\t")[:3] == [name, scheme, place] for line in f)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("build")
    p.add_argument("--sets", default=",".join(SETS))
    p.add_argument("--schemes", default="http,https")
    p.add_argument("--to", default="tmpfs,disk")
    p.add_argument("--tools")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--disk", default="build", help="a folder on the disk")
    p.add_argument("--tsv", help="a file that keeps the rows")
    opt = p.parse_args()
    places = {"tmpfs": "/dev/shm", "disk": opt.disk}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(opt, work)
        for scheme in opt.schemes.split(","):
            for name in opt.sets.split(","):
                for place in opt.to.split(","):
                    if bench.have(name, scheme, place):
                        continue
                    with tempfile.TemporaryDirectory(dir=places[place]) as folder:
                        bench.case(scheme, name, place, folder)


if __name__ == "__main__":
    main()
