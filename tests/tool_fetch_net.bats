#!/usr/bin/env bats
# draft-fetch from servers: the fault server answers well or badly, the files are right.
# shellcheck disable=SC2086  # $s3 is a list of words

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
    for _ in $(seq 600); do [ -s port ] && break; sleep 0.1; done
    url=http://127.0.0.1:$(cat port)
    s3="--no-sign --endpoint $url"
}

# faults [SPEC]...: from now on.
faults() {
    printf '%s\n' "$@" | python3 -c 'import sys, urllib.request as u
u.urlopen(u.Request(sys.argv[1], sys.stdin.buffer.read(), method="PUT")).read()' "$url/-/faults"
}

same() {
    diff -r --exclude .draft-fetch "$1" "$2" >&2 && [ ! -e "$2/.draft-fetch/tmp" ]
}

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

@test "listings in pages, as JSON, in parts" {
    for i in $(seq 40); do printf '%s' "$i" >src/f$i; done
    serve --page 7
    run -0 --separate-stderr "$fetch" s3://b -o dst $s3 --json --dry-run
    [ "$(grep -c '"state":"wanted"' <<<"$output")" = 45 ]
    [[ $output == *'"key":"f7","from":"f7","size":1,'*'"etag":"\"'* ]]
    for i in 0 1 2; do "$fetch" -q s3://b -o dst $s3 --part $i/3; done
    same src dst
    run -0 --separate-stderr "$fetch" s3://b -o dst $s3 --json
    [ "$(grep -c '"state":"there"' <<<"$output")" = 45 ]
}

@test "what changed at the source is fetched, by ETag" {
    serve
    "$fetch" -q s3://b -o dst $s3
    printf ONE >src/one.txt
    kill "$server"
    serve
    run -0 "$fetch" s3://b -o dst $s3
    [[ $output == *"1 objects fetched (3 B), 4 there already"* ]]
    same src dst
}

@test "URLs, and a list of them" {
    serve
    run -0 "$fetch" "$url/b/a/large.bin" "$url/b/a%20b/%23%25%2B%C3%A9.txt" -o dst \
        --part-size 65536
    cmp src/a/large.bin dst/large.bin
    cmp "src/a b/#%+é.txt" "dst/#%+é.txt"
    run -0 "$fetch" "$url/b/a/large.bin" -o dst
    [[ $output == *"nothing to do"* ]]
    run -66 "$fetch" "$url/b/none" "$url/b/one.txt" -o d2
    cmp src/one.txt d2/one.txt
    sum=$(sha256sum <src/a/large.bin | cut -d ' ' -f 1)
    printf '# two\n\n%s/b/a/large.bin %s\r\n%s/b/empty\n' "$url" "$sum" "$url" >urls
    run -0 "$fetch" --urls urls -o d3 --part-size 65536
    cmp src/a/large.bin d3/large.bin
    [ -f d3/empty ]
    [ ! -s d3/empty ]
    run -0 "$fetch" --urls urls -o d3
    [[ $output == *"1 there already"* ]]
    printf '%064d %s/b/a/large.bin\n' 0 "$url" >urls
    run -65 "$fetch" --urls urls -o d3 # what is there is not what is asked for now
    zeros=$(printf '%064d' 0)
    [[ $output == *"large.bin: damaged: its SHA-256 is $sum, not $zeros, from $url/b/a/large.bin"* ]]
    cmp src/a/large.bin d3/large.bin
    printf '%s %s/b/a/large.bin?sig=secret\n' "$zeros" "$url" >urls
    run -65 "$fetch" --urls - -o d4 <urls
    [[ $output == *"is $sum, not $zeros, from $url/b/a/large.bin"* && $output != *secret* ]]
    [ ! -e d4/large.bin ]
    printf '\xef\xbb\xbf%s/b/one.txt\n' "$url" >urls
    run -0 "$fetch" --urls urls -o d5
    cmp src/one.txt d5/one.txt
    echo "$url/b/empty xyz" >urls
    run -65 "$fetch" --urls urls -o d5
    [[ $output == *"urls: line 1: neither a URL"* ]]
}

