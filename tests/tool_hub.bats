#!/usr/bin/env bats
# draft-fetch from the Hugging Face hub, as tests/hubd.py plays it from a recorded listing.

setup() {
    bats_require_minimum_version 1.5.0
    command -v python3 >/dev/null || skip "no python3"
    tests=$BATS_TEST_DIRNAME
    cd "$BATS_TEST_TMPDIR"
    unset HF_TOKEN HF_HOME HF_TOKEN_PATH
    export HOME=$PWD
    fetch=$BIN/draft-fetch
}

teardown() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
}

# serve [OPTION]...: starts the hub and its store.
serve() {
    rm -f port log
    python3 "$tests/hubd.py" --ready port --log log "$@" 3>&- &
    server=$!
    for _ in $(seq 600); do [ -s port ] && break; sleep 0.1; done
    read -r hub_port _ <port
    export HF_ENDPOINT=http://127.0.0.1:$hub_port
}

# The files of a repository have the recorded hashes; fetched: how many in DEST.
hashes() {
    python3 - "$tests/golden/hub/tree.json" "$1" "$2" <<'PY'
import hashlib, json, os, sys
n = 0
for page in json.load(open(sys.argv[1], encoding="utf-8"))[sys.argv[2]]["pages"]:
    for e in page:
        path = os.path.join(sys.argv[3], e["path"])
        if e["type"] == "file" and os.path.exists(path):
            data = open(path, "rb").read()
            assert hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest() == e["oid"], path
            n += 1
print(n)
PY
}

@test "a model: pages of its listing, a redirect to a host that does not see the token" {
    serve
    export HF_TOKEN=hf_secret
    run -0 "$fetch" hf://acme/tiny -o dst --part-size 65536 -v
    [[ $output == *"6 objects fetched"* ]]
    [[ $output != *hf_secret* ]]
    [ "$(hashes models/acme/tiny dst)" = 6 ]
    [ ! -e dst/.gitattributes ]
    [ "$(stat -c %y dst/config.json | cut -c -19)" = "$(TZ=UTC date -d '2026-02-03 04:05:06Z' '+%F %T')" ]
    ! grep leak log
    [ "$(grep -c '"op": "get"' log)" -ge 8 ] # in parts, from the store
    run -0 "$fetch" hf://acme/tiny@main/ -o dst
    [[ $output == *"nothing to do: all 6 objects are there"* ]]
}

@test "globs, folders, one file, a revision, a renamed model" {
    serve
    run -0 "$fetch" 'hf://acme/tiny@refs%2Fpr%2F1/*.safetensors' -o d1
    [ "$(hashes models/acme/tiny d1)" = 2 ]
    run -0 "$fetch" hf://models/acme/tiny/onnx -o d2
    [ "$(hashes models/acme/tiny d2)" = 2 ]
    run -0 "$fetch" hf://acme/tiny/config.json -o d3
    [ "$(hashes models/acme/tiny d3)" = 1 ]
    run -0 "$fetch" hf://old/name -o d4
    [ "$(hashes models/acme/tiny d4)" = 6 ]
    run -66 "$fetch" 'hf://acme/tiny/*.gguf' -o d5
    [[ $output == *"there are no objects"* ]]
    run -66 "$fetch" hf://acme/tiny@v2 -o d5
    [[ $output == *"Invalid rev id"* ]]
    for bad in hf:// hf://acme hf://acme/ hf://datasets/acme hf://acme/tiny@ \
        hf://../x hf://a/b@%zz; do
        run "$fetch" "$bad" -o d5
        [ "$status" = 64 ] || [ "$status" = 65 ]
    done
}

@test "a private data set wants a token, from a variable or a file" {
    serve
    run -77 "$fetch" hf://datasets/acme/talk -o dst
    [[ $output == *"Repository not found"* ]]
    [[ $output == *HF_TOKEN* ]]
    mkdir -p .cache/huggingface
    echo hf_secret >.cache/huggingface/token
    run -0 "$fetch" hf://datasets/acme/talk -o dst
    [ "$(hashes datasets/acme/talk dst)" = 1 ]
    HF_TOKEN_PATH=$PWD/none run -66 "$fetch" hf://datasets/acme/talk -o d2
    [[ $output == *"$PWD/none: No such file"* ]]
    printf '\xef\xbb\xbfhf_secret\r\n' >marked
    HF_TOKEN_PATH=$PWD/marked run -0 "$fetch" hf://datasets/acme/talk -o d2
    HF_TOKEN=wrong run -77 "$fetch" hf://datasets/acme/talk -o d2
    [[ $output == *"Invalid credentials"* ]]
    HF_TOKEN=$'two\nlines' run -78 "$fetch" hf://datasets/acme/talk -o d2
    [[ $output != *lines* ]]
}

@test "URLs of the store that grow old are asked for anew" {
    serve --old 2
    run -0 "$fetch" hf://acme/tiny -o dst --part-size 65536 --connections 1
    [ "$(hashes models/acme/tiny dst)" = 6 ]
    ! grep leak log
}

@test "bytes that are not those of the listing's hash are refused" {
    serve --fault "flip times=all match=model-00001*"
    run -65 "$fetch" hf://acme/tiny -o dst --retries 1
    [[ $output == *model-00001* ]]
    [ ! -e dst/model-00001-of-00002.safetensors ]
    [ "$(hashes models/acme/tiny dst)" = 5 ]
}

@test "small files are held against the hash by which git knows them" {
    serve --hub-fault "flip op=small match=config.json times=all"
    run -65 "$fetch" hf://acme/tiny -o dst --retries 1
    [[ $output == *"config.json: damaged: its SHA-1 is "*", not "* ]]
    [ ! -e dst/config.json ]
    [ "$(hashes models/acme/tiny dst)" = 5 ]
    kill "$server"
    serve --hub-fault "flip op=small match=README.md" # once
    run -0 "$fetch" hf://acme/tiny -o d2 --part-size 256 # larger than a part
    [ "$(hashes models/acme/tiny d2)" = 6 ]
}

@test "a listing whose Link is long, and one whose Link is too long to be kept" {
    serve --link 3500
    run -0 "$fetch" hf://acme/tiny -o dst
    [ "$(hashes models/acme/tiny dst)" = 6 ]
    kill "$server"
    serve --link 5000
    run -65 "$fetch" hf://acme/tiny -o d2
    [[ $output == *"cannot read the listing: a Link header of over 4095 bytes"* ]]
    [ ! -e d2/config.json ] # not half of a model
}

@test "a reply of the API that cannot be read is asked for again" {
    serve --hub-fault "garbage op=api text=%3Chtml%3E times=2" \
        --hub-fault "cutbody op=api skip=3 times=1"
    run -0 "$fetch" hf://acme/tiny -o dst
    [ "$(hashes models/acme/tiny dst)" = 6 ]
    kill "$server"
    serve --hub-fault "garbage op=api text=%3Chtml%3E times=all"
    run -65 "$fetch" hf://acme/tiny -o d2
    [[ $output == *"cannot read the listing: bad JSON"* ]]
    [ "$(grep -c '"op": "api"' log)" = 3 ]
}

@test "a store and a hub with faults" {
    serve --chaos 0.3 --seed 5
    run -0 "$fetch" hf://acme/tiny -o dst --part-size 65536
    [ "$(hashes models/acme/tiny dst)" = 6 ]
}
