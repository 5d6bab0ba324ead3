#!/usr/bin/env bats
# Keys that expire in the middle of a run, from each of the services that give them out.
#
# CREDS_TTL is how long they live, in seconds; each run takes between two and three lives.

setup() {
    bats_require_minimum_version 1.5.0
    command -v python3 >/dev/null || skip "no python3"
    tests=$BATS_TEST_DIRNAME
    cd "$BATS_TEST_TMPDIR"
    ttl=${CREDS_TTL:-2}
    for v in $(env | grep -o '^AWS_[A-Z_]*'); do unset "$v"; done
    export HOME=$PWD AWS_EC2_METADATA_DISABLED=true
    mkdir -p src .aws
    for i in $(seq 12); do head -c 1000 /dev/urandom >src/$i; done
    fetch=$BIN/draft-fetch
}

teardown() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
}

# serve [OPTION]...: starts whoever gives out keys, and the bucket "b" that wants them.
serve() {
    rm -f port log
    echo open-sesame >token
    python3 "$tests/credsd.py" --ready port --bucket b=src --log log --token token \
        --ttl "$ttl" "$@" 3>&- &
    server=$!
    for _ in $(seq 600); do [ -s port ] && break; sleep 0.1; done
    url=http://127.0.0.1:$(cat port)
    export AWS_ENDPOINT_URL_S3=$url AWS_ENDPOINT_URL_STS=$url
}

# A run of 12 objects, one after another, each answered after a seventh of a life.
# In a folder of its own, because six of them run at the same time.
outlives() {
    mkdir "$1" && cd "$1" && mkdir .aws && cp -r ../src .
    export HOME=$PWD
    serve --fault "wait op=get secs=$(awk "BEGIN {print $ttl / 7}") times=all"
    trap 'kill $server' EXIT
    "$1"
    "$fetch" s3://b -o dst --connections 1 -v >out 2>&1 || { cat out; return 1; }
    ! grep -F 'secret/' out || return 1
    diff -r --exclude .draft-fetch src dst || return 1
    used=$(grep -o '"by": "KEY[0-9]*"' log | sort -u | wc -l)
    echo "$1: $(grep -c '"op": "get"' log) objects signed with $used keys of $ttl s"
    [ "$used" -ge 3 ] || return 1
    ! grep '"status": 40' log # no request was signed with keys that had expired
}

ecs() {
    export AWS_CONTAINER_CREDENTIALS_FULL_URI=$url/ecs
    export AWS_CONTAINER_AUTHORIZATION_TOKEN=open-sesame
}

pod_identity() {
    export AWS_CONTAINER_CREDENTIALS_FULL_URI=$url/ecs
    export AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$PWD/token
}

role() {
    printf '[base]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n' \
        >.aws/credentials
    printf '[profile job]\nrole_arn = arn:aws:iam::1:role/job\nsource_profile = base\n' \
        >.aws/config
    export AWS_PROFILE=job
}

web_identity() {
    export AWS_WEB_IDENTITY_TOKEN_FILE=$PWD/token AWS_ROLE_ARN=arn:aws:iam::1:role/web
}

machine() {
    unset AWS_EC2_METADATA_DISABLED
    export AWS_EC2_METADATA_SERVICE_ENDPOINT=$url
}

process() {
    printf '#!/bin/sh\nexec python3 -c "%s" | sed s/Token/SessionToken/\n' \
        "import urllib.request as u; print(u.urlopen(u.Request('$url/ecs', \
headers={'Authorization': 'open-sesame'})).read().decode())" >give
    chmod +x give
    printf '[default]\ncredential_process = %s/give\n' "$PWD" >.aws/config
}

@test "keys that expire in the middle of a run" {
    all="ecs pod_identity role web_identity machine process"
    for kind in $all; do
        (outlives $kind) >$kind.log 2>&1 3>&- &
        eval "$kind=$!"
    done
    bad=0
    for kind in $all; do
        wait "${!kind}" || bad=1
        sed 's/^/# /' $kind.log >&3
    done
    [ $bad = 0 ]
}

@test "a server that finds keys expired before their time" {
    ttl=8
    for i in $(seq 13 30); do echo $i >src/$i; done
    serve --fault "wait op=get secs=0.1 times=all" --fault "expired op=get skip=25 times=1"
    ecs
    run -0 "$fetch" s3://b -o dst --connections 1
    diff -r --exclude .draft-fetch src dst
    grep -q '"by": "KEY2"' log
}

@test "a clock that is wrong by hours" {
    for clock in 7200 -7200; do
        serve --clock "$clock"
        printf '[default]\naws_access_key_id = BASE\naws_secret_access_key = base-secret\n' \
            >.aws/credentials
        rm -rf dst
        run -0 "$fetch" s3://b -o dst
        diff -r --exclude .draft-fetch src dst
        [ "$(grep -c RequestTimeTooSkewed log)" = 0 ]
        kill "$server"
    done
}

@test "nobody has keys, or the wrong ones" {
    serve
    run -77 "$fetch" s3://b -o dst
    [[ $output == *"no credentials"*"--no-sign"*"AWS_ACCESS_KEY_ID is not set"* ]]
    export AWS_ACCESS_KEY_ID=BASE AWS_SECRET_ACCESS_KEY=not-the-secret
    run -77 "$fetch" s3://b -o dst
    [[ $output == *SignatureDoesNotMatch* ]]
    ! grep -F not-the-secret <<<"$output"
    run -78 "$fetch" s3://b -o dst --profile nobody
    [[ $output == *"there is no profile nobody"* ]]
    run -77 "$fetch" s3://b -o dst --no-sign
    export AWS_SECRET_ACCESS_KEY=base-secret
    run -0 "$fetch" s3://b -o dst
}
