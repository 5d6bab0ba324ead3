#!/usr/bin/env bats
# tool_eval.bats - draft-eval as a program: live decoding, its text through pack and
# extract, and the walk over it, which must find the same rounds.
#
# The fixture target has random weights, but its greedy text is a fixed text: a small
# drafter trained on the states of just these sequences accepts much of it.  Faults that
# no file can hold (labels, the anchor's own states) are planted in test_walk.c.

setup_file() {
    export target=tests/golden/target-qwen3/model tmp=$BATS_FILE_TMPDIR
    cd "$BATS_TEST_DIRNAME/.." || return 1
    # Prompts of ids from a linear congruence, 3 to 30 tokens.
    awk 'BEGIN {
        x = 3
        for (d = 0; d < 12; d++) {
            n = 3 + d * 17 % 28
            printf "{\"input_ids\":["
            for (i = 0; i < n; i++) {
                x = (x * 1103 + 12345) % 65536
                printf "%s%d", i ? "," : "", 3 + x % 500
            }
            print "]}"
        }
    }' >"$tmp/prompts.jsonl"
    "$BIN/draft-eval" -q -m "$target" --plain -n 32 --emit "$tmp/text.jsonl" \
        --ids "$tmp/plain.ids" -o "$tmp/plain.json" "$tmp/prompts.jsonl" >"$tmp/plain.table"
    "$BIN/draft-pack" -q --length 192 -o "$tmp/packed" "$tmp/text.jsonl"
    "$BIN/draft-extract" -q -m "$target" --taps 0,1 -o "$tmp/hidden" "$tmp/packed"
    "$BIN/draft-train" -q -m "$target" -o "$tmp/run" --layers 2 --heads 2 --kv-heads 1 \
        --head-dim 32 --inter 96 --block 6 --mask-id 511 --window 12 --sliding 2 \
        --anchors 96 --lr 0.006 --epochs 50 "$tmp/hidden"
    mkdir "$tmp/live"
    "$BIN/draft-eval" -q -m "$target" --drafter "$tmp/run" -n 32 --ids "$tmp/live/ids" \
        --rounds "$tmp/live/rounds" --emit "$tmp/live/text.jsonl" \
        -o "$tmp/live/report.json" "$tmp/prompts.jsonl" >"$tmp/live/table"
}

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return 1
    here=$BATS_TEST_TMPDIR
}

# number KEY FILE: the value of a key of a report.
number() { sed -n "s/^ *\"$1\": *\([^,]*\),*$/\1/p" "$2"; }

at_least() { awk -v a="$1" -v b="$2" 'BEGIN {exit !(a >= b)}'; }

walk() { # DRAFTER HIDDEN ROUNDS
    "$BIN/draft-eval" -q -m "$target" --drafter "$1" --walk -n 32 --rounds "$3" "$2" \
        >"$3.json" 2>/dev/null
}

@test "every sequence is the target's own" {
    cmp "$tmp/plain.ids" "$tmp/live/ids"
    cmp "$tmp/text.jsonl" "$tmp/live/text.jsonl"
    [ "$(number identical "$tmp/live/report.json")" = true ]
    [ "$(number prompts "$tmp/live/report.json")" = 12 ]
}

@test "the drafter accepts more than the baselines" {
    tau=$(number tau "$tmp/live/report.json")
    at_least "$tau" 2
    at_least "$tau" "$(number tau_untrained "$tmp/live/report.json")"
    at_least "$tau" "$(number tau_lookup "$tmp/live/report.json")"
    grep -q '^drafter  *[0-9]' "$tmp/live/table"
    grep -q '^3-gram lookup' "$tmp/live/table"
}

@test "threads change nothing" {
    for j in 1 3; do
        "$BIN/draft-eval" -q -m "$target" --drafter "$tmp/run" -n 32 -j $j \
            --ids "$here/ids" --rounds "$here/rounds" -o "$here/$j.json" \
            "$tmp/prompts.jsonl" >/dev/null
        cmp "$here/ids" "$tmp/live/ids"
        cmp "$here/rounds" "$tmp/live/rounds"
    done
}

