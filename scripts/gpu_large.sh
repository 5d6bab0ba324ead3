#!/bin/sh
# gpu_large.sh - the 1704.0M drafter on a GPU: the same bits twice, and after a kill.
#
#   scripts/gpu_large.sh BIN DIR      BIN: folder of the programs of a CUDA build, DIR:
#                                     where 80 GB are free, best in memory
#
# Where draft-pack cannot run, DIR/packed is brought along: the tokens are the same
# everywhere (random_target.py --tokens-only).  SIZE holds options of random_target.py,
# DEVICE another device: to try the script.
#
# A target of random weights with the widths of Qwen3.6-27B, six rows of random tokens,
# hidden states of four layers, and five steps of 512 anchors over 8192 tokens: a run, a
# second one, and one that is killed behind its checkpoint of step 3 and goes on.  Ends
# with 1 unless weights and state are equal, byte for byte.
set -eu
cd "$(dirname "$0")/.."
bin=${1:?usage: gpu_large.sh BIN DIR} dir=${2:?usage: gpu_large.sh BIN DIR}
DEVICE=${DEVICE:-cuda}
# shellcheck disable=SC2086  # SIZE are words
[ -f "$dir/target/model.safetensors.index.json" ] ||
    bench/random_target.py "$dir/target" ${SIZE:-}
words=$(sed 's/.*"vocab_size": \([0-9]*\).*/\1/' "$dir/target/config.json")
[ -f "$dir/packed/packed-end.safetensors" ] ||
    "$bin/draft-pack" -q "$dir/target/tokens.jsonl" -m "$dir/target" -o "$dir/packed"
"$bin/draft-extract" -q -d "$DEVICE" "$dir/packed" -m "$dir/target" --taps 1,2,3,4 \
    -o "$dir/hidden"

# train RUN OPTION...: becomes a run of five steps
train() {
    run=$1
    shift
    exec "$bin/draft-train" "$dir/hidden" -m "$dir/target" -d "$DEVICE" -o "$dir/$run" \
        --mask-id $((words - 1)) --steps 5 --save-every 3 --keep 1 -s 1 "$@"
}
last=step-00000005 wrong=0
# same RUN: its checkpoint is that of the first run
same() {
    for file in model.safetensors state.safetensors; do
        if cmp "$dir/once/$last/$file" "$dir/$1/$last/$file"; then
            echo "$1: $file equal, $(wc -c <"$dir/once/$last/$file") bytes"
        else
            wrong=1
        fi
    done
    rm -rf "${dir:?}/$1"
}

(train once)
(train twice -q)
same twice
train killed -q &
child=$!
trap 'kill -9 $child 2>/dev/null' EXIT
until [ -d "$dir/killed/step-00000003" ]; do
    kill -0 $child || { echo "gpu_large.sh: ended before its checkpoint" >&2; exit 1; }
    sleep 0.02
done
kill -9 $child
wait $child 2>/dev/null || true
trap - EXIT
[ ! -d "$dir/killed/$last" ] || { echo "gpu_large.sh: killed too late" >&2; wrong=1; }
(train killed -q)
same killed
exit $wrong
