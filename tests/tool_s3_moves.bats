#!/usr/bin/env bats
# draft-fetch when the bucket is elsewhere, the clock is wrong or the keys are too old:
# what is learnt from one reply is used by all requests, and keys go to nobody else.

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    for v in $(env | grep -o '^AWS_[A-Z_]*'); do unset "$v"; done
    export HOME=$PWD AWS_EC2_METADATA_DISABLED=true
    export AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret0 AWS_SESSION_TOKEN=token0
    SRC=$PWD/src
    mkdir src
    for i in $(seq 60); do echo "$i" >"src/$i"; done
    head -c 300000 /dev/urandom >src/large.bin
    fetch=$BIN/draft-fetch
}

teardown() { stop_servers; }

# serve [OPTION]...: a server that wants signatures.
serve() {
    stop_servers
    rm -rf log dst
    fault_server --log log --auth id:secret0:token0 "$@"
    port=${url##*:}
}

# fetched [OPTION]...: the bucket arrives whole, all of it asked for at once.
fetched() {
    rm -rf dst
    run timeout 60 "$fetch" s3://b -o dst --endpoint "$url" --part-size 65536 "$@"
    [ "$status" = 0 ] || { echo "$status: $output"; return 1; }
    same src dst
}

count() { grep -c "$1" log || true; }

@test "a bucket of another region: 400, 301 and 307, signed anew" {
    serve --region eu-west-9
    fetched
    [ "$(count '"status": 400')" = 1 ] # of the listing; then it is known
    for code in 301 307; do
        set_faults "redirect status=$code region=eu-west-9 op=list times=all"
        fetched
        [ "$(count "\"status\": $code")" = 1 ]
    done
    serve # in the middle, when many requests have been signed already
    for code in 301 307 400; do
        set_faults "redirect status=$code region=mars-1 op=get,head times=all"
        fetched
        [ "$(count "\"status\": $code")" -ge 1 ]
    done
    set_faults "redirect status=307 region=mars-1 op=get times=all here=1"
    rm -rf dst
    run timeout 60 "$fetch" s3://b/1 -o dst --endpoint "$url" --retries 3
    [ "$status" = 78 ]
    [[ $output == *"status 307"* ]]
}

@test "a redirect to a host below the endpoint is signed for that host" {
    serve
    url=http://localhost:$port
    for op in list get,head list,get,head; do
        set_faults "redirect op=$op times=all to=http://other.localhost:$port"
        fetched
    done
    [ "$(count '"op": "get".*"host": "other.localhost')" -ge 120 ]
    ! grep '"host": "other.localhost' log | grep -v '"x-amz-security-token"'
}

@test "a redirect to another host never carries keys" {
    serve # the other host: it wants a signature, and must not see one
    elsewhere=$port other=${SERVERS[0]}
    mv log other.log
    SERVERS=()
    fault_server --log log --auth id:secret0:token0
    SERVERS+=("$other")
    for to in "127.0.0.1:$elsewhere" "localhost:$elsewhere"; do # another port is another, too
        set_faults "redirect op=list,get times=all to=http://$to"
        run timeout 60 "$fetch" s3://b -o dst --endpoint "http://localhost:${url##*:}" --retries 1
        [ "$status" = 77 ]
        [[ $output == *"redirected to another host, which gets no keys"* ]]
    done
    [ "$(grep -c '"op": "list"' other.log)" -ge 2 ]
    ! grep -E '"secrets": \["' other.log
}

@test "a redirect to another host that wants no keys" {
    fault_server --log other.log
    to=$url
    serve_other=${SERVERS[0]}
    SERVERS=()
    fault_server --log log --auth id:secret0:token0 \
        --fault "redirect op=get times=all to=${to/127.0.0.1/localhost}"
    SERVERS+=("$serve_other")
    fetched
    [ "$(grep -c '"op": "get"' other.log)" -ge 61 ] # although all were told at once
    ! grep -E '"secrets": \["' other.log
}

@test "a redirect that goes in a circle ends" {
    serve
    set_faults "redirect times=all op=list match=* here=1 to=http://a.localhost:$port"
    url=http://localhost:$port
    run timeout 60 "$fetch" s3://b -o dst --endpoint "$url"
    [ "$status" = 78 ]
    [[ $output == *"status 307"* ]]
    # between two hosts
    set_faults "redirect times=all op=list to=http://a.localhost:$port" \
        "redirect times=all op=list to=http://b.localhost:$port"
    run timeout 60 "$fetch" s3://b -o dst --endpoint "$url" --retries 3
    [ "$status" = 78 ]
    [[ $output == *"status 307"* ]]
}

@test "a clock that is wrong: learnt from Date, and signed again" {
    serve
    for clock in 7200 -7200; do
        curl -sf -X PUT --data-binary "$clock" "$url/-/clock"
        : >log
        fetched
        [ "$(count '"status": 403')" = 1 ] # of the listing; then it is known
    done
    # a clock that jumps while requests are in flight
    set_faults "wait op=get secs=0.3 times=8"
    : >log
    rm -rf dst
    "$fetch" -q s3://b -o dst --endpoint "$url" --connections 8 2>err &
    pid=$!
    for _ in $(seq 1000); do [ "$(count '"op": "list"')" = 0 ] || break; sleep 0.05; done
    curl -sf -X PUT --data-binary 90000 "$url/-/clock"
    wait $pid || { cat err; false; }
    same src dst
    # a server that does not say its time
    set_faults "nodate op=list times=all"
    run -77 "$fetch" s3://b -o dst --endpoint "$url"
    [[ $output == *RequestTimeTooSkewed* ]]
}

@test "keys that have expired and that nobody renews" {
    serve
    set_faults "expired op=get skip=20 times=all"
    run -77 timeout 60 "$fetch" s3://b -o dst --endpoint "$url"
    [[ $output == *"the keys have expired and nobody has newer ones"*ExpiredToken* ]]
    [ -z "$(diff -rq --exclude .draft-fetch src dst | grep differ)" ] # what came is good
    set_faults "expired op=list times=all"
    run -77 timeout 60 "$fetch" s3://b -o dst --endpoint "$url"
    [[ $output == *"the keys have expired"* ]]
    set_faults "expired op=put times=all"
    run -77 timeout 60 "$fetch" --put src s3://b/x --endpoint "$url"
    [[ $output == *"the keys have expired"* ]]
}

@test "the bucket in the host name, or in the path" {
    serve --region eu-west-9
    url=http://s3.localhost:$port
    fetched --addressing virtual
    [ "$(grep '"op": "get"' log | grep -vc '"host": "b.s3.localhost')" = 0 ]
    rm -rf dst log
    fetched --addressing path
    rm -rf dst
    fetched --addressing auto
    run -64 "$fetch" s3://b -o dst --endpoint "$url" --addressing sideways
    run -0 "$fetch" --put src/1 s3://b/up --endpoint "$url" --addressing virtual
    curl -sf "$url/-/log" | grep -q '"op": "put", "key": "up/1".*"host": "b.s3.localhost'
}

@test "connections spread over the addresses of a name" {
    mkdir etc
    for i in 2 3 4 5; do echo "127.0.0.$i many.test"; done >etc/hosts
    serve --address 0.0.0.0 --fault "wait op=get secs=0.05 times=all"
    cp etc/hosts hosts
    run unshare -m sh -c 'mount --bind hosts /etc/hosts && getent ahostsv4 many.test'
    [ "$status" = 0 ] && [ "$(grep -c STREAM <<<"$output")" = 4 ] || skip "cannot name hosts"
    run unshare -m sh -c 'mount --bind hosts /etc/hosts && exec "$@"' sh \
        timeout 100 "$fetch" s3://b -o dst --endpoint "http://many.test:$port" -j 1
    [ "$status" = 0 ]
    same src dst
    [ "$(grep -o '"at": "[0-9.]*"' log | sort -u | wc -l)" -ge 3 ]
}