@test "a second run does nothing" {
    cp "$tmp/live/report.json" "$here/report.json"
    run "$BIN/draft-eval" -m "$target" --drafter "$tmp/run" -n 32 \
        -o "$here/report.json" "$tmp/prompts.jsonl"
    [ "$status" = 0 ]
    [[ $output == *"nothing to do"* ]]
    cmp "$tmp/live/report.json" "$here/report.json"
}

@test "the walk finds the rounds of live decoding" {
    walk "$tmp/run" "$tmp/hidden" "$here/rounds"
    cmp "$here/rounds" "$tmp/live/rounds"
    [ "$(number tau "$here/rounds.json")" = "$(number tau "$tmp/live/report.json")" ]
    cat "$tmp/hidden"/*.safetensors |
        "$BIN/draft-eval" -q -m "$target" --drafter "$tmp/run" --walk -n 32 \
            --rounds "$here/piped" - >/dev/null 2>&1
    cmp "$here/piped" "$tmp/live/rounds"
}

# copy_drafter SED: a copy of the drafter whose config.json was edited.
copy_drafter() {
    mkdir "$here/drafter"
    cp "$tmp/run/$(cat "$tmp/run/latest")/model.safetensors" "$here/drafter"
    tr -d '\n' <"$tmp/run/$(cat "$tmp/run/latest")/config.json" | sed "$1" \
        >"$here/drafter/config.json"
}

differs() { # DRAFTER HIDDEN
    walk "$1" "$2" "$here/rounds"
    run cmp -s "$here/rounds" "$tmp/live/rounds"
    [ "$status" = 1 ]
}

@test "an edited copy without a fault walks alike" {
    copy_drafter 's/"rope_theta": *1000000.0/"rope_theta": 1e6/'
    walk "$here/drafter" "$tmp/hidden" "$here/rounds"
    cmp "$here/rounds" "$tmp/live/rounds"
}

@test "the walk shows a fault in RoPE" {
    copy_drafter 's/"rope_theta": *1000000.0/"rope_theta": 10000.0/'
    grep -q 10000.0 "$here/drafter/config.json"
    differs "$here/drafter" "$tmp/hidden"
}

@test "the walk shows a fault in the taps" {
    # The same layers in the numbering that counts from one.
    "$BIN/draft-extract" -q -m "$target" --taps 1,2 -o "$here/hidden" "$tmp/packed"
    run "$BIN/draft-eval" -m "$target" --drafter "$tmp/run" --walk "$here/hidden"
    [ "$status" = 78 ]
    [[ $output == *"taps 1,2, the drafter reads 0,1"* ]]
    copy_drafter 's/"target_layer_ids": *\[ *0, *1 *\]/"target_layer_ids": [1, 2]/'
    differs "$here/drafter" "$here/hidden"
}

@test "the walk shows a fault in the mask" {
    # Blocks bidirectional instead of causal; then, a context shorter by one.
    copy_drafter 's/"hidden_size"/"is_causal": false, "hidden_size"/'
    differs "$here/drafter" "$tmp/hidden"
    rm -r "$here/drafter"
    copy_drafter 's/"sliding_window": *12/"sliding_window": 11/'
    grep -q '"sliding_window": 11' "$here/drafter/config.json"
    differs "$here/drafter" "$tmp/hidden"
}

@test "sampled text depends on the seed alone" {
    sample() {
        "$BIN/draft-eval" -q -m "$target" --plain --temperature 0.8 --top-p 0.95 -n 16 \
            --emit "$here/$1" -s "$2" -j "$3" "$tmp/prompts.jsonl" >/dev/null 2>&1
    }
    sample a 1 1
    sample b 1 3
    sample c 2 1
    cmp "$here/a" "$here/b"
    run cmp -s "$here/a" "$here/c"
    [ "$status" = 1 ]
}

@test "--prompts and --baselines take the first ones" {
    head -n 3 "$tmp/live/ids" >"$here/three"
    "$BIN/draft-eval" -q -m "$target" --drafter "$tmp/run" -n 32 --prompts 3 \
        --baselines 2 --ids "$here/ids" -o "$here/report" "$tmp/prompts.jsonl" >/dev/null
    cmp "$here/ids" "$here/three"
    [ "$(number prompts "$here/report")" = 3 ]
    [ "$(number baseline_prompts "$here/report")" = 2 ]
}

@test "bad prompts end with 65 and name the line" {
    expect() { # LINE TEXT
        printf '{"input_ids":[1]}\n\n%s\n' "$1" >"$here/bad.jsonl"
        run "$BIN/draft-eval" -m "$target" --plain -n 2 "$here/bad.jsonl"
        [ "$status" = 65 ]
        [[ $output == *"line 3: "*"$2"* ]]
    }
    expect '{"input_ids":[]}' "empty"
    expect '{"input_ids":[1,512]}' "input_ids[1] is 512 of a vocabulary of 512"
    expect '{"input_ids":[-1]}' "input_ids[0] is -1"
    expect '{"input_ids":[1.5]}' ""
    expect '{"ids":[1]}' "input_ids"
    expect '{"input_ids":[1' ""
    : >"$here/empty.jsonl"
    run "$BIN/draft-eval" -m "$target" --plain "$here/empty.jsonl"
    [ "$status" = 65 ]
}

@test "wrong calls end with 64, what does not fit with 78" {
    expect() { # STATUS TEXT ARGUMENTS
        local want=$1 text=$2
        shift 2
        run "$BIN/draft-eval" "$@" </dev/null
        [ "$status" = "$want" ]
        [[ $output == *"$text"* ]]
    }
    p=$tmp/prompts.jsonl
    expect 64 "no target" --plain "$p"
    expect 64 "no drafter" -m "$target" "$p"
    expect 64 "no prompts" -m "$target" --plain
    expect 64 "one file" -m "$target" --plain "$p" "$p"
    expect 64 "--plain" -m "$target" --drafter "$tmp/run" --temperature 1 "$p"
    expect 64 "--tokens" -m "$target" --plain -n 0 "$p"
    cp "$p" "$here/p"
    expect 64 "is read as input" -m "$target" --plain "$here/p" --emit "$here/p"
    expect 64 "name one file" -m "$target" --plain "$p" --ids "$here/a" --emit "$here/a"
    cmp "$p" "$here/p"
    expect 66 "nowhere" -m "$target" --plain "$tmp/nowhere"
    expect 66 "nowhere" -m "$target" --drafter "$tmp/nowhere" "$p"
    expect 78 "positions" -m "$target" --plain -n 5000 "$p"
    expect 65 "trained on target" -m tests/golden/target-qwen3-tied/model \
        --drafter "$tmp/run" --walk "$tmp/hidden"
}

@test "a damaged drafter is not decoded with" {
    cp -r "$tmp/run" "$here/run"
    f=$here/run/$(cat "$here/run/latest")/model.safetensors
    printf '\377' | dd of="$f" bs=1 seek=$(($(wc -c <"$f") - 100)) conv=notrunc status=none
    run "$BIN/draft-eval" -q -m "$target" --drafter "$here/run" -n 4 "$tmp/prompts.jsonl"
    [ "$status" = 65 ]
    [[ $output == *"model.safetensors: damaged: the checksum"* ]]
}

@test "a target with recurrent states is rolled back" {
    hybrid=tests/golden/target-qwen3_5-multimodal/model
    "$BIN/draft-eval" -q -m "$hybrid" --plain -n 24 --emit "$here/text.jsonl" \
        --ids "$here/plain.ids" -o "$here/plain.json" "$tmp/prompts.jsonl" >/dev/null
    "$BIN/draft-pack" -q --length 192 -o "$here/packed" "$here/text.jsonl"
    "$BIN/draft-extract" -q -m "$hybrid" --taps 0,1 -o "$here/hidden" "$here/packed"
    "$BIN/draft-train" -q -m "$hybrid" -o "$here/run" --layers 2 --heads 2 --kv-heads 1 \
        --head-dim 32 --inter 96 --block 6 --mask-id 511 --anchors 96 --lr 0.006 \
        --epochs 25 "$here/hidden"
    "$BIN/draft-eval" -q -m "$hybrid" --drafter "$here/run" -n 24 --ids "$here/live.ids" \
        -o "$here/live.json" "$tmp/prompts.jsonl" >/dev/null
    cmp "$here/plain.ids" "$here/live.ids"
    [ "$(number identical "$here/live.json")" = true ]
    tau=$(number tau "$here/live.json")
    at_least "$tau" 1.5 # some proposals are kept and some are not
    at_least 5.5 "$tau"
}
