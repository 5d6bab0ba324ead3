#!/usr/bin/env bats
# draft-fetch --check-etag: bytes held against MD5s, where a server keeps nothing better.
# shellcheck disable=SC2086  # $s3 is a list of words

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    fetch=$BIN/draft-fetch
    cat >objects <<'JSON'
{"key": "plain/large", "size": 200000, "seed": 1}
{"key": "plain/small", "size": 2000, "seed": 2}
{"key": "plain/empty", "text": ""}
{"key": "parts/large", "size": 230000, "seed": 3, "part_size": 70000}
{"key": "parts/small", "size": 9000, "seed": 4, "part_size": 4000}
{"key": "parts/one", "size": 500, "seed": 5, "part_size": 4000}
JSON
}

teardown() { stop_servers; }

# etag OPTION...: fetches all in pieces of 65536 bytes.
etag() {
    rm -rf dst
    run timeout 60 "$fetch" s3://b -o dst $s3 --part-size 65536 --check-etag --retries 3 "$@"
}

@test "one MD5, and an MD5 of many" {
    fault_server --objects b=objects --log log
    etag
    [ "$status" = 0 ]
    [[ $output == *"6 objects fetched"* && $output != *checked* ]]
    [ "$(grep -c '"op": "head"' log)" = 4 ] # two of large objects, two of first parts
    # what nobody else would notice
    for key in plain/large plain/small parts/large parts/small parts/one; do
        set_faults "flip match=$key times=all"
        etag
        [ "$status" = 65 ]
        [[ $output == *"$key: damaged"*": its MD5 (ETag) is "*", not "* ]]
        [[ $output == *"5 objects fetched"* ]]
        [ ! -e "dst/$key" ]
        set_faults "flip match=$key" # once: then it is mended
        etag
        [ "$status" = 0 ]
    done
    set_faults "flip match=parts/large times=all" # without the option it is not
    run -0 "$fetch" s3://b -o d2 $s3
}

@test "a stronger checksum is preferred" {
    fault_server --objects b=objects --checksum crc64nvme
    set_faults "flip match=parts/large times=all"
    etag
    [ "$status" = 65 ]
    [[ $output == *"damaged: CRC-64/NVME"* ]]
}

@test "what cannot be checked is said" {
    fault_server --objects b=objects
    set_faults "header name=x-amz-server-side-encryption value=aws:kms match=p*/large op=get,head times=all"
    etag
    [ "$status" = 0 ]
    [[ $output == *"warning: plain/large: not checked: it is encrypted with a key of KMS"* ]]
    [[ $output == *"warning: parts/large: not checked: it is encrypted"* ]]
    [[ $output == *"warning: 2 objects could not be checked"* ]]
    # a server that knows no part numbers, by answering otherwise or by refusing
    for fault in noparts "status status=400 code=InvalidArgument" \
        "status status=501 code=NotImplemented"; do
        set_faults "$fault query=partNumber=1 op=head times=all"
        etag
        [ "$status" = 0 ]
        [[ $output == *"parts/small: not checked: the server does not say in which parts"* ]]
        [[ $output == *"parts/large: not checked: "* ]]
        [[ $output == *"warning: 2 objects could not be checked"* ]]
    done
    # parts that are not all of one size
    set_faults "header name=x-amz-mp-parts-count value=3 query=partNumber=1 op=head times=all" \
        "length by=-30000 query=partNumber=1 op=head times=all"
    etag
    [ "$status" = 0 ]
    [[ $output == *"not checked: it was uploaded in parts of different sizes"* ]]
    # questions that fail for a while
    set_faults "status query=partNumber=1 op=head times=3" "reset query=partNumber=1 op=head skip=3"
    etag
    [ "$status" = 0 ]
    [[ $output != *"not checked"* ]]
    set_faults "status status=403 code=AccessDenied query=partNumber=1 op=head times=all"
    etag
    [ "$status" = 77 ]
}
