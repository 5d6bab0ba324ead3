#!/usr/bin/env python3
# make_data.py FOLDER - the same documents in every format that draft-pack reads,
# written by the libraries whose formats they are.  How tests/golden/data came about:
#
#   python3 -m venv v && v/bin/pip install numpy==2.2.6 megatron-core==0.16.1 \
#       mosaicml-streaming==0.10.0 webdataset==1.0.2
#   v/bin/python tests/golden/make_data.py tests/golden/data
#
# documents.jsonl is what the others are compared with.  No id of a document is 0 but the
# last of each: so 0 can be the separator of the formats that know no documents.
import io
import json
import shutil
import sys
import tarfile
import warnings
from pathlib import Path

warnings.simplefilter("ignore")
import numpy as np
import torch
import webdataset
from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
from streaming import MDSWriter

to = Path(sys.argv[1])
r = np.random.default_rng(7)
docs = []
for i in range(14):
    n = int(r.integers(2, 40))
    ids = np.append(r.integers(1, 300, n - 1), 0)
    docs.append((ids, (r.random(n) < 0.6).astype(np.int64)))


def fresh(name):
    path = to / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


to.mkdir(exist_ok=True)
with open(to / "documents.jsonl", "w") as f:
    for ids, mask in docs:
        f.write(json.dumps({"input_ids": ids.tolist(), "loss_mask": mask.tolist()}) + "\n")

# numpy: a vector, a matrix, headers of all versions, and numbers alone
d = fresh("npy")
flat = np.concatenate([ids for ids, _ in docs])
np.save(d / "vector.npy", flat.astype(np.int64))
np.save(d / "matrix.npy", flat[: len(flat) // 10 * 10].reshape(-1, 10).astype(np.uint16))
for version in ((1, 0), (2, 0), (3, 0)):
    with open(d / f"version{version[0]}.npy", "wb") as f:
        np.lib.format.write_array(f, flat.astype(np.int32), version)
flat.astype("<u2").tofile(d / "plain.u16")
for name, array in {
    "big-endian": flat.astype(">i4"),
    "fortran": np.asfortranarray(flat[:20].reshape(4, 5)),
    "floats": flat.astype(np.float32),
    "cube": flat[:24].reshape(2, 3, 4),
    "scalar": np.int64(3),
    "fields": np.zeros(3, [("a", "i4"), ("b", "i4")]),
}.items():
    np.save(d / f"odd-{name}.npy", array)

# Megatron-LM: every type of whole numbers; documents of one to three sequences
d = fresh("megatron")
for dtype in (np.uint8, np.int8, np.int16, np.int32, np.int64, np.uint16):
    name = np.dtype(dtype).name
    b = IndexedDatasetBuilder(str(d / f"{name}.bin"), dtype=dtype)
    for i, (ids, _) in enumerate(docs):
        fits = np.minimum(ids, np.iinfo(dtype).max)
        for part in np.array_split(fits, min(1 + i % 3, len(fits))):
            b.add_item(torch.tensor(part))
        b.end_document()
    b.finalize(str(d / f"{name}.idx"))

# MosaicML: encodings with and without type and shape, several shards, compressed
kinds = {
    "static": ({"input_ids": "ndarray:int32", "loss_mask": "ndarray:uint8"}, None),
    "dynamic": ({"input_ids": "ndarray", "loss_mask": "ndarray", "id": "str", "n": "int"}, None),
    "bytes": ({"tokens": "bytes", "loss_mask": "bytes"}, None),
    "labels": ({"input_ids": "ndarray:int64", "labels": "ndarray:int64"}, "zstd:7"),
    "gzip": ({"input_ids": "ndarray:uint16", "loss_mask": "ndarray:int8"}, "gz"),
}
for name, (columns, compression) in kinds.items():
    d = fresh(f"mds-{name}")
    with MDSWriter(out=str(d), columns=columns, compression=compression, size_limit=2500) as w:
        for i, (ids, mask) in enumerate(docs):
            sample = {}
            for column, encoding in columns.items():
                value = {
                    "input_ids": ids, "tokens": ids, "loss_mask": mask,
                    "labels": np.where(mask, ids, -100), "id": f"document {i}", "n": i,
                }[column]
                if encoding == "bytes":
                    value = value.astype(np.int64).tobytes()
                elif encoding.startswith("ndarray:"):
                    value = value.astype(encoding[8:])
                elif encoding == "ndarray" and i % 2:
                    value = value.astype(np.int32)
                sample[column] = value
            w.write(sample)
d = fresh("mds-shaped")
with MDSWriter(out=str(d), columns={"input_ids": "ndarray:uint16:10"}, size_limit=300) as w:
    for row in flat[: len(flat) // 10 * 10].reshape(-1, 10):
        w.write({"input_ids": row.astype(np.uint16)})

# WebDataset: arrays, and JSON; then a tar of other members among them
d = fresh("tar")
with webdataset.TarWriter(str(d / "arrays.tgz"), mtime=0) as w:
    for i, (ids, mask) in enumerate(docs):
        w.write({"__key__": f"{i:04d}", "input_ids.npy": ids.astype(np.int32),
                 "loss_mask.npy": mask.astype(bool), "txt": "text"})
with webdataset.TarWriter(str(d / "json.tar.gz"), mtime=0) as w:
    for i, (ids, mask) in enumerate(docs):
        w.write({"__key__": f"a/b/{i}", "json": {"input_ids": ids.tolist(),
                                                 "labels": np.where(mask, ids, -100).tolist()}})


def member(tar, name, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in more.items():
        setattr(info, key, value)
    tar.addfile(info, io.BytesIO(data))


line = b'{"input_ids": [1, 2, 3]}'
with tarfile.open(d / "odd.tar", "w", format=tarfile.PAX_FORMAT) as tar:
    member(tar, "data/", type=tarfile.DIRTYPE)
    member(tar, "data/0.json", line)
    member(tar, "/etc/evil.json", line)
    member(tar, "../../evil.json", line)
    member(tar, "data/../../evil2.json", line)
    member(tar, "link.json", type=tarfile.SYMTYPE, linkname="/etc/passwd")
    member(tar, "hard.json", type=tarfile.LNKTYPE, linkname="data/0.json")
    member(tar, "device.json", type=tarfile.CHRTYPE)
    member(tar, "README", b"read me")
    member(tar, "notes.txt", b"no ids")
    member(tar, "data/._x.json", line)
    member(tar, "..dots.json", line)
    member(tar, "l" * 200 + "/\u00e9.json", line)
    member(tar, "bad.json", b"{")
    member(tar, "matrix.npy", (to / "npy/matrix.npy").read_bytes())
    member(tar, "data/9.json", line)
