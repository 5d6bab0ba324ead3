#!/bin/sh
# controls.sh - is it the hidden states?  The demo's drafter beside one that sees zeros.
#
#   scripts/controls.sh BUILD [RECIPE]
#
# Runs the recipe, then trains the same drafter on the same shards with every state set to
# zero (bench/zero_aux).  Both are measured by the offline walk over the target's own
# greedy continuations of the held-out prompts, the control on zeros as it was trained;
# the walk of the first equals its live decoding.  Ends with 1 when the states gain less
# than 0.5 tokens a pass.
set -eu
cd "$(dirname "$0")/.."
build=${1:?usage: controls.sh BUILD [RECIPE]}
recipe=${2:-recipes/demo.env}
export BIN="$build/bin"
./pipeline.sh "$recipe"
# shellcheck disable=SC1090  # the recipe is the argument
. "./$recipe"
zero=$OUT/zeroed
mkdir -p "$zero"

"$BIN/draft-eval" -q "$PROMPTS" -m "$TARGET" --plain --tokens "$TOKENS" \
    --prompts "$N_PROMPTS" --emit "$zero/text.jsonl" -o "$zero/plain.json" >/dev/null
"$BIN/draft-pack" -q "$zero/text.jsonl" -m "$TARGET" --length "$LENGTH" -o "$zero/packed"
"$BIN/draft-extract" -q "$zero/packed" -m "$TARGET" --taps "$TAPS" -o "$zero/states"
for run in hidden hidden-valid; do
    [ -e "$zero/$run" ] || "$build/bench/zero_aux" "$OUT/$run" "$zero/$run"
done
[ -e "$zero/blank" ] || "$build/bench/zero_aux" "$zero/states" "$zero/blank"
sed "s|^OUT=.*|OUT=$zero|" "$recipe" >"$zero/recipe.env"
./pipeline.sh "$zero/recipe.env" train train

# walk DRAFTER STATES REPORT
walk() {
    "$BIN/draft-eval" -q --walk "$2" -m "$TARGET" \
        --drafter "$1/$(cat "$1/latest")" -o "$3" >/dev/null
    sed -n 's/^ *"tau": *\([0-9.]*\),*$/\1/p' "$3" | head -1
}
seen=$(walk "$OUT/drafter" "$zero/states" "$zero/seen.json")
blind=$(walk "$zero/drafter" "$zero/blank" "$zero/blind.json")
awk -v a="$seen" -v b="$blind" 'BEGIN {
    printf "tau %.3f with hidden states, %.3f with zeros, difference %.3f\n", a, b, a - b
    exit a - b < 0.5
}'
