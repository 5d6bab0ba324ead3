#!/usr/bin/env bats
# tool_pipeline.bats - the programs together: a recipe, a pipe, and what survives faults.

setup() {
    cd "$BATS_TEST_DIRNAME/.." || exit 1
    dir=$BATS_TEST_TMPDIR
    target=tests/golden/target-qwen3/model
    sed "s|^OUT=.*|OUT=$dir/micro|" recipes/micro.env >"$dir/micro.env"
}

recipe() {
    ./pipeline.sh "$dir/micro.env" "$@"
}

@test "a recipe runs from source to report, and a second time does nothing" {
    recipe
    [ -s "$dir/micro/report.json" ]
    grep -q '"identical":true' <(tr -d ' \n' <"$dir/micro/report.json")
    find "$dir/micro" -type f -printf '%p %T@ %i\n' | sort >"$dir/before"
    run recipe
    [ "$status" -eq 0 ]
    for tool in fetch pack extract train eval; do
        grep -q "draft-$tool: .*nothing to do" <<<"$output"
    done
    find "$dir/micro" -type f -printf '%p %T@ %i\n' | sort | cmp - "$dir/before"
}

@test "stages that are none, or in the wrong order, are refused before any runs" {
    for wrong in "fetch evaluate" "pak" "train pack" "fetch pack2"; do
        # shellcheck disable=SC2086  # words
        run recipe $wrong
        [ "$status" -eq 64 ]
        [[ $output == *"no stages from"* ]]
        [ ! -e "$dir/micro" ]
    done
}

@test "a pipe without a shard on disk gives the checkpoint of the folders" {
    "$BIN/draft-pack" -q tests/micro/train.jsonl -m $target --length 256 --valid 0.2 \
        --valid-output "$dir/pv" -o "$dir/p"
    "$BIN/draft-extract" -q "$dir/p" -m $target --taps 0,1,2 -o "$dir/h"
    "$BIN/draft-extract" -q "$dir/pv" -m $target --taps 0,1,2 -o "$dir/hv"
    train=("$BIN/draft-train" -q -m $target --layers 1 --inter 64 --block 4 --anchors 16
        --mask-id 511 --steps 6 --valid "$dir/hv")
    "${train[@]}" "$dir/h" -o "$dir/folder"
    "$BIN/draft-pack" -q tests/micro/train.jsonl -m $target --length 256 --valid 0.2 \
        --valid-output "$dir/pv2" -o - | "$BIN/draft-extract" -q - -m $target \
        --taps 0,1,2 -o - | "${train[@]}" - -o "$dir/pipe"
    diff -r -x input "$dir/folder" "$dir/pipe" # a stream cannot say which input it is
}

@test "a stage that is killed or meets a full disk goes on to the same bytes" {
    case $BIN in *address* | *thread*) skip "a sanitizer must be loaded first" ;; esac
    cc -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -o "${BIN%/bin}/faults.so" tests/faults.c
    run scripts/faults.sh "${BIN%/bin}" 29
    echo "$output"
    [ "$status" -eq 0 ]
}
