#!/usr/bin/env bats
# tool_extract.bats - draft-extract as a program: same bytes whatever the way, and what
# it refuses.

setup_file() {
    export target=tests/golden/target-qwen3/model
    cd "$BATS_TEST_DIRNAME/.." || return 1
    # Documents of ids from a linear congruence, 5 to 60 tokens.
    awk 'BEGIN {
        x = 7
        for (d = 0; d < 30; d++) {
            n = 5 + d * 37 % 56
            printf "{\"input_ids\":["
            for (i = 0; i < n; i++) {
                x = (x * 1103 + 12345) % 65536
                printf "%s%d", i ? "," : "", x % 512
            }
            print "]}"
        }
    }' >"$BATS_FILE_TMPDIR/text.jsonl"
    "$BIN/draft-pack" -q --length 128 -o "$BATS_FILE_TMPDIR/packed" \
        "$BATS_FILE_TMPDIR/text.jsonl"
    "$BIN/draft-extract" -q -m "$target" --taps 0,2 -o "$BATS_FILE_TMPDIR/hidden" \
        "$BATS_FILE_TMPDIR/packed"
}

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return 1
    packed=$BATS_FILE_TMPDIR/packed hidden=$BATS_FILE_TMPDIR/hidden
    tmp=$BATS_TEST_TMPDIR
}

extract() { "$BIN/draft-extract" -m "$target" --taps 0,2 "$@"; }

same() { diff -r "$hidden" "$1"; }

@test "threads and pieces do not matter" {
    extract -q -j 1 -o "$tmp/one" "$packed"
    same "$tmp/one"
    extract -q -j 3 -o "$tmp/three" "$packed"
    same "$tmp/three"
    extract -q --memory 250KiB -o "$tmp/pieces" "$packed"
    same "$tmp/pieces"
    run extract --memory 10K -o "$tmp/none" "$packed"
    [ "$status" = 78 ]
    [[ $output == *"a row of 128 tokens takes"* ]]
}

@test "a target that does not fit gives the same bytes" {
    for target in tests/golden/target-qwen3/model tests/golden/target-qwen3_5/model; do
        extract -q -o "$tmp/whole" "$packed"
        for memory in 2G 700KiB 250KiB; do
            run extract --weights 320KiB --memory $memory -o "$tmp/parts" "$packed"
            [ "$status" = 0 ]
            [[ $output == *"does not fit: its layers are brought one by one"* ]]
            diff -r "$tmp/whole" "$tmp/parts"
            rm -r "$tmp/parts"
        done
        extract -q --weights 320KiB --aux fp8 --last -o "$tmp/more" "$packed"
        extract -q --aux fp8 --last -o "$tmp/most" "$packed"
        diff -r "$tmp/more" "$tmp/most"
        run extract --weights 100KiB -o "$tmp/none" "$packed"
        [ "$status" = 78 ]
        [[ $output == *"embedding and two layers of the target take"* ]]
        rm -r "$tmp/whole" "$tmp/more" "$tmp/most"
    done
}

@test "a plan says what is taken, by name" {
    run extract -d cuda --plan "$packed"
    [ "$status" = 0 ]
    for line in 'device  *bytes' 'scratch  *67108864 ' 'target .* its weights' \
        'pass .* 1 row at once' 'taps .* states of ' 'total ' 'host  *bytes' \
        'rows .* under way; page-locked for a GPU'; do
        grep -q "^$line" <<<"$output"
    done
    run ! grep -q cache <<<"$output"
    run extract -d cuda --plan --weights 300K --host 10M "$packed"
    grep -q '^target .* two layers at a time$' <<<"$output"
    grep -q '^pass .* 16 rows at once$' <<<"$output"
    grep -q '^rows .* 589824 .* states of 18 rows' <<<"$output"
    run extract --plan --memory 250KiB --host 33K "$packed"
    grep -q '^pass .* tokens of a row at once$' <<<"$output"
    grep -q '^cache ' <<<"$output"
    grep -q '^rows .* 32768 .* states of 1 row ' <<<"$output"
    run extract --host 32K -o "$tmp/none" "$packed"
    [ "$status" = 78 ]
    [[ $output == *"--host: the states of a row of 128 tokens take 32.00 KiB of the host's memory"* ]]
    run extract --plan --verify 1 "$hidden"
    [ "$status" = 64 ]
}

