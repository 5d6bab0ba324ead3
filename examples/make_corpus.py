#!/usr/bin/env python3
"""Writes the text that the example target learns from.

  python3 make_corpus.py OUT [--docs 200000] [--jobs 16] [--seed 1] [--jargon FILE]

OUT receives train-NN.jsonl, one a job, and valid.jsonl; a line is one document,
{"topic": ..., "text": ...}.  A document states one to four problems and then solves
them in turn, so that the work follows from what its first lines say.  With --jargon
(jargon.dict.dz of the Debian package dict-jargon, public domain) three documents
in a hundred are prose, entries of the Jargon File.  The same seed and number of jobs
write the same files.
"""
import argparse
import gzip
import json
import multiprocessing
import pathlib
import random
import re
import sys

import problems
import problems_rg

# How often each kind of problem is drawn; what is not named here has weight 1.
WEIGHTS = {"stock": 2, "sharing": 1.5, "delivery": 1.5}
CRUDE = re.compile(r"fuck|shit|crap|sex|piss|cunt|bitch|nazi|damn|bastard|\bass\b|rape",
                   re.I)
HEADS = [("Problem {}: ", "Solution {}: "), ("Question {}. ", "Answer {}. "),
         ("Task {}: ", "Task {}, worked out: "), ("({}) ", "Work for ({}): ")]


def topics():
    """Name and function of every kind of problem."""
    helpers = {"steps", "listing", "draw"}
    return {name: f for m in (problems, problems_rg) for name, f in vars(m).items()
            if callable(f) and getattr(f, "__module__", "") == m.__name__
            and name not in helpers}


def worksheet(r, kinds, weights):
    """Questions first, then their solutions in the same order."""
    want, asked, solved, names = r.randint(600, 1300), [], [], []
    while sum(map(len, solved)) < want and len(asked) < 4:
        name = r.choices(list(kinds), weights)[0]
        question, solution = kinds[name](r)
        if asked and sum(map(len, asked)) + len(question) > 330:
            break
        asked.append(question), solved.append(solution), names.append(name)
    ask, solve = r.choice(HEADS)
    labels = r.choice(["1234", "ABCD"])
    text = "\n".join(ask.format(c) + q for c, q in zip(labels, asked)) + "\n\n"
    text += "\n\n".join(solve.format(c) + s for c, s in zip(labels, solved))
    return names[0], text


def jargon_entries(path):
    """Entries of the Jargon File as paragraphs on one line each."""
    raw = gzip.open(path, "rt", encoding="utf-8").read()
    entries, current = [], []
    for line in raw.split("\n"):
        if line and not line[0].isspace() and current and current[-1] == "":
            entries.append(current)
            current = []
        current.append(line.strip())
    out = []
    for lines in entries[8:]:                       # the first ones are the preface
        text = "\n".join(lines).strip()
        text = re.sub(r"[{}]", "", re.sub(r"(?<!\n)\n(?!\n)", " ", text))
        text = re.sub(r"\n{2,}", "\n", re.sub(r" +", " ", text))
        if 150 < len(text) < 2500 and not CRUDE.search(text):
            out.append(text)
    return out


def prose(r, entries):
    """A few entries in a row, cut at a sentence when they grow too long."""
    i, text = r.randrange(len(entries)), ""
    while len(text) < 700:
        text += entries[i % len(entries)] + "\n\n"
        i += 1
    if len(text) > 2000:
        text = text[:2000].rsplit(". ", 1)[0] + "."
    return "prose", text.strip()


def write(job):
    path, seed, count, entries = job
    r, kinds = random.Random(seed), topics()
    weights = [WEIGHTS.get(k, 1) for k in kinds]
    with open(path, "w", encoding="utf-8") as f:
        for _ in range(count):
            if entries and r.random() < 0.03:
                topic, text = prose(r, entries)
            else:
                topic, text = worksheet(r, kinds, weights)
            line = json.dumps({"topic": topic, "text": text}, ensure_ascii=False)
            f.write(line + "\n")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("out", type=pathlib.Path)
    p.add_argument("--docs", type=int, default=200000)
    p.add_argument("--jobs", type=int, default=16)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--jargon", help="jargon.dict.dz of the Debian package dict-jargon")
    a = p.parse_args()
    a.out.mkdir(parents=True, exist_ok=True)
    entries = jargon_entries(a.jargon) if a.jargon else []
    held = entries[::20]
    kept = [e for i, e in enumerate(entries) if i % 20]
    jobs = [(a.out / f"train-{j:02}.jsonl", f"{a.seed} train {j}", a.docs // a.jobs,
             kept) for j in range(a.jobs)]
    jobs.append((a.out / "valid.jsonl", f"{a.seed} valid", 4000, held))
    with multiprocessing.Pool(min(a.jobs, multiprocessing.cpu_count())) as pool:
        for _ in pool.imap_unordered(write, jobs, chunksize=1):
            print(".", end="", file=sys.stderr, flush=True)
    print(f" {a.out}: {a.docs} documents", file=sys.stderr)


if __name__ == "__main__":
    main()
