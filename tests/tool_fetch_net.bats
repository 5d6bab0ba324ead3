#!/usr/bin/env bats
# draft-fetch from servers: the fault server answers well or badly, the files are right.

setup() {
    bats_require_minimum_version 1.5.0
    tests=$BATS_TEST_DIRNAME
    cd "$BATS_TEST_TMPDIR"
    mkdir -p src/a/b "src/a b"
    printf one >src/one.txt
    : >src/empty
    head -c 3000000 /dev/urandom >src/a/large.bin
    printf two >src/a/b/two.txt
    printf 'x%.0s' {1..1000} >"src/a b/#%+é.txt"
    fetch=$BIN/draft-fetch
}

teardown() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
}

# serve [OPTION]...: starts the fault server on bucket "b" and sets $url and $s3.
serve() {
    rm -f port
    python3 "$tests/faultd.py" --ready port --bucket b=src --log log "$@" 3>&- &
    server=$!
    for _ in $(seq 100); do [ -s port ] && break; sleep 0.1; done
    url=http://127.0.0.1:$(cat port)
    s3="--no-sign --endpoint $url"
}

same() {
    diff -r --exclude .draft-fetch "$1" "$2" >&2 && [ ! -e "$2/.draft-fetch/tmp" ]
}

# shellcheck disable=SC2086  # $s3 is a list of words
@test "a bucket, a folder of it, one object" {
    serve
    run -0 "$fetch" s3://b -o dst $s3
    [[ $output == *"5 objects fetched"* ]]
    same src dst
    run -0 "$fetch" s3://b/ -o dst $s3
    [[ $output == *"nothing to do: all 5 objects are there"* ]]
    run -0 "$fetch" "s3://b/a b" -o d2 $s3
    same "src/a b" d2
    run -0 "$fetch" s3://b/a/ -o d3 $s3 --part-size 65536
    same src/a d3
    run -0 "$fetch" s3://b/a/b/two.txt -o d4 $s3
    cmp src/a/b/two.txt d4/two.txt
    run -66 "$fetch" s3://b/none -o d5 $s3
    run -66 "$fetch" s3://none/x -o d5 $s3
    [[ $output == *NoSuchBucket* ]]
}

@test "a URL" {
    serve
    run -0 "$fetch" "$url/b/a/large.bin" "$url/b/a%20b/%23%25%2B%C3%A9.txt" -o dst \
        --part-size 65536
    cmp src/a/large.bin dst/large.bin
    cmp "src/a b/#%+é.txt" "dst/#%+é.txt"
    run -66 "$fetch" "$url/b/none" -o dst
}