@test "a pipe gives the bytes of a folder" {
    cat "$packed"/packed-*.safetensors | extract -q -o - - >"$tmp/stream"
    cat "$hidden"/hidden-*.safetensors | cmp - "$tmp/stream"
    cat "$packed"/packed-*.safetensors | extract -q -o "$tmp/folder" -
    same "$tmp/folder"
}

@test "a complete folder is left alone, another input is refused" {
    cp -r "$hidden" "$tmp/there"
    run extract -o "$tmp/there" "$packed"
    [ "$status" = 0 ]
    [[ $output == *"nothing to do"* ]]
    cat "$packed"/packed-*.safetensors >"$tmp/stream"
    run extract -o "$tmp/there" - <"$tmp/stream"
    [ "$status" = 0 ]
    [[ $output == *"nothing to do"* ]]
    same "$tmp/there"
    run "$BIN/draft-extract" -m "$target" --taps 0,1 -o "$tmp/there" "$packed"
    [ "$status" = 78 ]
    [[ $output == *"taps"* ]]
    head -n 20 "$BATS_FILE_TMPDIR/text.jsonl" >"$tmp/less.jsonl"
    "$BIN/draft-pack" -q --length 128 -o "$tmp/less" "$tmp/less.jsonl"
    run extract -o "$tmp/there" "$tmp/less"
    [ "$status" = 78 ]
    same "$tmp/there"
}

@test "an interrupted run is gone on with" {
    cp -r "$hidden" "$tmp/there"
    rm "$tmp/there/hidden-end.safetensors"
    extract -q -o "$tmp/there" "$packed"
    same "$tmp/there"
    : >"$tmp/there/hidden-00000.safetensors.tmp"
    rm "$tmp/there"/hidden-*.safetensors
    extract -q -o "$tmp/there" "$packed"
    same "$tmp/there"
}

