#!/usr/bin/env bats
# tool_target.bats - a target that cannot be run is refused by every program at once, and
# before a device is opened.  The device asked for does not exist: who gets as far as to
# open it says so.

setup_file() {
    export target=tests/golden/target-qwen3/model tmp=$BATS_FILE_TMPDIR
    cd "$BATS_TEST_DIRNAME/.." || return 1
    for i in 1 2 3 4 5 6 7 8; do echo "{\"input_ids\":[$i,4,9,1,7,5,12,200]}"; done \
        >"$tmp/text.jsonl"
    "$BIN/draft-pack" -q --length 32 -o "$tmp/packed" "$tmp/text.jsonl"
    "$BIN/draft-extract" -q -m "$target" --taps 0,1 -o "$tmp/hidden" "$tmp/packed"
    "$BIN/draft-train" -q -m "$target" -o "$tmp/run" --layers 1 --heads 2 --kv-heads 1 \
        --head-dim 32 --inter 96 --block 4 --mask-id 511 --anchors 8 --steps 1 "$tmp/hidden"
}

setup() {
    cd "$BATS_TEST_DIRNAME/.." || return 1
    here=$BATS_TEST_TMPDIR
    nowhere=(-d cuda:999)
}

# The programs that run or read a target, each with its own arguments.
programs=(extract verify live walk train)

call() { # PROGRAM TARGET DRAFTER
    case $1 in
    extract) set -- draft-extract -m "$2" --taps 0,1 -o "$here/out" "$tmp/packed" ;;
    verify) set -- draft-extract -m "$2" --verify 1 "$tmp/hidden" ;;
    live) set -- draft-eval -m "$2" --drafter "$3" "$tmp/text.jsonl" ;;
    walk) set -- draft-eval -m "$2" --drafter "$3" --walk "$tmp/hidden" ;;
    train) set -- draft-train -m "$2" -o "$here/new" --layers 1 --block 4 --mask-id 511 \
        --steps 1 "$tmp/hidden" ;;
    esac
    "$BIN/$1" "${nowhere[@]}" "${@:2}"
}

