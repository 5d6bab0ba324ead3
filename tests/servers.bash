# servers.bash - S3 servers for bats files: the fault server, real ones from PyPI.
#
# Each function starts a server in the background, waits until it answers and sets $url
# and $s3, the options of draft-fetch for it.  stop_servers ends them all.
# shellcheck shell=bash

SERVERS=()
KEY=faultfaultfault SECRET=quite/secret+indeed # for servers that take any

stop_servers() {
    [ ${#SERVERS[@]} = 0 ] || kill "${SERVERS[@]}" 2>/dev/null || true
    SERVERS=()
}

# fault_server [OPTION]...: tests/faultd.py with bucket b of the folder $SRC, if set.
fault_server() {
    rm -f port
    python3 "$BATS_TEST_DIRNAME/faultd.py" --ready port --bucket "b${SRC:+=$SRC}" "$@" \
        3>&- &
    SERVERS+=($!)
    for _ in $(seq 1200); do [ -s port ] && break; sleep 0.05; done
    url=http://127.0.0.1:$(cat port)
    s3="--no-sign --endpoint $url"
}

# set_faults [SPEC]...: these and no others from now on.
set_faults() {
    printf '%s\n' "$@" | curl -sf -X PUT --data-binary @- "$url/-/faults"
    faults_before=$(curl -sf "$url/-/log" | wc -l)
}

# Whether any fault struck since set_faults.
struck() {
    curl -sf "$url/-/log" | tail -n +"$faults_before" | grep -q '"faults": \["'
}

# same A B: equal trees, fetch's own folder aside, and no temporaries.
same() {
    diff -r --exclude .draft-fetch "$1" "$2" >&2 && [ ! -e "$2/.draft-fetch/tmp" ]
}

# free_port [N]: a port that nobody listens at, now; or N different ones.
free_port() {
    python3 -c 'import socket, sys
s = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(x.getsockname()[1] for x in s))' "${1:-1}"
}

# tool NAME: a program of scripts/deps.sh servers; skips the test without it, and where
# not everything is tried.
tool() {
    [ -n "${THOROUGH:-}" ] || skip "make test-servers tries it"
    tool=$BATS_TEST_DIRNAME/../build/servers/bin/$1
    [ -x "$tool" ] || skip "$1 is not installed: scripts/deps.sh servers"
}

# answers PORT: waits until something listens there.
answers() {
    for _ in $(seq 300); do
        (: <"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
        sleep 0.1
    done
    echo "nobody listens at port $1"
    cat server.log
    return 1
}

# keys_of ID SECRET [OPTION]...: what draft-fetch needs to be let in at $url.
keys_of() {
    export AWS_ACCESS_KEY_ID=$1 AWS_SECRET_ACCESS_KEY=$2
    s3="--endpoint $url --region us-east-1"
}

# weed_server: seaweedfs, checking signatures of $KEY with $SECRET.
weed_server() {
    tool weed
    local ports
    read -r -a ports <<<"$(free_port 8)"
    AWS_ACCESS_KEY_ID=$KEY AWS_SECRET_ACCESS_KEY=$SECRET "$tool" server -dir="$(mkdir -p weed && echo weed)" \
        -ip=127.0.0.1 -ip.bind=127.0.0.1 -master.volumeSizeLimitMB=64 -volume.max=20 \
        -master.port="${ports[0]}" -master.port.grpc="${ports[1]}" \
        -volume.port="${ports[2]}" -volume.port.grpc="${ports[3]}" \
        -filer -filer.port="${ports[4]}" -filer.port.grpc="${ports[5]}" \
        -s3 -s3.port="${ports[6]}" -s3.port.grpc="${ports[7]}" -s3.port.iceberg=0 -s3.port.lance=0 >server.log 2>&1 3>&- &
    SERVERS+=($!)
    answers "${ports[6]}"
    url=http://127.0.0.1:${ports[6]}
    keys_of $KEY $SECRET
}

# rclone_server: rclone serve s3 over the folder ./served, checking signatures.
rclone_server() {
    tool rclone
    local port
    port=$(free_port)
    mkdir -p served
    "$tool" serve s3 served --config /dev/null --addr "127.0.0.1:$port" --auth-key $KEY,$SECRET \
        >server.log 2>&1 3>&- &
    SERVERS+=($!)
    answers "$port"
    url=http://127.0.0.1:$port
    keys_of $KEY $SECRET
}

# moto_server: moto, which recomputes signatures for a user made here; only the three
# requests that make it are let through unsigned.
moto_server() {
    tool moto_server
    local port policy
    port=$(free_port)
    INITIAL_NO_AUTH_ACTION_COUNT=3 "$tool" -H 127.0.0.1 -p "$port" >server.log 2>&1 3>&- &
    SERVERS+=($!)
    answers "$port"
    url=http://127.0.0.1:$port
    policy='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}'
    iam Action=CreateUser >moto-key
    iam Action=CreateAccessKey >moto-key
    iam Action=PutUserPolicy PolicyName=all "PolicyDocument=$policy" >server-policy
    keys_of "$(sed -n 's:.*<AccessKeyId>\(.*\)</AccessKeyId>.*:\1:p' moto-key)" \
        "$(sed -n 's:.*<SecretAccessKey>\(.*\)</SecretAccessKey>.*:\1:p' moto-key)"
    rm moto-key
}

# iam FIELD=VALUE...: one request to moto's IAM.
iam() {
    local fields=() f scope="Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1"
    scope+="/iam/aws4_request, SignedHeaders=host, Signature=0"
    for f in "$@" UserName=u Version=2010-05-08; do fields+=(--data-urlencode "$f"); done
    curl -sf "$url/" "${fields[@]}" -H "$scope" |
        tr -d '\n'
}
