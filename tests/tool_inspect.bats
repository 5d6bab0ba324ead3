#!/usr/bin/env bats
# draft-inspect: what is whole is described, what is damaged is named, the rest goes on.

setup() {
    bats_require_minimum_version 1.5.0
    tree=$BATS_TEST_DIRNAME/..
    cp -r "$BATS_TEST_DIRNAME/golden/shards" "$BATS_TEST_TMPDIR/shards"
    cd "$BATS_TEST_TMPDIR/shards"
    inspect=$BIN/draft-inspect
}

# flip FILE OFFSET: another byte stands there.
flip() {
    local was
    was=$(od -An -tu1 -j "$2" -N 1 "$1")
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((was ^ 1)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# safetensors FILE HEADER: its length, the header in whole eights, eight zero bytes.
safetensors() {
    local n=$(((${#2} + 7) / 8 * 8))
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $n)\\0\\0\\0\\0\\0\\0\\0%-${n}s" "$2" >"$1"
    head -c 8 /dev/zero >>"$1"
}

# checkpoint FOLDER NEXT_ROW: with the true checksum of its data.
checkpoint() {
    mkdir -p "$1"
    safetensors "$1/model.safetensors" '{"__metadata__":{"format":"pt","data_xxh3":"c77b3abb6f87acd9"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    safetensors "$1/state.safetensors" '{"__metadata__":{"step":"5","epoch":"1","next_row":"'"$2"'"},"m":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    echo '{"architectures":["DFlashDraftModel"],"model_type":"qwen3"}' >"$1/config.json"
}

@test "describes packed rows" {
    run -0 --separate-stderr "$inspect" packed
    [[ $output == "packed: packed rows, whole and verified"* ]]
    [[ $output == *"rows        3"* ]]
    [[ $output == *"full        79.17 %"* ]]
    [[ $output == *"options length=8 seed=1"* ]]
    [[ $stderr == "draft-inspect: 0."*"inputs: 1"* ]]
}

@test "a stream, a file with a stream, single files" {
    cat packed/packed-*.safetensors >stream
    digest=$("$inspect" -q packed | sed -n 's/.*digest *//p')
    [ "$("$inspect" -q - <stream | sed -n 's/.*digest *//p')" = "$digest" ]
    [ "$("$inspect" -q stream | sed -n 's/.*digest *//p')" = "$digest" ]
    run -0 "$inspect" -q packed/*.safetensors
    [[ $output == *"packed-00001.safetensors: packed rows"*"first row   2"* ]]
    [[ $output == *"packed-end.safetensors: end file"*"digest      $digest"* ]]
}

@test "damage is named with file and tensor, and the others are still looked at" {
    flip packed/packed-00001.safetensors 4150
    run -65 --separate-stderr "$inspect" -q packed hidden
    [[ $stderr == *"packed/packed-00001.safetensors: tensor input_ids: checksum does not match"* ]]
    [[ $stderr == *"1 of 2 inputs are not well"* ]]
    [[ $output == "hidden: hidden rows"* ]]
    run -65 --separate-stderr "$inspect" -q --json packed hidden missing
    [ "$(grep -c '"ok":true' <<<"$output")" = 1 ]
    [ "$(grep -c '"ok":false' <<<"$output")" = 2 ]
    [[ $output == *'"error":"packed/packed-00001'* ]]
    flip packed/packed-00001.safetensors 4150
    run -66 "$inspect" -q packed missing
}

@test "headers, lengths, missing files, cut streams" {
    flip hidden/hidden-00000.safetensors 300
    run -65 "$inspect" hidden
    [[ $output == *"hidden/hidden-00000.safetensors: header: checksum does not match"* ]]
    flip hidden/hidden-00000.safetensors 300
    rm hidden/hidden-end.safetensors
    run -65 "$inspect" hidden
    [[ $output == *"hidden: incomplete: no hidden-end.safetensors"* ]]
    run -65 "$inspect" - < <(cat packed/packed-0*.safetensors)
    [[ $output == *"stdin: shard 2: cut stream: the end file is missing"* ]]
    run -65 "$inspect" - < <(cat packed/packed-*.safetensors | head -c 5000)
    [[ $output == *"stdin: shard 1: cut stream: it ends inside a header"* ]]
    run -65 "$inspect" - </dev/null
    truncate -s 4200 packed/packed-00001.safetensors
    run -65 "$inspect" packed
    [[ $output == *"packed/packed-00001.safetensors: cut: 104 of 120 bytes of data"* ]]
    mkdir empty
    run -66 "$inspect" empty
}

@test "a row: where it is from, as ids and as text" {
    run -0 "$inspect" -q packed --row 0
    [[ $output == *"file a.jsonl record 5 first 0 begin 0 end 4 supervised 2"*"0 1 {+2 3+}"* ]]
    cat >tokenizer.json <<'EOF'
{"added_tokens": [{"id": 7, "content": "<|end|>", "special": true}],
 "decoder": {"type": "ByteLevel"},
 "model": {"type": "BPE", "merges": [],
           "vocab": {"Hello": 0, "Ġworld": 1, "!": 2, "Ċ": 3, "Ã": 4, "©": 5, "x": 6}}}
EOF
    run -0 "$inspect" -q packed --row 0 --tokenizer tokenizer.json
    [[ $output == *$'\nHello world{+!\n+}'* ]]
    [[ $output == *$'<|end|>+}'* ]]
    [ "$output" = "$("$inspect" -q packed --row 0 --tokenizer .)" ]
    run -0 "$inspect" -q hidden --row 1 --tokenizer tokenizer.json --json
    [[ $output == *'"text":"x{+xxxxxxx+}"'* ]]
    run -0 "$inspect" -q - --row 2 < <(cat packed/*.safetensors)
    run -78 "$inspect" packed --row 3
    run -78 "$inspect" - --row 3 < <(cat packed/*.safetensors)
    sed -i 's/"BPE"/"Unigram"/' tokenizer.json
    run -65 "$inspect" packed --row 0 --tokenizer tokenizer.json
    [[ $output == *"tokenizer.json: model Unigram is unsupported"* ]]
    run -64 "$inspect" packed --tokenizer tokenizer.json
    run -64 "$inspect" packed --row -2
    run -64 "$inspect"
}

@test "numbers of hidden states" {
    run -0 "$inspect" -q --stats hidden
    [[ $output == *"layer 1 rms 2 largest 2"*"layer 3 rms 3 largest 3"*"zero tokens 0"* ]]
}

@test "checkpoints and where training goes on" {
    mkdir run
    [ "$("$inspect" --next-row run)" = 0 ]
    checkpoint run/step-00000002 7
    checkpoint run/step-00000010 31
    [ "$("$inspect" --next-row run)" = 31 ]
    [ "$("$inspect" --next-row run/step-00000002)" = 7 ]
    run -66 "$inspect" --next-row nowhere
    run -64 "$inspect" --next-row run run
    run -0 "$inspect" -q run
    [[ $output == *"checkpoints 2"*"newest      run/step-00000010"* ]]
    [[ $output == *"architecture"*"DFlashDraftModel"*"next row    31"* ]]
    run -0 "$inspect" -q --stats run/step-00000002
    [[ $output == *"w F32 [2] rms 0 largest 0"* ]]
    size=$(stat -c %s run/step-00000002/model.safetensors)
    flip run/step-00000002/model.safetensors $((size - 1))
    run -65 "$inspect" run
    [[ $output == *"run/step-00000002/model.safetensors: damaged: the checksum of its data differs"* ]]
    truncate -s -1 run/step-00000010/state.safetensors
    run -65 "$inspect" --next-row run
    [[ $output == *"state.safetensors: cut: data of 7 bytes"* ]]
}

@test "plain safetensors, and files that are none" {
    safetensors x '{"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    run -0 "$inspect" -q x --json
    [[ $output == *'"kind":"safetensors"'*'"elements":2'* ]]
    echo "something else" >y
    run -65 "$inspect" y
    [[ $output == *"y: header of"*"not a safetensors file"* ]]
}

@test "shards open in Python" {
    python=$tree/build/venv/bin/python
    [ -x "$python" ] || skip "no build/venv (scripts/deps.sh python)"
    "$python" - <<'EOF'
from safetensors import safe_open
from safetensors.numpy import load_file
rows = load_file("packed/packed-00000.safetensors")
assert rows["input_ids"].shape == (2, 8), rows["input_ids"].shape
assert rows["input_ids"][0].tolist() == [0, 1, 2, 3, 4, 5, 7, 0]
assert rows["doc_ids"][0].tolist() == [0, 0, 0, 0, 1, 1, 1, -1]
assert rows["source"].tolist() == [[0, 5, 0], [1, 0, 3], [1, 7, 0]]
with safe_open("packed/packed-end.safetensors", "np") as f:
    assert list(f.keys()) == [] and f.metadata()["rows"] == "3", f.metadata()
with safe_open("hidden/hidden-00001.safetensors", "np") as f:
    assert f.get_slice("aux").get_shape() == [1, 8, 4]
    assert f.metadata()["first_row"] == "1"
EOF
}