@test "parts together are the whole" {
    for i in 2 0 1; do extract -q --part $i/3 -o "$tmp/parts" "$packed"; done
    [ "$(find "$tmp/parts" -name '*-end.safetensors' | wc -l)" = 3 ]
    # The bytes of aux, wherever their shards begin.
    aux() {
        for f in "$1"/*-[0-9]*.safetensors; do
            case $f in *-end*) continue ;; esac
            n=$(od -An -tu8 -N8 "$f")
            at=$(head -c $((8 + n)) "$f" | grep -ao '"aux":{[^}]*}' |
                grep -o '\[[0-9]*,[0-9]*\]' | tail -1 | tr -d '[]')
            tail -c +$((9 + n + ${at%,*})) "$f" | head -c $((${at#*,} - ${at%,*}))
        done
    }
    aux "$hidden" >"$tmp/whole.aux"
    aux "$tmp/parts" | cmp - "$tmp/whole.aux"
    [ -s "$tmp/whole.aux" ]
}

@test "a part of another run is not put beside the parts that are there" {
    extract -q --part 0/2 -o "$tmp/mixed" "$packed"
    run "$BIN/draft-extract" -m "$target" --taps 0,1 --part 1/2 -o "$tmp/mixed" "$packed"
    [ "$status" = 78 ]
    [[ $output == *"-0-of-2-"*"of another run: taps is"* ]]
    run extract --aux fp8 --part 1/2 -o "$tmp/mixed" "$packed"
    [ "$status" = 78 ]
    head -20 "$BATS_FILE_TMPDIR/text.jsonl" |
        "$BIN/draft-pack" -q --length 128 -o "$tmp/other" --format jsonl -
    run extract --part 1/2 -o "$tmp/mixed" "$tmp/other"
    [ "$status" = 78 ]
    [ "$(find "$tmp/mixed" -name '*-1-of-2*.safetensors')" = "" ]
    extract -q --part 1/2 -o "$tmp/mixed" "$packed"
}

@test "from-row starts behind the rows before it" {
    extract -q --from-row 2 -o "$tmp/late" "$packed"
    cat "$packed"/packed-*.safetensors | extract -q --from-row 2 -o - - >"$tmp/stream"
    cat "$tmp/late"/hidden-*.safetensors | cmp - "$tmp/stream"
    grep -aq '"first_row":"2"' "$tmp/stream"
    run extract --from-row 1000 -o "$tmp/none" "$packed"
    [ "$status" = 78 ]
}

@test "fp8 and last add their columns" {
    extract -q --aux fp8 --last -o "$tmp/more" "$packed"
    head -c 4096 "$tmp/more/hidden-00000.safetensors" >"$tmp/header"
    grep -aq '"aux":{"dtype":"F8_E4M3"' "$tmp/header"
    grep -aq '"aux_scale":{"dtype":"F32"' "$tmp/header"
    grep -aq '"last":{"dtype":"BF16"' "$tmp/header"
    grep -aq '"last_side":"before"' "$tmp/header"
}

@test "verify computes rows again and compares them" {
    rows=$("$BIN/draft-inspect" --json "$hidden" | grep -o '"rows": *[0-9]*' | head -1 | tr -dc 0-9)
    run "$BIN/draft-extract" -m "$target" --verify 1000 "$hidden"
    [ "$status" = 0 ]
    [ "$(grep -c '^row [0-9]*: identical' <<<"$output")" = "$rows" ]
    [[ $output == *"$rows of $rows rows verified, $rows identical"* ]]
    "$BIN/draft-extract" -q -m "$target" --verify 2 -s 1 "$hidden" >"$tmp/one"
    "$BIN/draft-extract" -q -m "$target" --verify 2 -s 1 -j 3 "$hidden" >"$tmp/again"
    "$BIN/draft-extract" -q -m "$target" --verify 2 -s 2 "$hidden" >"$tmp/other"
    [ "$(wc -l <"$tmp/one")" = 2 ]
    cmp "$tmp/one" "$tmp/again"
    run ! cmp -s "$tmp/one" "$tmp/other"
    extract -q --aux fp8 --last -o "$tmp/more" "$packed"
    run "$BIN/draft-extract" -m "$target" --verify 3 "$tmp/more"
    [ "$status" = 0 ]
    [[ $output == *"3 of $rows rows verified, 3 identical"* ]]
    for memory in 2G 320KiB; do
        run "$BIN/draft-extract" -m "$target" --weights 320KiB --memory $memory -j 3 \
            --verify 1000 "$tmp/more"
        [ "$status" = 0 ]
        [[ $output == *"does not fit: its layers are brought one by one"* ]]
        [[ $output == *"$rows of $rows rows verified, $rows identical"* ]]
    done
    run "$BIN/draft-extract" -m tests/golden/target-qwen3-tied/model --verify 3 "$hidden"
    [ "$status" = 78 ]
    [[ $output == *"made by target"* ]]
    run "$BIN/draft-extract" -m "$target" --verify 3 "$packed"
    [ "$status" = 65 ]
    run "$BIN/draft-extract" -m "$target" --verify 3 --taps 0 "$hidden"
    [ "$status" = 64 ]
}

@test "states are reported by tap, a row out of band is refused" {
    run extract -o "$tmp/there" "$packed"
    [[ $output == *"tap 0: size "*"tap 2: size "* ]]
    run extract --band 1.0001 -o "$tmp/narrow" "$packed"
    [ "$status" = 65 ]
    [[ $output == *"row 1: tap 0: states of size"*"--band"* ]]
    [ ! -e "$tmp/narrow/hidden-end.safetensors" ]
    run extract --band 0.5 -o "$tmp/narrow" "$packed"
    [ "$status" = 64 ]
}

@test "targets that cannot be run are refused in one line, at once" {
    refuse() { # TEXT SED
        rm -rf "$tmp/model"
        cp -r "$target" "$tmp/model"
        sed -i "$2" "$tmp/model/config.json"
        begun=$(date +%s%N)
        run "$BIN/draft-extract" -m "$tmp/model" --taps 0,2 -o "$tmp/none" "$packed"
        took=$((($(date +%s%N) - begun) / 1000000))
        [ "$status" = 78 ]
        [ "${#lines[@]}" = 1 ]
        [[ $output == *"$1"* ]]
        [ $took -lt 1000 ]
    }
    refuse '"qwen3_5_moe_text" is not supported, only the dense' 's/"qwen3"/"qwen3_5_moe_text"/'
    refuse '"qwen4_exp" is not supported' 's/"qwen3"/"qwen4_exp"/'
    refuse '"yarn" is not supported, only "default"' 's/"rope_type": "default"/"rope_type": "yarn"/'
    refuse 'quant_method "awq" is not supported, supported are' \
        's/"use_cache": true/"quantization_config": {"quant_method": "awq"}/'
    refuse '"compressed-tensors" is not supported' \
        's/"use_cache": true/"quantization_config": {"quant_method": "compressed-tensors"}/'
    refuse 'use_sliding_window is true' 's/"use_sliding_window": false/"use_sliding_window": true/'
}

@test "an id beyond the vocabulary ends with 65 and names the row" {
    echo '{"input_ids":[3,4,512,5]}' >"$tmp/bad.jsonl"
    "$BIN/draft-pack" -q --length 128 -o "$tmp/bad" "$tmp/bad.jsonl"
    run extract -o "$tmp/none" "$tmp/bad"
    [ "$status" = 65 ]
    [[ $output == *"row 0: token 2: id 512 of a vocabulary of 512"* ]]
    [ ! -e "$tmp/none/hidden-end.safetensors" ]
}

@test "wrong calls end with 64, what does not fit with 78" {
    expect() { # STATUS TEXT ARGUMENTS
        local want=$1 text=$2
        shift 2
        run "$BIN/draft-extract" "$@" </dev/null
        [ "$status" = "$want" ]
        [[ $output == *"$text"* ]]
    }
    expect 64 "no target" -o "$tmp/x" "$packed"
    expect 64 "no packed" -m "$target" -o "$tmp/x"
    expect 64 "taps" -m "$target" --taps 0,x -o "$tmp/x" "$packed"
    expect 78 "taps" -m "$target" --taps 2,0 -o "$tmp/x" "$packed"
    expect 78 "last" -m "$target" --taps 0,3 -o "$tmp/x" "$packed"
    expect 78 "taps" -m "$target" -o "$tmp/x" "$packed"
    expect 64 "--aux" -m "$target" --taps 0,2 --aux f16 -o "$tmp/x" "$packed"
    expect 64 "exclude" -m "$target" --taps 0,2 --part 0/2 --from-row 1 -o "$tmp/x" "$packed"
    expect 65 "hidden states already" -m "$target" --taps 0,2 -o "$tmp/x" "$hidden"
    expect 66 "nowhere" -m "$target" --taps 0,2 -o "$tmp/x" "$tmp/nowhere"
    cat "$packed"/packed-*.safetensors >"$tmp/stream"
    run extract --part 0/2 -o "$tmp/x" - <"$tmp/stream"
    [ "$status" = 64 ]
    [ ! -e "$tmp/x/hidden-end.safetensors" ]
}

@test "a reader that leaves ends the writer with 74" {
    run bash -c "'$BIN/draft-extract' -m $target --taps 0,2 -o - '$packed' | true
        exit \${PIPESTATUS[0]}"
    [ "$status" = 74 ]
}
