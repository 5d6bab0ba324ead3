"""pack_model.py - what draft-pack promises, in Python, against what it does.

    pack_model.py DRAFT_PACK FIRST LAST      data sets FIRST .. LAST - 1

A data set is drawn from its number: files of records, good and bad, and how they are
packed.  The model says which pieces there must be and what the report must count; the
rows, read with safetensors, must hold exactly these, each once, whole, and traced to
its source.  Which side of validation a document is on is draft-pack's to draw, but all
pieces of equal documents are on one.
"""

import collections
import glob
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from safetensors import safe_open

VOCAB = 50


def draw(rng):
    """Files of records: (line, ids, mask), ids None where the line is bad: mask: its kind."""
    most, files = rng.choice([3, 20, 100, 300]), []
    for _ in range(rng.randint(1, 3)):
        records = []
        for _ in range(rng.choice([0, 1, 5, 40, 120])):
            n = rng.randint(1, most)
            ids = [rng.randrange(VOCAB) for _ in range(n)]
            share = rng.choice([0, 0.3, 0.9, 1])
            mask = [int(rng.random() < share) for _ in range(n)]
            if records and rng.random() < 0.2:  # one that was there, or nearly
                ids, mask = rng.choice(records)[1:]
                if ids is None:
                    ids, mask = [1], [1]
                mask = [1 - m for m in mask] if rng.random() < 0.2 else mask
            record = {"input_ids": ids, "loss_mask": mask}
            if rng.random() < 0.2:
                record = {"labels": [i if m else -100 for i, m in zip(ids, mask)], "input_ids": ids}
            if all(mask) and rng.random() < 0.5:
                record = {"input_ids": ids}
                if rng.random() < 0.5:
                    record["loss_mask"] = None
            bad = rng.random()
            if bad < 0.02:
                record, ids, mask = {"text": "x"}, None, "no_input_ids"
            elif bad < 0.04:
                record, ids, mask = {"input_ids": ids + [VOCAB]}, None, "id_out_of_vocabulary"
            elif bad < 0.06:
                record, ids, mask = (
                    {"input_ids": ids, "loss_mask": mask + [1]},
                    None,
                    "lengths_differ",
                )
            elif bad < 0.07:
                record, ids, mask = {"input_ids": []}, None, "empty"
            line = json.dumps(record, separators=rng.choice([(",", ":"), (", ", ": ")]))
            records.append((line[:-1], None, "syntax") if bad > 0.99 else (line, ids, mask))
        files.append(records)
    way = {
        "length": rng.choice([1, 7, 32, 100, 300]),
        "window": rng.choice([1, 3, 50, 16384]),
        "block": rng.choice([0, 1, 16]),
        "min-supervised": rng.choice([0, 0, 2, 5]),
        "long": rng.choice(["split", "split", "cut", "drop"]),
        "seed": rng.randrange(9),
        "valid": rng.choice([0, 0, 0.3]),
        "dedup": rng.random() < 0.3,
    }
    return files, way, rng.choice([1, 1, 1, 2, 3])


def promise(files, way, part, parts):
    """The pieces {(file, record, first): (ids, mask)} and the counts of the report."""
    pieces, seen, index, count = {}, set(), 0, collections.Counter()
    rejects, sizes = [], collections.Counter()
    for f, records in enumerate(files):
        for r, (line, ids, mask) in enumerate(records):
            index += 1
            if (index - 1) % parts != part:
                continue
            count["records"] += 1
            if ids is None:
                rejects.append((f"{f}.jsonl", r, mask))
                continue
            count["documents"] += 1
            count["document_tokens"] += len(ids)
            count["unmasked_documents"] += not re.search('labels|mask": ?\\[', line)
            sizes[len(ids).bit_length() - 1] += 1
            if way["dedup"] and (tuple(ids), tuple(mask)) in seen:
                count["duplicate_documents"] += 1
                count["duplicate_tokens"] += len(ids)
                continue
            seen.add((tuple(ids), tuple(mask)))
            length, end = way["length"], len(ids)
            if end > length and way["long"] != "split":
                end = length if way["long"] == "cut" else 0
                count["long_documents"] += 1
                count["long_tokens"] += len(ids) - end
            for first in range(0, end, length):
                part_ids, m = (
                    ids[first : min(first + length, end)],
                    mask[first : min(first + length, end)],
                )
                blind = min(way["block"], len(m)) if first else 0
                m = [0] * blind + m[blind:]
                if sum(m) < way["min-supervised"]:
                    count["unsupervised_pieces"] += 1
                    count["unsupervised_tokens"] += len(m)
                    continue
                pieces[f, r, first] = (part_ids, m)
                count["pieces"] += 1
                count["tokens"] += len(m)
                count["supervised_tokens"] += sum(m)
                count["anchors"] += sum(a & b for a, b in zip(m, m[1:]))
    return pieces, count, rejects, sizes


