#!/usr/bin/env bats
# draft-fetch over https: whom it trusts, and that nothing stays in TLS's own buffers.
# shellcheck disable=SC2086  # $s3 is a list of words

setup_file() {
    cd "$BATS_FILE_TMPDIR"
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
        -subj "/CN=drafthorse test" -keyout ca.key -out ca.pem 2>/dev/null
    certificate server "DNS:localhost,IP:127.0.0.1"
    certificate other "DNS:elsewhere.example"
    mkdir -p src/many
    head -c 3000000 /dev/urandom >src/large.bin
    for i in $(seq 40); do head -c $((i * 1500)) /dev/urandom >src/many/$i; done
}

# certificate NAME SUBJECTS: NAME.pem and NAME.key, signed by the CA.
certificate() {
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$1" \
        -keyout "$1.key" -out "$1.csr" 2>/dev/null
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
        -extfile <(printf 'subjectAltName=%s' "$2") -out "$1.pem" 2>/dev/null
}

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    unset AWS_CA_BUNDLE SSL_CERT_FILE
    export AWS_EC2_METADATA_DISABLED=true HOME=$PWD
    ca=$BATS_FILE_TMPDIR SRC=$BATS_FILE_TMPDIR/src
    fetch=$BIN/draft-fetch
}

teardown() { stop_servers; }

# serve CERTIFICATE [OPTION]...: the fault server, at https://localhost.
serve() {
    fault_server --log log --tls "$ca/$1.pem" "$ca/$1.key" "${@:2}"
    url=https://localhost:${url##*:}
    s3="--no-sign --endpoint $url"
}

# at_once STATUS COMMAND...: the status, long before a second attempt would have been made.
at_once() {
    begun=$(date +%s%N)
    run "-$1" "${@:2}"
    [ $((($(date +%s%N) - begun) / 1000000)) -lt 5000 ]
}

@test "a certificate that is trusted: by --ca, or a variable" {
    serve server
    run -0 timeout 60 "$fetch" s3://b -o dst $s3 --ca "$ca/ca.pem" --part-size 100000
    same "$SRC" dst
    AWS_CA_BUNDLE=$ca/ca.pem run -0 "$fetch" s3://b/many -o d2 $s3
    same "$SRC/many" d2
    SSL_CERT_FILE=$ca/ca.pem run -0 "$fetch" "$url/b/large.bin" -o d3
    cmp "$SRC/large.bin" d3/large.bin
    run -66 "$fetch" s3://b -o d4 $s3 --ca none.pem
    [[ $output == *"cannot read the certificates in none.pem: No such file"* ]]
}

# The last bytes of a body come with what was read before them, and the socket then stays
# silent: without a look at what OpenSSL holds, each of these would stall.
@test "what TLS has read ahead is not waited for" {
    serve server --fault "drip bytes=40000 secs=0.01 times=all"
    run -0 timeout 60 "$fetch" s3://b -o dst $s3 --ca "$ca/ca.pem" --connections 4 \
        --retries 0 --stall 5 --part-size 1000000
    [[ $output != *retries* ]]
    same "$SRC" dst
}

@test "whom it does not trust is refused at once, by name of the reason" {
    serve server
    at_once 78 "$fetch" s3://b -o dst $s3
    [[ $output == *"the server is not trusted"*"issuer certificate"* ]]
    at_once 78 "$fetch" "$url/b/large.bin" -o dst
    [[ $output == *"$url/b/large.bin: the server is not trusted"* ]]
    [ ! -e dst/large.bin ]
    stop_servers
    serve other
    at_once 78 "$fetch" s3://b -o dst $s3 --ca "$ca/ca.pem"
    [[ $output == *"the server is not trusted"*"localhost"* ]]
    at_once 78 "$fetch" --put "$SRC/many" s3://b/x $s3 --ca "$ca/ca.pem"
    [[ $output == *"the server is not trusted"* ]]
    [ ! -s log ]
}

@test "https where there is none" {
    fault_server
    plain=https://localhost:${url##*:}
    at_once 78 "$fetch" s3://b -o dst --no-sign --endpoint "$plain"
    [[ $output == *"the server speaks no https (http://?)"* ]]
    at_once 78 "$fetch" "$plain/b/large.bin" -o dst
    [[ $output == *"$plain/b/large.bin: the server speaks no https (http://?)"* ]]
}
