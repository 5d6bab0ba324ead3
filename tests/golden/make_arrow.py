#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_arrow.py - writes golden/arrow: small Arrow files and what they hold.

    pip install datasets==5.2.0 pyarrow==26.0.1 && python3 make_arrow.py

saved/ and dict/ are written by datasets.save_to_disk, the others by pyarrow.  Beside
each file NAME.arrow stands NAME.jsonl with the same rows, a null list left out: read
through either, they must be the same documents.  The same versions write the same
bytes.
"""
import json
import pathlib
import shutil
import struct

import datasets
import pyarrow as pa

datasets.disable_progress_bars()
HERE = pathlib.Path(__file__).parent / "arrow"
VOCAB = 1000


def rows(n, most=100, columns=("loss_mask",)):
    """Rows of 0 to 12 ids below `most`, and what is supervised of them."""
    out = []
    for i in range(n):
        size = (i * 5 + 3) % 13
        row = {"input_ids": [(i * 31 + t * 7) % most for t in range(size)]}
        for c in columns:
            bits = [int((i + t) % 3 > 0) for t in range(size)]
            row[c] = bits if c != "labels" else [
                x if b else -100 for x, b in zip(row["input_ids"], bits)]
        out.append(row)
    return out


def expect(name, data):
    with open(HERE / f"{name}.jsonl", "w") as f:
        for row in data:
            keep = {k: v for k, v in row.items() if v is not None}
            f.write(json.dumps(keep, separators=(",", ":")) + "\n")


def column(data, name, kind):
    values = [row.get(name) for row in data]
    if pa.types.is_boolean(kind.value_type):
        values = [v and [bool(x) for x in v] for v in values]
    return pa.array(values, kind)


def table(data, ids, **more):
    """Columns of input_ids and `more`, name=type."""
    kinds = {"input_ids": ids, **more}
    return pa.table({k: column(data, k, t) for k, t in kinds.items()})


def write(name, t, data, file=False, size=None, **options):
    options = pa.ipc.IpcWriteOptions(**options)
    new = pa.ipc.new_file if file else pa.ipc.new_stream
    with pa.OSFile(str(HERE / f"{name}.arrow"), "wb") as f:
        with new(f, t.schema, options=options) as w:
            w.write_table(t, max_chunksize=size)
    if data is not None:
        expect(name, data)


def widths():
    data = rows(20)
    for kind in ("int8", "int16", "int32", "int64",
                 "uint8", "uint16", "uint32", "uint64"):
        t = getattr(pa, kind)()
        write(kind, table(data, pa.list_(t), loss_mask=pa.list_(t)), data)
    write("bool", table(data, pa.large_list(pa.int32()),
                        loss_mask=pa.list_(pa.bool_())), data)
    labelled = rows(20, columns=("labels", "attention_mask"))
    for row in labelled:
        row["attention_mask"] = [1] * len(row["input_ids"])
    labelled[4]["attention_mask"] = labelled[4]["attention_mask"][:-1] + [0]
    labelled[7]["labels"][0] = 5
    write("labels", table(labelled, pa.list_(pa.int64()), labels=pa.list_(pa.int32()),
                          attention_mask=pa.list_(pa.int8())), labelled)
    # behind the null, bits begin inside of a byte
    fixed = [{"input_ids": list(range(i, i + 5)), "assistant_masks": [1, 0, 1, 1, 0]}
             for i in range(9)]
    fixed[3] = {"input_ids": list(range(5)), "assistant_masks": None}
    write("fixed", table(fixed, pa.list_(pa.uint16(), 5),
                         assistant_masks=pa.list_(pa.bool_(), 5)), fixed)


def nulls_and_refusals():
    data = rows(24, columns=("loss_mask", "assistant_mask"))
    for row in data:
        row["assistant_mask"] = [1] * len(row["input_ids"])
    data[1]["loss_mask"] = None  # the next mask counts
    data[13]["loss_mask"] = data[13]["assistant_mask"] = None  # all is supervised
    data[3]["input_ids"] = None
    data[5]["input_ids"][1] = None
    data[6]["loss_mask"][0] = None
    data[7]["loss_mask"][0] = 2
    data[9]["loss_mask"] = data[9]["loss_mask"][:-1]
    data[10]["input_ids"][0] = -1
    data[11]["input_ids"][2] = VOCAB
    data[12]["input_ids"][0] = 1 << 40
    data[14]["loss_mask"][0] = -(1 << 40)
    data[16]["loss_mask"] = [None] * len(data[16]["input_ids"])
    list64 = pa.list_(pa.int64())
    t = table(data, list64, loss_mask=list64, assistant_mask=pa.list_(pa.int8()))
    write("nulls", t, data)
    write("sliced", t.slice(4, 13), data[4:17])
    write("zstd-nulls", t, data, compression="zstd")
    big = rows(6)
    big[0]["input_ids"][0] = (1 << 64) - 100
    big[4]["loss_mask"][0] = 1 << 63
    write("huge", table(big, pa.list_(pa.uint64()), loss_mask=pa.list_(pa.uint64())),
          big)


def forms():
    data = rows(40)
    list64 = pa.list_(pa.int64())
    t = table(data, list64, loss_mask=list64)
    write("file", t, data, file=True)
    write("file-zstd", t, data, file=True, compression="zstd")
    write("zstd", t, data, compression="zstd")
    write("lz4", t, data, compression="lz4")
    write("batches", t, data, size=7)
    write("file-batches", t, data, file=True, size=9)
    write("v4", t, data, metadata_version=pa.ipc.MetadataVersion.V4)
    write("empty", t.slice(0, 0), [])
    write("large", table(data, pa.large_list(pa.int64()),
                         loss_mask=pa.large_list(pa.uint8())), data)
    # A buffer that compression would not shrink may stand as it is, behind a -1.
    tiny = [{"input_ids": [7], "loss_mask": [1]}]
    write("zstd-raw", table(tiny, pa.list_(pa.int8()), loss_mask=pa.list_(pa.int8())),
          tiny, compression="zstd")
    path = HERE / "zstd-raw.arrow"
    packed, plain = struct.pack("<q", 1) + b"\x28\xb5\x2f\xfd", struct.pack("<q", -1)
    assert path.read_bytes().count(packed) == 2  # ids and mask
    with_ids = path.read_bytes().replace(packed, plain + b"\7\0\0\0", 1)
    path.write_bytes(with_ids.replace(packed, plain + b"\1\0\0\0", 1))
    one, two = (HERE / f"{n}.arrow" for n in ("int16", "lz4"))
    (HERE / "two.arrow").write_bytes(one.read_bytes() + two.read_bytes())
    expect("two", rows(20) + data)


def other_columns():
    """Columns of every kind before, between and behind ours."""
    data = rows(10)
    texts = [f"text of record {i}, long enough for a view" for i in range(10)]
    ids = column(data, "input_ids", pa.list_(pa.int32()))
    mask = column(data, "loss_mask", pa.list_(pa.int8()))
    ints = pa.array(range(10))
    kinds = pa.array([0, 1] * 5, pa.int8())
    offsets = pa.array([i // 2 for i in range(10)], pa.int32())
    turns = [[{"role": "user", "content": t}] for t in texts]
    t = pa.table({
        "null": pa.nulls(10),
        "text": pa.array(texts),
        "view": pa.array(texts, pa.string_view()),
        "bytes": pa.array([b"x"] * 10, pa.binary_view()),
        "flag": pa.array([True, None] * 5),
        "messages": pa.array(turns),
        "input_ids": ids,
        "large": pa.array(texts, pa.large_string()),
        "words": pa.array(texts).dictionary_encode(),
        "sparse": pa.UnionArray.from_sparse(kinds, [ints, pa.array(texts)]),
        "dense": pa.UnionArray.from_dense(kinds, offsets, [ints, pa.array(texts)]),
        "map": pa.array([[("a", 1)]] * 10, pa.map_(pa.string(), pa.int64())),
        "runs": pa.RunEndEncodedArray.from_arrays(pa.array([4, 10], pa.int32()),
                                                  pa.array(["a", "b"])),
        "list_view": pa.array([[1]] * 10, pa.list_view(pa.int64())),
        "fixed": pa.array([[1.5, 2.5]] * 10, pa.list_(pa.float32(), 2)),
        "decimal": pa.array([1] * 10).cast(pa.decimal128(20)),
        "time": pa.array(range(10), pa.timestamp("us")),
        "hash": pa.array([b"1234"] * 10, pa.binary(4)),
        "assistant_mask": pa.nulls(10),
        "loss_mask": mask,
        "seq_len": ints,
    })
    write("others", t, data)


def not_ours():
    """What the reader must refuse: no rows are expected."""
    data = rows(5)
    for name, kind in (("float", pa.list_(pa.float32())), ("flat", pa.int64()),
                       ("nested", pa.list_(pa.list_(pa.int64())))):
        values = [r["input_ids"] for r in data]
        if name == "flat":
            values = list(range(5))
        elif name == "nested":
            values = [[v] for v in values]
        write(f"not-{name}", pa.table({"input_ids": pa.array(values, kind)}), None)
    write("not-tokens", pa.table({"text": ["a"], "messages": ["b"]}), None)
    keys = pa.array([[1, 2]] * 3, pa.list_(pa.int64()))
    write("not-mask", pa.table({"input_ids": keys, "labels": pa.array([1, 2, 3])}), None)


def damage():
    """One small file in which tests find a number by its value and change it."""
    data = rows(97, most=90)
    t = table(data, pa.list_(pa.int32()), loss_mask=pa.large_list(pa.int8()))
    write("plain", t, data)


def large():
    """More than fits into a block, and a record that is more than a block; what is in
    it is for tests to compute, its text would be long."""
    sizes = [(i * 9973) % 20011 for i in range(40)]
    sizes[20] = 100000
    ids = [[(i * 31 + t * 7) % 100 for t in range(n)] for i, n in enumerate(sizes)]
    mask = [[t // 3 % 2 for t in range(n)] for n in sizes]
    kind = pa.list_(pa.int64())
    t = pa.table({"input_ids": pa.array(ids, kind), "loss_mask": pa.array(mask, kind)})
    write("long", t, None, compression=pa.Codec("zstd", compression_level=19))


def saved():
    data = rows(30, most=VOCAB)
    for i, row in enumerate(data):
        row["text"] = f"record {i}"
        row["seq_len"] = len(row["input_ids"])
    ds = datasets.Dataset.from_list(data)
    ds.save_to_disk(HERE / "saved", num_shards=3)
    expect("saved", data)
    split = datasets.DatasetDict({"train": ds.select(range(20)),
                                  "test": ds.select(range(20, 30))})
    split.save_to_disk(HERE / "dict")
    expect("dict", data[:20])
    expect("dict-test", data[20:])


if __name__ == "__main__":
    shutil.rmtree(HERE, ignore_errors=True)
    HERE.mkdir()
    for make in (widths, nulls_and_refusals, forms, other_columns, not_ours, damage,
                 large, saved):
        make()