def rows_of(pattern):
    """Every row of a run, as its pieces [(source, ids, mask)]; padding is checked."""
    for path in sorted(glob.glob(pattern)):
        with safe_open(path, "np") as f:
            if not f.keys():
                continue
            source = f.get_tensor("source").tolist()
            columns = [f.get_tensor(k).tolist() for k in ("doc_ids", "input_ids", "loss_mask")]
        for docs, ids, mask in zip(*columns):
            row = collections.OrderedDict()
            for t, d in enumerate(docs):
                if d < 0:
                    assert not any(ids[t:]) and not any(mask[t:]) and set(docs[t:]) == {-1}
                    break
                assert d not in row or docs[t - 1] == d, "a document lies in two places"
                piece = row.setdefault(d, ([], []))
                piece[0].append(ids[t])
                piece[1].append(mask[t])
            assert row, "an empty row"
            yield [(tuple(source[d]), piece) for d, piece in row.items()]


def run(program, options, out, threads, report="report"):
    call = [program, *options, "-o", out, "-q", "-j", str(threads), "--report", report]
    return subprocess.run(
        call, capture_output=out == "-", check=False, stderr=None if out == "-" else subprocess.PIPE
    )


def compare(files, way, part, parts, report, rejected):
    pieces, count, rejects, sizes = promise(files, way, part, parts)
    name = f"packed-{part}-of-{parts}" if parts > 1 else "packed"
    found, side_of, total, lengths = {}, {}, collections.Counter(), collections.Counter()
    for side in ("train", "valid") if way["valid"] else ("train",):
        told, rows, tokens = report[side], 0, 0
        for row in rows_of(f"{side}/{name}-*.safetensors"):
            rows += 1
            for source, piece in row:
                assert source not in found, f"{source} is there twice"
                found[source] = piece
                tokens += len(piece[0])
                whole = tuple(files[source[0]][source[1]][1])
                assert side_of.setdefault(whole, side) == side, "a document is on both sides"
        assert told["rows"] == rows and told["tokens"] == tokens
        assert abs(told["density"] - (tokens / (rows * way["length"]) if rows else 0)) < 1e-12
        total.update({k: v for k, v in {**told, **told["dropped"]}.items() if k in COUNTS})
        lengths.update({s["from"].bit_length() - 1: s["documents"] for s in told["lengths"]})
    assert found == {
        k: tuple(map(list, v)) for k, v in pieces.items()
    }, "not the pieces that were promised"
    total["records"] = report["records"]
    assert {k: total[k] for k in COUNTS} == {k: count[k] for k in COUNTS}, (total, count)
    assert lengths == sizes and rejected == rejects
    assert report["rejects"] == collections.Counter(r[2] for r in rejects)


COUNTS = """records documents document_tokens unmasked_documents pieces tokens supervised_tokens anchors long_documents
            long_tokens unsupervised_pieces unsupervised_tokens duplicate_documents duplicate_tokens""".split()


def check(program, number):
    rng = random.Random(number)
    files, way, parts = draw(rng)
    for f, records in enumerate(files):
        with open(f"{f}.jsonl", "w", encoding="utf-8") as out:
            out.writelines(line + "\n" for line, _, _ in records)
    inputs = [f"{f}.jsonl" for f in range(len(files))]
    options = inputs + ["--vocab", str(VOCAB)] + (["--dedup"] if way["dedup"] else [])
    options += [
        w for k, v in way.items() if k not in ("dedup", "valid") for w in (f"--{k}", str(v))
    ]
    for part in range(parts):
        of = options + (["--part", f"{part}/{parts}"] if parts > 1 else [])
        sided = of + (
            ["--valid", str(way["valid"]), "--valid-output", "valid"] if way["valid"] else []
        )
        done = run(program, sided + ["--rejects", "rejects"], "train", rng.choice([1, 2, 8]))
        if done.returncode == 65 and b"nothing to pack" in done.stderr and parts == 1:
            pieces = promise(files, way, part, parts)[0]
            assert len({k[:2] for k in pieces}) < (
                12 if way["valid"] else 1
            ), "there was something to pack"
            continue
        assert done.returncode == 0, done.stderr
        with open("report", encoding="utf-8") as f, open("rejects", encoding="utf-8") as g:
            lines = [json.loads(line) for line in g]
            compare(
                files,
                way,
                part,
                parts,
                json.load(f),
                [(r["file"], r["record"], r["kind"]) for r in lines],
            )
        if number % 4 == 0 and not way["valid"]:  # the pipe, with other threads
            want = b""
            for path in sorted(
                glob.glob("train/packed-*" if parts == 1 else f"train/packed-{part}-of-*")
            ):
                with open(path, "rb") as f:
                    want += f.read()
            assert run(program, of, "-", rng.choice([1, 2, 8])).stdout == want, "the pipe differs"


def main():
    program, first, last = os.path.abspath(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    for number in range(first, last):
        with tempfile.TemporaryDirectory(
            dir="/dev/shm" if os.path.isdir("/dev/shm") else None
        ) as d:
            os.chdir(d)
            try:
                check(program, number)
            except BaseException:
                print(f"data set {number} is not packed as promised", file=sys.stderr)
                raise
            finally:
                os.chdir("/")
    print(f"{last - first} data sets are packed as promised")


main()
