#!/usr/bin/env bash
# faults.sh - every durable step of every stage fails once, and nothing is lost.
#
#   scripts/faults.sh BUILD [STRIDE]
#
# Runs the micro pipeline once undisturbed.  Then, stage by stage, a preloaded library
# (tests/faults.c) makes the n-th write, fsync or rename fail for n = 1, 1 + STRIDE, ...:
# by SIGKILL, by ENOSPC, by EIO.  A killed stage must end with 137, a failed one with 74
# and a message.  Run again without the fault it must end with 0 and leave output that
# equals the undisturbed one byte for byte.  STRIDE 1 is all of them (make test-faults);
# `make test` takes a sample.  Ends with 'N passed, N failed'.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:?usage: faults.sh BUILD [STRIDE]}
stride=${2:-1}
bin=$build/bin
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

lib=$build/faults.so
target=tests/golden/target-qwen3/model

# stage NAME OUT: runs one stage of the micro pipeline; inputs come from $work/ref.
stage() {
    local out=$2 ref=$work/ref
    case $1 in
    fetch) "$bin/draft-fetch" -q tests/micro/train.jsonl tests/micro/prompts.jsonl -o "$out/data" ;;
    pack) "$bin/draft-pack" -q -j 2 "$ref/data/train.jsonl" -m $target --length 256 \
        --valid 0.2 --valid-output "$out/packed-valid" -o "$out/packed" ;;
    extract) "$bin/draft-extract" -q -j 2 "$ref/packed" -m $target --taps 0,1,2 \
        -o "$out/hidden" ;;
    train) "$bin/draft-train" -q -j 2 "$ref/hidden" -m $target --layers 1 --inter 64 \
        --block 4 --mask-id 511 --anchors 8 --epochs 2 --save-every 2 --lr 0.003 \
        --log "$out/train.jsonl" -o "$out/drafter" ;;
    eval) "$bin/draft-eval" -q -j 2 tests/micro/prompts.jsonl -m $target --tokens 8 \
        --drafter "$ref/drafter/$(<"$ref/drafter/latest")" \
        --ids "$out/ids.jsonl" --rounds "$out/rounds.jsonl" -o "$out/report.json" ;;
    esac
}

# same REF OUT: equal bytes, but for the report, which holds times, and the manifest,
# which holds the copies' own.
same() {
    diff -r -x report.json -x .draft-fetch "$1" "$2"
}

# try STAGE N HOW WANT: one fault, then the run that mends it.
try() {
    local out=$work/out status log=$work/log
    rm -rf "$out"
    mkdir -p "$out"
    (FAULT_AT=$2 FAULT_HOW=$3 LD_PRELOAD=$lib stage "$1" "$out") >"$log" 2>&1
    status=$?
    if [ $status -ne "$4" ] && ! { [ $status -eq 0 ] && [ "$3" != kill ] && same "$work/only-$1" "$out" >/dev/null; }; then
        echo "draft-$1: step $2, $3: ended with $status, expected $4"; cat "$log"
        return 1
    fi
    if [ "$3" != kill ] && [ $status -ne 0 ] && [ ! -s "$log" ]; then
        echo "draft-$1: step $2, $3: no message"
        return 1
    fi
    if ! stage "$1" "$out" >"$log" 2>&1; then
        echo "draft-$1: step $2, $3: the run after it failed"; cat "$log"
        return 1
    fi
    if ! same "$work/only-$1" "$out" >"$log"; then
        echo "draft-$1: step $2, $3: other output than undisturbed:"; head -5 "$log"
        return 1
    fi
}

mkdir -p "$work/ref"
for s in fetch pack extract train eval; do
    mkdir -p "$work/only-$s"
    stage $s "$work/only-$s" || { echo "faults: draft-$s fails undisturbed"; exit 1; }
    cp -r "$work/only-$s/." "$work/ref/"
done

for s in fetch pack extract train eval; do
    mkdir -p "$work/count"
    (FAULT_COUNT=$work/n LD_PRELOAD=$lib stage $s "$work/count") >/dev/null 2>&1
    rm -rf "$work/count"
    steps=$(cat "$work/n")
    before=$failed
    for ((n = 1; n <= steps; n += stride)); do
        for how in kill:137 28:74 5:74; do
            if try $s $n ${how%:*} ${how#*:}; then
                passed=$((passed + 1))
            else
                failed=$((failed + 1))
            fi
        done
    done
    echo "draft-$s: $steps durable steps, every $stride tried, $((failed - before)) failed"
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