# refused STATUS TEXT TARGET [DRAFTER [PROGRAM...]]: each program says so, in one line,
# within a second.
refused() {
    local want=$1 text=$2 model=$3 drafter=${4-$tmp/run} begun took p
    shift $(($# < 4 ? $# : 4))
    [ $# != 0 ] || set -- "${programs[@]}"
    for p in "$@"; do
        begun=$(date +%s%N)
        run call "$p" "$model" "$drafter"
        took=$((($(date +%s%N) - begun) / 1000000))
        echo "$p: $status, $took ms: $output"
        [ "$status" = "$want" ]
        [ "${#lines[@]}" = 1 ]
        [[ $output == *"$text"* ]]
        [[ $output != *cuda* ]]
        [ $took -lt 1000 ]
        [ ! -e "$here/out" ]
        [ ! -e "$here/new" ]
    done
}

copy() {
    rm -rf "$here/model"
    cp -r "$target" "$here/model"
}

# patch FILE SED: the same length before and after, as a header needs.
patch() {
    local was
    was=$(stat -c %s "$here/model/$1")
    LC_ALL=C sed -i "$2" "$here/model/$1"
    [ "$was" = "$(stat -c %s "$here/model/$1")" ]
    if cmp -s "$here/model/$1" "$target/$1"; then return 1; fi
}

@test "what is whole gets as far as the device" {
    for p in "${programs[@]}"; do
        run call "$p" "$target" "$tmp/run"
        echo "$p: $status: $output"
        [ "$status" = 78 ]
        [[ $output == *"device cuda:999: "* ]]
    done
}

@test "files that are missing, cut or longer" {
    local third=model-00003-of-00005.safetensors
    copy
    rm "$here/model/config.json"
    refused 66 config.json "$here/model"
    copy
    rm "$here/model/$third"
    refused 66 "$third: No such file" "$here/model"
    copy
    truncate -s -1 "$here/model/$third"
    refused 65 "$third: cut: data of" "$here/model"
    truncate -s 20 "$here/model/$third"
    refused 65 "$third: cut: header of" "$here/model"
    copy
    echo >>"$here/model/$third"
    refused 65 "$third: 1 bytes behind the last tensor" "$here/model"
    copy
    truncate -s 100 "$here/model/model.safetensors.index.json"
    refused 65 "index.json: bad JSON" "$here/model"
    copy
    rm "$here/model/model.safetensors.index.json"
    refused 66 "model.safetensors: No such file" "$here/model"
}

@test "tensors that are missing, unknown or of another kind" {
    local index=model.safetensors.index.json second=model-00002-of-00005.safetensors
    copy
    patch $second 's/input_layernorm.weight/input_layernirm.weight/'
    refused 65 "input_layernorm.weight is promised in" "$here/model"
    patch $index 's/0.input_layernorm.weight/0.input_layernirm.weight/'
    refused 65 "tensor model.layers.0.input_layernorm.weight is missing" "$here/model"
    copy
    patch $second 's/"dtype":"BF16","shape":\[160,64\]/"dtype":"BF16","shape":[64,160]/'
    refused 65 "config.json makes it [160, 64]" "$here/model"
    copy
    patch $second 's/"dtype":"BF16","shape":\[160,64\]/"dtype":"F16" ,"shape":[160,64]/'
    refused 78 "is F16, supported are BF16 and F32" "$here/model"
    copy
    sed -i 's/"model.layers.0.input_layernorm.weight": "[^"]*",//' "$here/model/$index"
    refused 65 "tensor model.layers.0.input_layernorm.weight is missing" "$here/model"
    copy
    sed -i 's/"qwen3"/"qwen2"/' "$here/model/config.json"
    refused 65 "q_proj.bias is missing" "$here/model"
}

@test "a config that says nonsense, or what is not supported" {
    wrong() { # STATUS TEXT SED
        copy
        sed -i "$3" "$here/model/config.json"
        refused "$1" "$2" "$here/model"
    }
    wrong 65 "bad JSON" 's/"dtype"/dtype/'
    wrong 78 "hidden_size" 's/"hidden_size": 64/"hidden_size": -64/'
    wrong 65 "config.json makes it" 's/"intermediate_size": 160/"intermediate_size": 161/'
    wrong 65 "layers.4" 's/"num_hidden_layers": 4/"num_hidden_layers": 5/;s/"layer_types": \[/&"full_attention", /'
    wrong 65 "layers.3.input_layernorm.weight is not part of this architecture" \
        's/"num_hidden_layers": 4/"num_hidden_layers": 3/;0,/"full_attention",/{/"full_attention",/d}'
    wrong 78 '"gptq" is not supported' \
        's/"use_cache": true/"quantization_config": {"quant_method": "gptq"}/'
    wrong 78 '"qwen3_moe" is not supported' 's/"qwen3"/"qwen3_moe"/'
}

@test "a drafter that is cut, of other shapes or another target's" {
    local step eval=(live walk)
    step=$tmp/run/$(cat "$tmp/run/latest")
    drafter() {
        rm -rf "$here/drafter"
        cp -r "$step" "$here/drafter"
    }
    drafter
    truncate -s -1 "$here/drafter/model.safetensors"
    refused 65 "cut: data of" "$target" "$here/drafter" "${eval[@]}"
    drafter
    sed -i 's/"intermediate_size": 96/"intermediate_size": 95/' "$here/drafter/config.json"
    refused 65 "config.json makes it" "$target" "$here/drafter" "${eval[@]}"
    drafter
    sed -i 's/"vocab_size": 512/"vocab_size": 513/' "$here/drafter/config.json"
    refused 78 "vocabulary" "$target" "$here/drafter" "${eval[@]}"
    refused 65 "trained on target" tests/golden/target-qwen3-tied/model "$step" "${eval[@]}"
}
