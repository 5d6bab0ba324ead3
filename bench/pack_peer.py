"""The data and the other half of pack_peer.sh."""
import json
import sys
import time

import datasets
import numpy as np
import pyarrow as pa

ROW = 8192
datasets.disable_progress_bars()


def make(out, millions):
    rng, left, batches = np.random.default_rng(1), int(millions) * 1000000, []
    while left > 0:
        n = np.exp(np.log(1000) - 0.5 + rng.standard_normal(1000)).clip(1, 32768).astype(int)
        ends = pa.array(np.concatenate([[0], np.cumsum(n)]).astype(np.int32))
        ids = pa.array(rng.integers(0, 151936, n.sum()))
        mask = pa.array(np.arange(n.sum()) // 200 % 2)
        lists = [pa.ListArray.from_arrays(ends, values) for values in (ids, mask)]
        batches.append(pa.record_batch(lists, ["input_ids", "loss_mask"]))
        left -= n.sum()
    datasets.Dataset(pa.Table.from_batches(batches)).save_to_disk(out)


def lines(saved, out):
    with open(out, "w") as f:
        for row in datasets.load_from_disk(saved):
            f.write(json.dumps(row, separators=(",", ":")) + "\n")


def pack(saved, out):
    from trl.data_utils import pack_dataset

    begun, clock = time.process_time(), time.time()
    whole = datasets.load_from_disk(saved)
    packed = pack_dataset(whole, ROW, strategy="bfd")
    packed.save_to_disk(out)
    took, clock = time.process_time() - begun, time.time() - clock
    tokens = len(whole.data["input_ids"].combine_chunks().flatten())
    kept = len(packed.data["input_ids"].combine_chunks().flatten())
    print(f"trl bfd: {len(packed)} rows, {100 * kept / (len(packed) * ROW):.3f} % full, "
          f"{tokens - kept} of {tokens} tokens dropped; {clock:.1f} s, {took:.1f} s of processor")


{"make": make, "lines": lines, "pack": pack}[sys.argv[1]](*sys.argv[2:])
