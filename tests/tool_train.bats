#!/usr/bin/env bats
# draft-train on the fixture target: runs repeat to the bit, whatever happens between.

setup_file() {
    export D=$BATS_FILE_TMPDIR TARGET=tests/golden/target-qwen3/model
    "$BIN/draft-pack" -q tests/micro/train.jsonl -m "$TARGET" --length 96 --seed 1 \
        --valid 0.2 --valid-output "$D/packed-valid" -o "$D/packed"
    for part in packed packed-valid; do
        "$BIN/draft-extract" -q "$D/$part" -m "$TARGET" --taps 0,1 -o "$D/$part.hidden"
    done
    export IN=$D/packed.hidden VALID=$D/packed-valid.hidden
    train "$D/run" || return 1
    long "$D/long" || return 1
}

setup() {
    bats_require_minimum_version 1.5.0
    cd "$BATS_TEST_DIRNAME/.." || return 1
}

# train RUN [more options]: 12 steps of two rows.  EXEC=exec makes it the process itself.
train() {
    local run=$1
    shift
    ${EXEC:-} "$BIN/draft-train" "${INPUT:-$IN}" -o "$run" -m "$TARGET" --mask-id 511 --layers 1 \
        --inter 64 --block 4 --anchors 8 --lr 3e-3 --steps 12 --accumulate 2 --seed 1 \
        --valid "$VALID" --valid-every 6 --save-every 4 -j 1 "$@"
}

# long RUN: enough steps that an interruption after the first checkpoint is in time.
long() { train "$1" -q --steps 120 --save-every 30 --valid-every 50; }

# refused STATUS TEXT ARGUMENTS...: the call ends so, and says so on stderr alone.
refused() {
    local status_want=$1 text=$2
    shift 2
    run --separate-stderr "$@"
    echo "$status: $stderr"
    [ "$status" = "$status_want" ]
    [ -z "$output" ]
    [[ $stderr == *"$text"* ]]
}

# last FILE KEY: its value in the last record of a log.
last() { tail -1 "$1" | sed "s/.*\"$2\":\([^,}]*\).*/\1/"; }

