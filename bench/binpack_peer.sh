#!/usr/bin/env bash
# binpack_peer.sh - binpack beside seqpacker (PyPI), on the same lengths, one thread each.
#
#   bench/binpack_peer.sh BUILD     BUILD: a folder such as build/cc-release-cpu
#
# Processor time, the best of several runs; seqpacker's strategies that are at least as
# dense as ours, through pack_flat, which gives plain arrays as binpack does.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
venv=build/seqpacker
if [ ! -e $venv/ready ]; then
    rm -rf $venv
    python3 -m venv $venv
    $venv/bin/pip -q --disable-pip-version-check install numpy==2.2.6
    # Its one wheel for this kind of machine is the stable ABI (Python 3.9 on) by content
    # and "cp38" by name: take it by that name and give it the right one.
    $venv/bin/pip -q --disable-pip-version-check install --no-deps --only-binary :all: \
        --python-version 3.8 --ignore-requires-python --target $venv/lib/at seqpacker==0.1.3
    mv $venv/lib/at/seqpacker/_core.cpython-38-*.so $venv/lib/at/seqpacker/_core.abi3.so
    touch $venv/ready
fi
make -s "$build/bench/bench_binpack" "$build/bench/make_docs"
echo "# binpack"
"$build/bench/bench_binpack"
echo "# seqpacker 0.1.3"
for mean in 1000 4000; do
    "$build/bench/make_docs" $mean 300M 1 lengths |
        RAYON_NUM_THREADS=1 PYTHONPATH=$venv/lib/at $venv/bin/python bench/binpack_peer.py $mean
done
