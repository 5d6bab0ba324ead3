#!/usr/bin/env bats
# draft-fetch --put: uploads to the fault server and to real ones, and the way back.

setup() {
    bats_require_minimum_version 1.5.0
    command -v python3 >/dev/null || skip "no python3"
    tests=$BATS_TEST_DIRNAME
    servers=$tests/../build/servers/bin
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

teardown() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
}

# serve [OPTION]...: starts the fault server with an empty bucket "b".
serve() {
    rm -f port
    python=$servers/python3 # has a fast CRC
    [ -x "$python" ] || python=python3
    "$python" "$tests/faultd.py" --ready port --bucket b --log log --auth id:secret0 "$@" 3>&- &
    server=$!
    for _ in $(seq 200); do [ -s port ] && break; sleep 0.1; done
    use "http://127.0.0.1:$(cat port)"
}

use() {
    export AWS_ENDPOINT_URL_S3=$1
    url=$1
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

@test "a signal: what has begun in parts is aborted" {
    serve --checksum crc64nvme --fault "wait op=part secs=2 times=all"
    "$fetch" --put src s3://b/run/x --part-size 5MiB 2>err &
    pid=$!
    for _ in $(seq 100); do grep -q '"op": "create"' log && break; sleep 0.05; done
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 75 ]
    grep -q '"op": "abort".*"status": 204' log
    [ "$(curl -s "$url/-/uploads")" = 0 ]
    run -75 "$fetch" s3://b/run/x -o dst
}

@test "a kill: the next run clears up and goes on" {
    serve --checksum crc64nvme --fault "wait op=part secs=2 times=2"
    "$fetch" --put src s3://b/run/x --part-size 5MiB 2>err &
    pid=$!
    for _ in $(seq 100); do grep -q '"op": "create"' log && break; sleep 0.05; done
    kill -KILL $pid
    wait $pid || true
    [ "$(curl -s "$url/-/uploads")" = 1 ]
    run -0 put
    [[ $output == *"1 objects uploaded (5.25 MiB), 3 there already"* ]]
    [ "$(curl -s "$url/-/uploads")" = 0 ]
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

@test "a server that keeps something else" {
    serve --checksum crc64nvme --fault "badsum op=put match=*one.txt times=all"
    run -69 put --retries 1
    [[ $output == *"one.txt: the server keeps CRC "* ]]
}

# Servers of others, from scripts/deps.sh servers; each checks signatures.

# started PORT COMMAND...: starts a server and waits until it listens.
started() {
    local port=$1
    [ -x "$2" ] || skip "${2##*/} is not installed: scripts/deps.sh servers"
    "${@:2}" >server.log 2>&1 3>&- &
    server=$!
    for _ in $(seq 300); do
        (: <"/dev/tcp/127.0.0.1/$port") 2>/dev/null && break
        sleep 0.1
    done
    use "http://127.0.0.1:$port"
}

free_ports() {
    python3 -c 'import socket, sys
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(x.getsockname()[1] for x in s))' "$1"
}

# The same things with such a server, in bucket "put".
real() {
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
    read -r -a p <<<"$(free_ports 8)"
    mkdir weed
    started "${p[0]}" "$servers/weed" server -dir=weed -ip=127.0.0.1 -ip.bind=127.0.0.1 \
        -master.volumeSizeLimitMB=64 -volume.max=20 -s3 -filer -s3.port="${p[0]}" \
        -s3.port.grpc="${p[1]}" -s3.port.iceberg=0 -filer.port="${p[2]}" \
        -filer.port.grpc="${p[3]}" -master.port="${p[4]}" -master.port.grpc="${p[5]}" \
        -volume.port="${p[6]}" -volume.port.grpc="${p[7]}"
    real
}

@test "moto" {
    port=$(free_ports 1)
    export INITIAL_NO_AUTH_ACTION_COUNT=3
    started "$port" "$servers/moto_server" -H 127.0.0.1 -p "$port"
    scope="Credential=x/20260101/us-east-1/iam/aws4_request, SignedHeaders=host, Signature=0"
    iam() {
        curl -sf "$url/" -H "Authorization: AWS4-HMAC-SHA256 $scope" -d UserName=u \
            -d Version=2010-05-08 "$@"
    }
    iam -d Action=CreateUser >/dev/null
    key=$(iam -d Action=CreateAccessKey)
    iam -d Action=PutUserPolicy -d PolicyName=all --data-urlencode "PolicyDocument={
        \"Version\": \"2012-10-17\",
        \"Statement\": [{\"Effect\": \"Allow\", \"Action\": \"*\", \"Resource\": \"*\"}]}" \
        >/dev/null
    AWS_ACCESS_KEY_ID=$(sed -n 's:.*<AccessKeyId>\(.*\)</AccessKeyId>.*:\1:p' <<<"$key")
    AWS_SECRET_ACCESS_KEY=$(sed -n 's:.*<SecretAccessKey>\(.*\)</Secret.*:\1:p' <<<"$key")
    real
}

@test "rclone serve s3" {
    port=$(free_ports 1)
    mkdir served
    export AWS_ACCESS_KEY_ID=rclone-key AWS_SECRET_ACCESS_KEY=rclone-secret
    started "$port" "$servers/rclone" serve s3 served --config /dev/null \
        --addr "127.0.0.1:$port" --auth-key rclone-key,rclone-secret
    real
}

@test "wrong calls" {
    run -64 "$fetch" --put src
    run -64 "$fetch" --put src dst
    run -64 "$fetch" --put src s3://b/x -o dst
    run -64 "$fetch" --put s3://b/x s3://b/y --endpoint http://127.0.0.1:1
    run -66 "$fetch" --put none s3://b/x --endpoint http://127.0.0.1:1
}
