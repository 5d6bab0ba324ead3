#!/usr/bin/env bats
# draft-fetch --put: uploads to the fault server and to real ones, and the way back.

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    for v in $(env | grep -o '^AWS_[A-Z_]*'); do unset "$v"; done
    export HOME=$PWD AWS_EC2_METADATA_DISABLED=true
    export AWS_ACCESS_KEY_ID=id AWS_SECRET_ACCESS_KEY=secret0
    mkdir -p "src/a b" src/deep/er
    printf one >src/one.txt
    : >src/empty
    printf 'x%.0s' {1..1000} >"src/a b/#%+é=&.txt"
    head -c 5500000 /dev/urandom >src/deep/er/large.bin
    fetch=$BIN/draft-fetch
}

teardown() { stop_servers; }

# serve [OPTION]...: starts the fault server with an empty bucket "b".
serve() {
    fault_server --log log --auth id:secret0 "$@"
    export AWS_ENDPOINT_URL_S3=$url
}

put() { "$fetch" --put src s3://b/run/x --part-size 5MiB "$@"; }

# What lies in the bucket comes back equal, and is known to be whole.
comes_back() {
    rm -rf dst
    run -0 "$fetch" s3://b/run/x -o dst
    diff -r --exclude .draft-fetch src dst
}

@test "there and back, in parts, and then there is nothing to do" {
    serve --checksum crc64nvme
    run -0 put
    [[ $output == *"4 objects uploaded (5.25 MiB), 0 there already, 0 failed"* ]]
    [[ $output != *"keeps no CRC64NVME"* ]]
    [ "$(grep -c '"op": "part"' log)" = 2 ]
    comes_back
    run -0 put
    [[ $output == *"nothing to do: all 4 objects are there"* ]]
    printf two >src/one.txt
    printf new >src/new.txt
    run -0 put --dry-run
    [[ $output == *$'3\tnew.txt\n3\tone.txt'* ]]
    run -0 put
    [[ $output == *"2 objects uploaded (6 B), 3 there already"* ]]
    comes_back
    run -0 "$fetch" --put src/one.txt s3://b/run/x/ # the rest stays in the set
    run -0 "$fetch" --put src/one.txt s3://b
    comes_back
}

@test "a server that keeps no checksums: the manifest knows what was sent" {
    serve
    run -0 put
    [[ $output == *"keeps no CRC64NVME of 4 objects"* ]]
    comes_back
    run -0 put
    [[ $output == *"nothing to do"* ]]
    printf two >src/one.txt
    run -0 put --no-checksum
    [[ $output == *"1 objects uploaded (3 B), 3 there already"* ]]
    comes_back
}

@test "half a set is not fetched" {
    serve --checksum crc64nvme --fault "status op=put match=*one.txt status=403 code=AccessDenied times=all"
    run -77 put
    [[ $output == *"one.txt: "*AccessDenied* ]]
    [[ $output == *"3 objects uploaded"*"1 failed"* ]]
    run -75 "$fetch" s3://b/run/x -o dst
    [[ $output == *"run/x/draft-manifest.json: the upload has not ended"* ]]
    [ ! -e dst/empty ]
    curl -s -X PUT --data-binary "" "$url/-/faults"
    run -0 put
    [[ $output == *"4 there already, 0 failed"* ]] # the answer had been lost, not the object
    comes_back
    # an object that is not the one of the set
    curl -s -X PUT --data-binary "change match=*one.txt size=3" "$url/-/faults"
    "$fetch" -q s3://b/run/x/one.txt -o other || true
    run -75 "$fetch" s3://b/run/x -o d2
    [[ $output == *"one.txt is not the one of the set"* ]]
}

# interrupted [OPTION]...: sends a file of four parts, one after another, and ends the run
# by $signal when three have arrived and two of them have been answered.
interrupted() {
    head -c 16000000 /dev/urandom >src/deep/er/large.bin
    curl -s -X PUT --data-binary "wait op=part secs=900 skip=2" "$url/-/faults"
    "$fetch" --put src s3://b/run/x --part-size 5MiB --connections 1 "$@" 2>err &
    pid=$!
    for _ in $(seq 1200); do
        [ "$(curl -s "$url/-/parts")" != 3 ] || break
        sleep 0.05
    done
    kill "-$signal" $pid
    status=0
    wait $pid || status=$?
    curl -s -X PUT --data-binary "" "$url/-/faults"
    left=$(curl -s "$url/-/uploads")
    [ "$left" = 1 ] || { echo "$left uploads are left"; cat err; false; }
    : >log
}

# sent N KEPT: the last run sent N parts, and found KEPT bytes of others.
sent() {
    [ "$(grep -c '"op": "part"' log)" = "$1" ] || { cat log; return 1; }
    [[ $output == *"$2 of parts were there from an interrupted upload"* ]]
}

@test "a signal: the next run goes on with the parts that are there" {
    serve --checksum crc64nvme
    signal=TERM
    interrupted
    [ $status = 75 ]
    run -75 "$fetch" s3://b/run/x -o dst # half a set is none
    run -0 put
    # the third part had arrived, but its answer had not
    sent 1 "15.00 MiB"
    [ "$(grep -c '"op": "create"' log)" = 0 ]
    [ "$(curl -s "$url/-/uploads")" = 0 ]
    comes_back
}

@test "a kill: the next run knows parts by their MD5 where no CRC is kept" {
    serve
    signal=KILL
    interrupted --no-checksum
    run -0 put --no-checksum
    sent 1 "15.00 MiB"
    comes_back
}

@test "a file that has changed meanwhile" {
    serve
    signal=KILL
    interrupted --no-checksum
    printf x | dd of=src/deep/er/large.bin bs=1 seek=6000000 conv=notrunc 2>/dev/null
    run -0 put --no-checksum # the second part is another one, the fourth was missing
    sent 2 "10.00 MiB"
    comes_back
    interrupted --no-checksum # longer: what has come is still right
    printf x >>src/deep/er/large.bin
    run -0 put --no-checksum
    sent 1 "15.00 MiB"
    comes_back
    interrupted --no-checksum # shorter: a part is too long now
    truncate -s 12000000 src/deep/er/large.bin
    run -0 put --no-checksum
    [ "$(grep -c '"op": "part"' log)" = 3 ]
    grep -q '"op": "abort".*"status": 204' log
    [ "$(curl -s "$url/-/uploads")" = 0 ]
    comes_back
    interrupted --no-checksum # and another size of parts
    run -0 put --no-checksum --part-size 6MiB
    [ "$(grep -c '"op": "part"' log)" = 3 ]
    [ "$(curl -s "$url/-/uploads")" = 0 ]
    comes_back
}

@test "an interrupted upload that cannot be gone on with begins anew" {
    serve --page 1 # parts are listed one a page
    signal=KILL
    for fault in "status op=list query=uploads status=403 code=AccessDenied times=all" \
        "status op=parts status=403 code=AccessDenied times=all" \
        "garbage op=parts times=all" "status op=complete status=400 code=InvalidPart"; do
        interrupted --no-checksum
        curl -s -X PUT --data-binary "$fault" "$url/-/faults"
        run -0 put --no-checksum
        [ "$(grep -c '"op": "part"' log)" -ge 4 ]
        [[ $output != *"were there from an interrupted upload"* ]]
        curl -s -X PUT --data-binary "" "$url/-/faults"
        comes_back
    done
    interrupted --no-checksum
    run -0 put --no-checksum
    sent 1 "15.00 MiB"
}

@test "large files side by side, within the memory that is allowed" {
    serve
    rm -r src/deep
    for f in a b c d; do head -c 5300000 /dev/urandom >src/$f.bin; done
    # no part of the first is answered before the next one has begun
    curl -s -X PUT --data-binary "hold op=part match=*/a.bin until=*/b.bin times=all" "$url/-/faults"
    run -0 put --no-checksum --memory 64MiB
    comes_back
    run -78 put --no-checksum --memory 24MiB
    [[ $output == *"--memory"*"would do"* ]]
}

@test "a failure that stays aborts the upload, and the others are sent" {
    serve --fault "status op=part match=*large.bin status=400 code=EntityTooLarge skip=1 times=all"
    head -c 5300000 /dev/urandom >src/other.bin
    run -78 put --no-checksum
    [[ $output == *"large.bin: "*EntityTooLarge* ]]
    [[ $output == *"4 objects uploaded"*"1 failed"* ]]
    [ "$(curl -s "$url/-/uploads")" = 0 ]
    # one that may pass does not: the next run goes on
    curl -s -X PUT --data-binary "status op=part match=*large.bin skip=1 times=all" "$url/-/faults"
    run -69 put --no-checksum --retries 1 --connections 1
    [ "$(curl -s "$url/-/uploads")" = 1 ]
    curl -s -X PUT --data-binary "" "$url/-/faults"
    : >log
    run -0 put --no-checksum
    sent 0 "5.25 MiB" # both had arrived
    # nor does one that other keys may end
    head -c 5500000 /dev/urandom >src/other.bin
    curl -s -X PUT --data-binary "status op=part match=*other.bin status=403 code=AccessDenied skip=1 times=all" "$url/-/faults"
    run -77 put --no-checksum --connections 1
    [ "$(curl -s "$url/-/uploads")" = 1 ]
    curl -s -X PUT --data-binary "" "$url/-/faults"
    run -0 put --no-checksum
    comes_back
}

@test "failures that pass" {
    serve --checksum crc64nvme \
        --fault "status op=put status=503 code=SlowDown times=2" \
        --fault "reset op=part at=0 times=1" --fault "status op=part status=500 times=1" \
        --fault "status op=create status=500 times=1" \
        --fault "error200 op=complete times=1" --fault "refuse op=head times=2"
    run -0 put
    comes_back
}

@test "the answer to the end of an upload is lost, or late" {
    serve --fault "status op=complete status=500 times=1"
    run -0 put # what lies there is known by its parts: no CRC is kept
    grep -q '"op": "complete".*"status": 404' log
    comes_back
    head -c 5500000 /dev/urandom >src/deep/er/large.bin
    curl -s -X PUT --data-binary "wait op=complete secs=3 times=all" "$url/-/faults"
    : >log
    run -0 put --stall 1 --retries 0
    [ "$(grep -c '"op": "complete"' log)" = 1 ]
    comes_back
}

@test "a server that keeps something else" {
    serve --checksum crc64nvme --fault "badsum op=put match=*one.txt times=all"
    run -69 put --retries 1
    [[ $output == *"one.txt: the server keeps CRC "* ]]
}

# The same things with a server of others, in bucket "put".
real() {
    export AWS_ENDPOINT_URL_S3=$url
    for _ in $(seq 50); do # one of them listens before it can do anything
        curl -sf -X PUT --aws-sigv4 aws:amz:us-east-1:s3 -H "$unsigned" -o /dev/null \
            --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$url/put" && break
        sleep 0.2
    done
    put() { "$fetch" --put src s3://put/run/x --part-size 5MiB "$@"; }
    run -0 put
    [[ $output == *"4 objects uploaded (5.25 MiB), 0 there already, 0 failed"* ]]
    run -0 "$fetch" s3://put/run/x -o dst
    diff -r --exclude .draft-fetch src dst
    run -0 put
    [[ $output == *"nothing to do: all 4 objects are there"* ]]
    printf two >src/one.txt
    run -0 put --no-checksum
    [[ $output == *"1 objects uploaded (3 B), 3 there already"* ]]
    AWS_SECRET_ACCESS_KEY=wrong run -77 put
}
unsigned="x-amz-content-sha256: UNSIGNED-PAYLOAD"

@test "seaweedfs" {
    weed_server
    real
}

@test "moto, with signatures checked" {
    moto_server
    real
}

@test "rclone serve s3" {
    rclone_server
    real
}

@test "JSON: a line for each object" {
    serve --fault "status op=put match=*one.txt status=403 code=AccessDenied times=all"
    run -0 --separate-stderr put --json --dry-run
    [ "$(grep -c '"state":"wanted"' <<<"$output")" = 4 ]
    [[ $output == *'{"key":"deep/er/large.bin","from":"src/deep/er/large.bin","size":5500000,'* ]]
    run -77 --separate-stderr put --json
    [ "$(grep -c '"state":"uploaded"' <<<"$output")" = 3 ]
    [[ $output == *'"key":"one.txt",'*'"state":"failed","why":"'*AccessDenied* ]]
    curl -s -X PUT --data-binary "" "$url/-/faults"
    "$fetch" -q --put src s3://b/run/x
    run -0 --separate-stderr put --json
    [ "$(grep -c '"state":"there"' <<<"$output")" = 4 ]
    [ "$(wc -l <<<"$output")" = 4 ]
    python3 -c 'import json, sys; [json.loads(x) for x in sys.stdin]' <<<"$output"
}

@test "stopped by a signal, with failures before" {
    serve --fault "status op=put match=*one.txt status=403 code=AccessDenied times=all" \
        --fault "wait op=part secs=60 times=all"
    "$fetch" --put src s3://b/run/x --part-size 5MiB 2>err &
    pid=$!
    for _ in $(seq 400); do
        grep -q AccessDenied err && grep -q '"op": "create"' log && break
        sleep 0.05
    done
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 77 ]
    grep -q "2 objects uploaded .* 1 failed" err
    grep -q "stopped by a signal, and 1 of 4 objects failed; for example .*one.txt" err
}

@test "a rate is kept, by one body and by many" {
    serve
    begun=$(date +%s%N)
    "$fetch" -q --put src/deep/er/large.bin s3://b/run/x --rate 2500000 --no-checksum &
    pid=$!
    for _ in $(seq 400); do grep -q '"put".*large.bin' log && break; sleep 0.05; done
    took=$((($(date +%s%N) - begun) / 1000000))
    echo "its last byte came after $took ms"
    [ $took -ge 1900 ]
    [ $took -lt 20000 ]
    wait $pid
    for i in $(seq 9); do head -c 275000 /dev/urandom >src/deep/$i; done
    begun=$(date +%s%N)
    "$fetch" -q --put src/deep/? s3://b/run/x --rate 1250000 --no-checksum # side by side
    took=$((($(date +%s%N) - begun) / 1000000))
    echo "all of them took $took ms"
    [ $took -ge 1600 ]
    [ $took -lt 20000 ]
}

@test "wrong calls" {
    mkdir none-in-it
    run -66 "$fetch" --put none-in-it s3://b/x --endpoint http://127.0.0.1:1
    run -66 "$fetch" --put src s3://b/x --include '*.none' --endpoint http://127.0.0.1:1
    run -64 "$fetch" --put src s3://b/x --part-size 5242879
    [[ $output == *"--part-size: with --put 5242880 or more, not 5242879"* ]]
    run -64 "$fetch" --put src
    run -64 "$fetch" --put src dst
    run -64 "$fetch" --put src s3://b/x -o dst
    run -64 "$fetch" --put s3://b/x s3://b/y --endpoint http://127.0.0.1:1
    run -66 "$fetch" --put none s3://b/x --endpoint http://127.0.0.1:1
}