@test "a server without ranges or lengths, and redirects" {
    serve --fault "norange times=all" --fault "chunked times=all match=a/*"
    sum=$(sha256sum <src/a/large.bin | cut -d ' ' -f 1)
    echo "$url/b/a/large.bin $sum" >urls
    run -0 "$fetch" "$url/b/one.txt" --urls urls -o dst --part-size 65536
    cmp src/a/large.bin dst/large.bin
    cmp src/one.txt dst/one.txt
    port=${url##*:}
    faults "redirect times=all match=one.txt skip=1 times=1 to=http://localhost:$port"
    run -0 "$fetch" "$url/b/one.txt" -o d2
    cmp src/one.txt d2/one.txt
    faults "redirect times=all here=1 to=http://127.0.0.1:$port"
    run -78 "$fetch" "$url/b/one.txt?sig=secret" -o d3
    [[ $output == *"$url/b/one.txt: redirected 11 times: is it a circle?"* ]]
    [[ $output != *secret* ]]
    faults "redirect times=1 op=list,get to=http://localhost:$port"
    run -0 "$fetch" s3://b -o d4 $s3
    same src d4
}

@test "a body that ends early, and nobody says how long it was" {
    serve --fault "nolength at=1000 match=*/large.bin times=all"
    run -69 "$fetch" s3://b -o dst $s3 --retries 1
    [[ $output == *"a/large.bin: 1000 of 3000000 bytes came"*"1 of 5 objects failed"* ]]
    [ ! -e dst/a/large.bin ]
    faults "nolength at=1000 skip=1 match=*/large.bin times=all" # the listing knows
    run -69 "$fetch" "$url/b/a/large.bin" -o d2 --retries 1
    [[ $output == *"1000 of 3000000 bytes came"* ]]
    faults "norange match=*.txt times=all" "nolength match=*.txt times=all"
    run -0 "$fetch" "$url/b/one.txt" -o d2
    [[ $output == *"one.txt: not checked: the server tells neither its size"* ]]
    cmp src/one.txt d2/one.txt
    printf '%s %s/b/one.txt\n' "$(sha256sum <src/one.txt | cut -d ' ' -f 1)" "$url" >urls
    run -0 "$fetch" --urls urls -o d3
    [[ $output != *"not checked"* ]]
    faults "norange match=*.txt times=all" "chunked match=*.txt times=all" # has an end
    run -0 "$fetch" "$url/b/one.txt" -o d4
    [[ $output != *"not checked"* ]]
}

@test "an object that changes midway is refused, and the good file stays" {
    serve
    "$fetch" -q s3://b -o dst $s3
    touch -d 2001-01-01 src/a/large.bin # the file here is no longer what was fetched
    touch dst/a/large.bin
    faults "change skip=1 match=*/large.bin"
    run -75 "$fetch" s3://b -o dst $s3 --part-size 1000000
    [[ $output == *"a/large.bin changed while it was fetched"* ]]
    cmp src/a/large.bin dst/a/large.bin
    run -0 "$fetch" s3://b -o dst $s3 --part-size 1000000
    ! cmp -s src/a/large.bin dst/a/large.bin
    [ -z "$(find dst/.draft-fetch -name '*.part')" ]
}

@test "damage at the source is named, and permanent" {
    serve --checksum crc32c
    for f in "flip times=all match=one.txt" "flip times=all match=*/large.bin"; do
        faults "$f"
        rm -rf dst
        run -65 "$fetch" s3://b -o dst $s3 --part-size 1000000
        [[ $output == *"damaged: CRC-32C is"* ]]
        [[ $output == *"4 objects fetched"*"1 failed"* ]]
    done
}

@test "one that is damaged does not end those that are slow" {
    serve --fault "drip bytes=300000 secs=0.4 match=*large.bin times=all"
    printf '%064d %s/b/one.txt\n%s/b/a/large.bin\n' 0 "$url" "$url" >urls
    run -65 "$fetch" --urls urls -o dst
    [[ $output == *"one.txt: damaged: its SHA-256 is "*"1 of 2 objects failed"* ]]
    cmp src/a/large.bin dst/large.bin
}

@test "what fails for good has its own status, the others proceed" {
    serve
    faults "status times=all match=one.txt status=403 code=AccessDenied"
    run -77 "$fetch" s3://b -o dst $s3
    [[ $output == *"one.txt: status 403: AccessDenied"* ]]
    [[ $output == *"4 objects fetched"* ]]
    faults "status times=all match=one.txt"
    run -69 "$fetch" s3://b -o dst $s3 --retries 2
    [[ $output == *"status 503: SlowDown"* ]]
    : >log
    faults "status times=all op=list"
    run -69 "$fetch" s3://b/a -o d2 $s3 --retries 2
    [ "$(grep -c '"op": "list"' log)" = 3 ] # the first, and two after it
    faults "token times=all op=list"
    run -65 "$fetch" s3://b -o d2 $s3
    [[ $output == *"circle"* ]]
}

@test "stopped by a signal, with failures before" {
    serve --fault "status times=all match=one.txt status=403 code=AccessDenied" \
        --fault "wait times=all match=*/large.bin secs=60"
    "$fetch" s3://b -o dst $s3 2>err &
    pid=$!
    for _ in $(seq 200); do grep -q AccessDenied err && break; sleep 0.05; done
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 77 ] # as trying again does not mend it
    grep -q "stopped by a signal, and 1 of 5 objects failed; for example one.txt: status 403" err
}