@test "a run ends with checkpoints, their name and a log" {
    [ "$(cat "$D/run/latest")" = step-00000012 ]
    [ "$(ls "$D/run")" = "input
latest
log.jsonl
step-00000004
step-00000008
step-00000012" ]
    [ "$(ls "$D/run/step-00000012")" = "config.json
model.safetensors
state.safetensors" ]
    [ "$(grep -c '"kind":"step"' "$D/run/log.jsonl")" = 12 ]
    [ "$(grep -c '"kind":"valid"' "$D/run/log.jsonl")" = 2 ]
    [ "$(last "$D/run/log.jsonl" step)" = 12 ]
}

@test "the loss falls, from bf16 and from fp8 alike" {
    "$BIN/draft-extract" -q "$D/packed" -m "$TARGET" --taps 0,1 --aux fp8 -o "$D/fp8"
    VALID=$IN train "$D/bf16run" -q --steps 120 --valid-every 0 --save-every 0
    INPUT=$D/fp8 VALID=$D/fp8 train "$D/fp8run" -q --steps 120 --valid-every 0 --save-every 0
    bf16=$(last "$D/bf16run/log.jsonl" loss) fp8=$(last "$D/fp8run/log.jsonl" loss)
    echo "$bf16 $fp8"
    awk "BEGIN {d = $bf16 - $fp8; exit !($bf16 < 3 && d < 0.05 && d > -0.05)}"
    [ "$(ls "$D/bf16run")" = "input
latest
log.jsonl
step-00000120" ]
}

@test "a complete run is left alone" {
    cp -r "$D/run" "$D/again"
    run train "$D/again"
    [ "$status" = 0 ]
    [[ $output == *"is complete"* ]]
    diff -r "$D/run" "$D/again"
}

@test "threads do not change a bit" {
    train "$D/threads" -q -j 3
    diff -r "$D/run" "$D/threads"
}

@test "a run that was killed goes on and ends the same" {
    EXEC='exec' long "$D/killed" &
    until [ -d "$D/killed/step-00000030" ]; do kill -0 $! && sleep 0.01; done
    kill -KILL $!
    wait $! || true
    [ ! -e "$D/killed/step-00000120" ]
    long "$D/killed"
    diff -r "$D/long" "$D/killed"
}

@test "a signal saves the step and ends with 75" {
    EXEC='exec' long "$D/stopped" 2>"$D/stderr" &
    until [ -d "$D/stopped/step-00000030" ]; do kill -0 $! && sleep 0.01; done
    kill -TERM $!
    status=0
    wait $! || status=$?
    [ $status = 75 ]
    grep -q "stopped by a signal after step" "$D/stderr"
    [ "$(cat "$D/stopped/latest")" != step-00000120 ]
    long "$D/stopped"
    diff -r "$D/long" "$D/stopped"
}

@test "a stream gives the bytes of the folder" {
    train "$D/folder" -q --steps 2
    cat "$IN"/*.safetensors | INPUT=- train "$D/stream" -q --steps 2
    rm "$D/folder/input" # a stream has no digest before its end
    diff -r "$D/folder" "$D/stream"
    # And with no file between the stages; those before end when nobody reads on.
    "$BIN/draft-pack" -q tests/micro/train.jsonl -m "$TARGET" --length 96 --seed 1 \
        --valid 0.2 --valid-output "$D/packed-again" -o - |
        "$BIN/draft-extract" -q - -m "$TARGET" --taps 0,1 -o - |
        INPUT=- train "$D/piped" -q --steps 2
    diff -r "$D/folder" "$D/piped"
}

@test "a stream that ends early costs no step" {
    cat "$IN"/*.safetensors >"$D/whole"
    INPUT=- refused 78 "is saved)" \
        train "$D/short" -q --steps 900 --save-every 0 --valid-every 0 <"$D/whole"
    [[ $stderr =~ after\ row\ ([0-9]+):.*\(step\ ([0-9]+)\ is ]]
    step=${BASH_REMATCH[2]}
    [ $((BASH_REMATCH[1] / 2)) = "$step" ]
    [ "$(cat "$D/short/latest")" = "$(printf 'step-%08d' "$step")" ]
}

@test "a signal ends the wait for a stream that brings no more" {
    rows=$("$BIN/draft-inspect" -q "$IN" | sed -n 's/^ *rows  *//p')
    mkfifo "$D/fifo"
    (
        cat "$IN/hidden-00000.safetensors"
        exec sleep 30
    ) >"$D/fifo" 3>&- &
    writer=$!
    INPUT=- EXEC='exec' train "$D/waiting" -q --steps 1000 <"$D/fifo" 2>"$D/stderr" 3>&- &
    trainer=$!
    until [ "$(grep -c '"kind":"step"' "$D/waiting/log.jsonl")" = $((rows / 2)) ]; do
        sleep 0.05
    done
    begun=$SECONDS status=0
    kill -TERM $trainer
    wait $trainer || status=$?
    kill $writer
    [ $status = 75 ]
    [ $((SECONDS - begun)) -lt 15 ]
    grep -q "stopped by a signal after step $((rows / 2)) of 1000: saved" "$D/stderr"
}

@test "one run at a time in a folder" {
    exec 9>"$D/run/.train.lock"
    flock 9
    refused 75 "run: another process is at work here (it holds" train "$D/run" -q
    exec 9>&-
    train "$D/run" -q
}

@test "what does not fit the folder is refused with 78 and named" {
    refused 78 "another --lr" train "$D/run" --lr 1e-3
    refused 78 "another --accumulate" train "$D/run" --accumulate 1
    refused 78 "another --seed" train "$D/run" --seed 2
    VALID=$IN refused 78 "another valid" train "$D/run"
    INPUT=$D/packed-valid.hidden refused 78 "another input" train "$D/run"
    refused 78 "vocabulary" train "$D/x" --mask-id 512
    [ ! -e "$D/x" ]
}

@test "wrong calls are refused with 64" {
    refused 64 "-m TARGET" "$BIN/draft-train" "$IN" -o "$D/x" --mask-id 511
    refused 64 "-o RUN" "$BIN/draft-train" "$IN" -m "$TARGET" --mask-id 511
    refused 64 "--rope-theta 1: 0 or above 1" train "$D/x" --rope-theta 1
    refused 64 "gamma" train "$D/x" --gamma -2
    refused 64 "no input" "$BIN/draft-train" -o "$D/x" -m "$TARGET" --mask-id 511
    refused 64 "--mask-id" "$BIN/draft-train" "$IN" -o "$D/x" -m "$TARGET"
    refused 64 "--steps" train "$D/x" --epochs 2
    refused 64 "--block" train "$D/x" --block 1
    refused 64 "stands alone" train "$D/x" -
    run --separate-stderr bash -c "cat $IN/* | $BIN/draft-train - -o $D/x -m $TARGET \
        --mask-id 511"
    [ "$status" = 64 ]
    [[ $stderr == *"--steps is needed"* ]]
    [ ! -e "$D/x" ]
}

@test "bad input is refused with 65 or 66" {
    INPUT=$D/none refused 66 "none" train "$D/x"
    INPUT=$D/packed refused 65 "no hidden states" train "$D/x"
    cp -r "$TARGET" "$D/other"
    printf ' ' >>"$D/other/config.json"
    TARGET=$D/other refused 65 "another target" train "$D/x"
    cp -r "$IN" "$D/cut"
    rm "$D/cut"/hidden-end.safetensors
    INPUT=$D/cut refused 65 "" train "$D/x"
    [ ! -e "$D/x" ]
    cat "$IN"/*-0*.safetensors | head -c 100000 >"$D/cut.stream"
    INPUT=- refused 65 "stdin" train "$D/x" <"$D/cut.stream"
}

@test "a checkpoint opens in Python and has exactly the tensors of a drafter" {
    python=build/venv/bin/python
    [ -x "$python" ] || skip "no build/venv (scripts/deps.sh python)"
    "$python" - "$D/run/step-00000012" <<'EOF'
import json, sys
from safetensors import safe_open

config = json.load(open(sys.argv[1] + "/config.json"))
h, i, d = (config[k] for k in ("hidden_size", "intermediate_size", "head_dim"))
q, kv = config["num_attention_heads"] * d, config["num_key_value_heads"] * d
taps = len(config["dflash_config"]["target_layer_ids"])
want = {"fc.weight": [h, taps * h], "hidden_norm.weight": [h], "norm.weight": [h]}
for l in range(config["num_hidden_layers"]):
    layer = {"input_layernorm": [h], "post_attention_layernorm": [h],
             "self_attn.q_proj": [q, h], "self_attn.k_proj": [kv, h],
             "self_attn.v_proj": [kv, h], "self_attn.o_proj": [h, q],
             "self_attn.q_norm": [d], "self_attn.k_norm": [d],
             "mlp.gate_proj": [i, h], "mlp.up_proj": [i, h], "mlp.down_proj": [h, i]}
    want |= {f"layers.{l}.{name}.weight": shape for name, shape in layer.items()}
with safe_open(sys.argv[1] + "/model.safetensors", "np") as f:
    parts = {name: f.get_slice(name) for name in f.keys()}
    assert {n: p.get_shape() for n, p in parts.items()} == want, parts.keys()
    assert {p.get_dtype() for p in parts.values()} == {"BF16"}
EOF
}

@test "the self-test finds all as it must be" {
    run "$BIN/draft-train" --selftest -j 2
    echo "$output"
    [ "$status" = 0 ]
    [[ $output == *"all as it must be"* && $output != *WRONG* ]]
    [ "$(grep -c ": ok" <<<"$output")" = 13 ]
    refused 64 "reads nothing" "$BIN/draft-train" --selftest "$IN"
}

@test "the plan is printed and nothing is made" {
    run train "$D/x" --plan
    [ "$status" = 0 ]
    [[ $output == *activations*total* ]]
    [[ $output != *logits* ]]
    [ ! -e "$D/x" ]
}

@test "a card's memory is planned without a card" {
    run train "$D/x" --plan -d cuda
    [ "$status" = 0 ]
    for name in scratch products logits vocabulary weights gradients optimizer row activations; do
        [[ $output == *"$name"* ]]
    done
    awk '$1 == "total" { exit $2 != sum } $2 ~ /^[0-9]+$/ { sum += $2 }' <<<"$output"
    [ ! -e "$D/x" ]
}
