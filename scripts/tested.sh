#!/bin/sh
# tested.sh - have the kernels as they stand passed their tests on a GPU?
#
#   scripts/tested.sh             TESTED or UNTESTED, a line for each card in bench/results
#   scripts/tested.sh hash        the hash of kernels/cuda and kernels/op.h
#   scripts/tested.sh write CARD OUTPUT    from what a passing test_gpu printed on a card:
#                                 bench/results/CARD.tested (h200.tested)
#
# CI has no GPU.  test_gpu is built with the hash and prints it, together with the card, so
# that what is written is what was run.
set -eu
cd "$(dirname "$0")/.."

hash() {
    find kernels/cuda kernels/op.h -type f | LC_ALL=C sort | xargs sha256sum |
        sha256sum | cut -c 1-16
}

write() {
    card=$1 output=$2
    was=$(sed -n 's/^# kernels \([0-9a-f]\{16\}\) on .*/\1/p' "$output")
    checks=$(sed -n 's/^100%: Checks: \([0-9]*\), Failures: 0, Errors: 0$/\1/p' "$output")
    [ -n "$was" ] || { echo "tested.sh: $output: names no kernels" >&2; exit 65; }
    [ -n "$checks" ] || { echo "tested.sh: $output: did not pass" >&2; exit 65; }
    if grep -q '^NO ' "$output" || ! grep -q '^# bf16' "$output" || ! grep -q '^# f32' "$output"; then
        echo "tested.sh: $output: not all was compared" >&2
        exit 65
    fi
    [ "$was" = "$(hash)" ] || {
        echo "tested.sh: $output: is of kernels $was, the tree has $(hash)" >&2
        exit 65
    }
    mkdir -p bench/results
    sed -n 's/^# kernels //p' "$output" >"bench/results/$card.tested"
}

case ${1:-} in
hash) hash ;;
write) write "${2:?usage: tested.sh write CARD OUTPUT}" "${3:?usage: tested.sh write CARD OUTPUT}" ;;
'')
    now=$(hash) any=
    for file in bench/results/*.tested; do
        [ -e "$file" ] || continue
        any=1 card=$(basename "$file" .tested)
        if [ "$(cut -c 1-16 "$file")" = "$now" ]; then
            echo "kernels/cuda: TESTED on $card"
        else
            echo "kernels/cuda: UNTESTED as they stand on $card"
        fi
    done
    [ -n "$any" ] || echo "kernels/cuda: UNTESTED"
    ;;
*) echo "usage: tested.sh [hash | write CARD OUTPUT]" >&2; exit 64 ;;
esac
