#!/bin/sh
# pipeline.sh - a recipe from source to report, without make.
#
#   ./pipeline.sh [RECIPE [FIRST [LAST]]]
#
# RECIPE is recipes/demo.env unless named; FIRST and LAST are stages: fetch pack extract
# train eval, all of them unless named.  Each is one program; complete output is kept, so
# running it again continues where it stopped.  A stage that ends with 69 or 75 (service
# unavailable, try again) is tried three times; any other failure ends the pipeline with
# the stage's own status.  The piped form, with no hidden state on disk:
#
#   draft-pack DATA -o - | draft-extract - -m TARGET -o - | draft-train - -m TARGET ...
#
# BIN names the folder of the programs; DEVICE and THREADS go to those that compute.
set -eu
cd "$(dirname "$0")"
recipe=${1:-recipes/demo.env}
from=${2:-fetch}
to=${3:-eval}
[ -r "$recipe" ] || { echo "pipeline.sh: $recipe: no such recipe" >&2; exit 66; }
case $recipe in /*) ;; *) recipe=./$recipe ;; esac
# shellcheck disable=SC1090  # the recipe is the argument
. "$recipe"
BIN=${BIN:-build/$(basename "${CC:-cc}")-release-cpu/bin}
DEVICE=${DEVICE:-cpu}
THREADS=${THREADS:-0}

run() {
    tool=$1; shift
    tries=0
    while :; do
        status=0
        "$BIN/draft-$tool" -j "$THREADS" "$@" || status=$?
        tries=$((tries + 1))
        case $status in
        0) return 0 ;;
        69 | 75) [ $tries -lt 3 ] || exit $status ;;
        *) exit $status ;;
        esac
        echo "pipeline.sh: draft-$tool ended with $status: trying again" >&2
        sleep $((tries * 2))
    done
}

fetch() { run fetch "$SOURCE" -o "$OUT/data"; }

pack() {
    run pack "$OUT/data" -o "$OUT/packed" -m "$TARGET" --length "$LENGTH" \
        --seed "$SEED" --valid "$VALID" --valid-output "$OUT/packed-valid" \
        --report "$OUT/pack.json"
}

extract() {
    run extract "$OUT/packed" -m "$TARGET" --taps "$TAPS" -d "$DEVICE" -o "$OUT/hidden"
    run extract "$OUT/packed-valid" -m "$TARGET" --taps "$TAPS" -d "$DEVICE" \
        -o "$OUT/hidden-valid"
}

train() {
    run train "$OUT/hidden" -m "$TARGET" -d "$DEVICE" -o "$OUT/drafter" \
        --valid "$OUT/hidden-valid" --layers "$LAYERS" --inter "$INTER" \
        --block "$BLOCK" --mask-id "$MASK_ID" --anchors "$ANCHORS" --gamma "$GAMMA" \
        --lr "$LR" --warmup "$WARMUP" --epochs "$EPOCHS" --accumulate "$ACCUMULATE" \
        --seed "$SEED" --log "$OUT/train.jsonl"
}

evaluate() {
    run eval "$PROMPTS" -m "$TARGET" -d "$DEVICE" \
        --drafter "$OUT/drafter" --tokens "$TOKENS" --prompts "$N_PROMPTS" \
        -o "$OUT/report.json"
}

# The stages from the first to the last named, in order.
chosen=
for stage in fetch pack extract train eval; do
    [ -z "$chosen" ] && [ "$stage" != "$from" ] || chosen="$chosen $stage"
    [ "$stage" != "$to" ] || break
done
case $chosen in
*" $to") ;;
*)
    echo "pipeline.sh: no stages from $from to $to: fetch pack extract train eval" >&2
    exit 64
    ;;
esac
for stage in $chosen; do
    case $stage in eval) evaluate ;; *) $stage ;; esac
done
