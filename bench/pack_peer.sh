#!/usr/bin/env bash
# pack_peer.sh - draft-pack beside datasets and trl (PyPI): a saved data set into rows.
#
#   bench/pack_peer.sh BUILD [MILLIONS]     BUILD: a folder such as build/cc-release-cpu
#
# MILLIONS (60) of tokens of log-normal documents, int64 ids and masks as torch leaves
# them, saved by datasets on tmpfs; each packs them to rows of 8192 on tmpfs, one thread.
# Processor time and time on the clock; what trl drops (tails of long documents) counts
# as density that it does not have.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1 tokens=${2:-60}
python=build/trl/bin/python
if [ ! -e build/trl/ready ]; then
    rm -rf build/trl
    python3 -m venv build/trl
    # --no-deps: trl asks for torch, its packing does not
    $python -m pip -q --disable-pip-version-check install numpy==2.2.6 transformers==4.57.1 \
        jinja2==3.1.6 pyarrow==22.0.0 dill==0.4.0 xxhash multiprocess==0.70.18 pandas httpx
    $python -m pip -q --disable-pip-version-check install --no-deps trl==0.24.0 datasets==4.4.1
    touch build/trl/ready
fi
dir=$(mktemp -d /dev/shm/pack-peer.XXXXXX)
trap 'rm -rf "$dir"' EXIT
export HF_HOME=$dir/cache OMP_NUM_THREADS=1 ARROW_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error
$python bench/pack_peer.py make "$dir/saved" "$tokens"
du -sm "$dir/saved" | cut -f 1 | sed 's/$/ MiB of Arrow/'
$python bench/pack_peer.py lines "$dir/saved" "$dir/lines.jsonl"
for input in saved saved lines.jsonl lines.jsonl; do
    "$build/bin/draft-pack" "$dir/$input" -o "$dir/rows" --vocab 151936 -j 1 2>&1 |
        grep -E 'full$|processor' | sed "s/^draft-pack/$input/"
    rm -rf "$dir/rows"
done
for run in 1 2 3; do
    $python bench/pack_peer.py pack "$dir/saved" "$dir/rows.$run" 2>&1 | grep trl
    rm -rf "$dir/rows.$run" "$dir"/saved/cache-*
done
