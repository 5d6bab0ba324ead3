"""Lengths on stdin, one a line, through seqpacker in windows; see binpack_peer.sh."""

import sys
import time

import numpy
from seqpacker import Packer

ROW = 8192
drawn = numpy.array(sys.stdin.read().split(), dtype=numpy.int64)
full, rest = numpy.divmod(drawn, ROW)  # what is longer than a row is split
lengths = numpy.concatenate(
    [numpy.append(numpy.full(f, ROW), r) if f else [r] for f, r in zip(full, rest)]
)
lengths = lengths[lengths > 0]
for strategy in "obfd", "bfd", "ffd":
    packer = Packer(capacity=ROW, strategy=strategy)
    for window in 1024, 16384:
        best, rows = 1e9, 0
        part = lengths[: max(window, 262144)]
        for _ in range(3):
            rows, begun = 0, time.process_time()
            for at in range(0, len(part), window):
                _, offsets = packer.pack_flat(part[at : at + window])
                rows += len(offsets) + 1
            best = min(best, time.process_time() - begun)
        print(
            f"mean {sys.argv[1]:>5}  window {window:8}  {strategy:5}  "
            f"density {100 * part.sum() / (rows * ROW):8.4f} %  {len(part) / best / 1e6:7.1f} M/s"
        )