@test "killed in the middle of a large object: the parts that came are kept" {
    serve
    faults "wait times=all match=*/large.bin secs=0.1"
    "$fetch" -q s3://b -o dst $s3 --part-size 100000 --connections 2 &
    pid=$!
    for _ in $(seq 200); do # until the journal has three parts
        [ "$(cat dst/.draft-fetch/tmp/*.have.part 2>/dev/null | wc -l)" -lt 4 ] || break
        sleep 0.05
    done
    kill -9 $pid
    wait $pid || true
    [ "$(find dst/.draft-fetch -name '*.part' | wc -l)" = 2 ]
    faults ""
    : >log
    run -0 "$fetch" s3://b -o dst $s3 --part-size 200000 # the size may be another one
    [[ $output == *" from an earlier run, 0 retries"* && $output != *" 0 B from"* ]]
    same src dst
}

@test "a listing without an end stays within --memory" {
    serve --fault "endless op=list times=all"
    cat >peak.py <<'PY'
import resource, subprocess, sys
rc = subprocess.run(sys.argv[1:]).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, "KiB at most")
sys.exit(rc)
PY
    run -78 timeout 60 python3 peak.py "$fetch" s3://b -o dst $s3 --memory 40MiB
    [[ $output == *"s3://b: the listing does not end before --memory does: "*"000 objects so far"* ]]
    peak=$(sed -n 's/ KiB at most//p' <<<"$output")
    case $BIN in
    *address* | *thread*) ;; # a sanitizer's memory is not
    *) [ "$peak" -lt $((40 * 1024)) ] || { echo "$output"; false; } ;;
    esac
    # a list of URLs that does not end
    yes "$url/b/one.txt" >urls &
    yes=$!
    sleep 0.2
    kill $yes
    run -78 timeout 60 python3 peak.py "$fetch" --urls urls -o dst --memory 40MiB
    [[ $output == *"urls: the listing does not end before --memory does"* ]]
}

@test "a rate is kept" {
    serve
    start=$(date +%s%N)
    run -0 "$fetch" s3://b/a -o dst $s3 --rate 1500000
    took=$((($(date +%s%N) - start) / 1000000))
    [ $took -ge 1400 ] # two seconds, on a machine that is idle
    [ $took -lt 20000 ]
    same src/a dst
}

@test "progress names the object that takes longest" {
    head -c 3000000 /dev/urandom >src/there.bin
    serve
    "$fetch" -q s3://b/there.bin -o dst $s3
    faults "wait op=get match=*/large.bin secs=1 times=all"
    run -0 script -qec "'$fetch' s3://b -o dst $s3 --part-size 1000000 --connections 1" /dev/null
    echo "$output" | tr '\r' '\n'
    [[ $output == *"left, "*" of 6 objects, 1 requests, 0 retries, a/large.bin at 67 %"* ]]
    same src dst
}

@test "what cannot work is refused at once" {
    serve
    begun=$(date +%s)
    for bad in http://127.0.0.1:99999 http://127.0.0.1:0 http://127.0.0.1:x; do
        run -64 "$fetch" s3://b -o dst --no-sign --endpoint $bad
        [[ $output == *"$bad: a port is a number from 1 to 65535"* ]]
        run -64 "$fetch" "$bad/x" -o dst
        HF_ENDPOINT=$bad run -64 "$fetch" hf://a/b -o dst
    done
    HF_ENDPOINT=ftp://h run -64 "$fetch" hf://a/b -o dst
    run -78 "$fetch" s3://b -o dst --no-sign --endpoint "http://[zz]"
    run -64 "$fetch" "$url/" "$url/b/one.txt" -o dst
    [[ $output == *"$url/: the URL ends in no name for a file"* ]]
    cmp src/one.txt dst/one.txt
    faults "plainstatus status=204 op=get,list times=all"
    run -78 "$fetch" "$url/b/one.txt?sig=secret" -o d2
    [[ $output == *"$url/b/one.txt: status 204, which is no reply to GET"* && $output != *secret* ]]
    run -78 "$fetch" s3://b -o d2 $s3
    [[ $output == *"s3://b: status 204, which is no reply to GET"* ]]
    for empty in "" "-o" "--include" "--endpoint" "--region"; do
        run -64 "$fetch" "$url/b/one.txt" -o d2 $empty ""
        [[ $output == *" is empty"* ]]
    done
    [ ! -e d2/one.txt ]
    [ $(($(date +%s) - begun)) -lt 20 ]
}

@test "no server, and one that stops" {
    run -69 "$fetch" s3://b -o dst --no-sign --endpoint http://127.0.0.1:1 --retries 1
    [[ $output == *"onnect"* && $output != *"trying again"* ]]
    for what in "s3://b -o dst" "http://127.0.0.1:1/x -o dst" "--put src s3://b"; do
        run -69 "$fetch" $what --no-sign --endpoint http://127.0.0.1:1 --retries 3
        [[ $output == *"onnect"*"(attempt 3 of 4; trying again)"*"onnect"* ]]
    done
    serve
    "$fetch" -q s3://b/a/b -o dst $s3
    faults "stall times=all at=1 secs=60"
    run -69 "$fetch" s3://b -o dst $s3 --retries 1 --stall 1
    [[ $output == *"silent"* ]]
    run -78 "$fetch" s3://b -o dst $s3 --memory 1M
    [[ $output == *"would do"* ]]
}
