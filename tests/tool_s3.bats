#!/usr/bin/env bats
# draft-fetch against a server that fails on command: each fault alone, and what must
# follow.  Either all bytes are right in the end, or the object is refused by name with
# the right status; a wrong or partial file never has its final name, a good local file
# is never harmed, and the objects beside it come through.
# shellcheck disable=SC2086  # $s3 is a list of words

# `make test-servers` sets THOROUGH, and then more places are tried.

setup_file() {
    export SRC=$BATS_FILE_TMPDIR/src
    mkdir -p "$SRC/a"
    printf one >"$SRC/one.txt"
    : >"$SRC/empty"
    head -c 400000 /dev/urandom >"$SRC/a/large.bin"
    head -c 5000 /dev/urandom >"$SRC/a/small.bin"
}

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    fetch=$BIN/draft-fetch
    fault_server --checksum crc64nvme
}

teardown() { stop_servers; }

# again: a new server with the objects as they were.
again() {
    stop_servers
    fault_server --checksum crc64nvme
}

# fetch_under FAULT... [-- OPTION...]: a fresh run with these faults; sets status, output.
fetch_under() {
    local faults=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do faults+=("$1"); shift; done
    [ $# = 0 ] || shift
    set_faults "${faults[@]}"
    rm -rf dst
    run timeout 60 "$fetch" -q s3://b/ -o dst $s3 --part-size 65536 --stall 1 "$@"
}

# survives FAULT...: the run ends well and every byte is right.  The fault must have
# struck, and nothing else may be in the destination.
survives() {
    fetch_under "$@"
    if [ "$status" != 0 ] || ! same "$SRC" dst || ! struck; then
        echo "fault $*: status $status: $output"
        return 1
    fi
}

# refuses STATUS TEXT KEY FAULT...: the run ends with STATUS and a message that has KEY
# and TEXT; KEY (if it is one) is not there, everything else is whole; then, without the
# fault, a second run mends it.
refuses() {
    local want=$1 text=$2 key=$3
    shift 3
    fetch_under "$@"
    if [ "$status" != "$want" ] || [[ $output != *"$key"* ]] || [[ $output != *"$text"* ]] ||
        ! struck || ! only_good dst "$key"; then
        echo "fault $*: status $status: $output"
        return 1
    fi
    set_faults
    run timeout 60 "$fetch" -q s3://b/ -o dst $s3 --part-size 65536
    [ "$status" = 0 ] && mended dst || { echo "after $*: status $status: $output"; return 1; }
}

# Whatever lies in a folder equals the source (as it is, or was before a change).
only_good() {
    [ -d "$1" ] || return 0
    [ ! -e "$1/$2" ] || [ -d "$1/$2" ] || { echo "$2 is there"; return 1; }
    (cd "$1" && find . -type f ! -path './.draft-fetch/*') | while read -r f; do
        cmp "$SRC/$f" "$1/$f" || exit 1
    done
}

# All keys are there, as the server has them now.
mended() {
    local key
    for key in one.txt empty a/large.bin a/small.bin; do
        curl -sf "$url/b/$key" | cmp - "$1/$key" || return 1
    done
}

@test "a body that stops, breaks or ends early" {
    local places=("match=* times=5")
    [ -z "${THOROUGH:-}" ] || places+=(match=a/large.bin match=a/small.bin)
    for where in "${places[@]}"; do
        survives "stall at=100 secs=900 $where"
        survives "truncate $where"
        survives "truncate at=0 $where"
        survives "reset $where"
        survives "reset at=0 $where"
        survives "chunked at=100 $where"
        survives "nolength at=100 $where"
        survives "length by=1 $where"
        survives "length by=-1 $where"
        survives "cutbody $where"
    done
}

@test "no answer, a late one, a slow one" {
    # the listing comes first, so that one fault of two hits it, and the other a body
    for fault in refuse "refuse how=reset" noise "wait secs=0.5" "wait secs=3" \
        "slowheaders secs=0.003" "drip bytes=500 secs=0.02" "stall at=0 secs=900"; do
        survives "$fault op=list,get times=2"
    done
    # heads that would take five minutes, a byte at a time
    survives "slowheaders secs=1 op=list,get times=2"
}

@test "a range that is not what was asked for" {
    survives "norange match=a/large.bin times=3"
    survives "wrongrange match=a/large.bin"
    survives "wrongrange by=65536 match=a/large.bin"
    survives "wrongrange by=0 total=1 match=a/large.bin"
    survives "norangeheader match=a/large.bin"
    survives "shortrange match=a/large.bin"
    refuses 69 "" a/large.bin "norange match=a/large.bin times=all" -- --retries 1
    refuses 69 "" a/large.bin "wrongrange match=a/large.bin times=all" -- --retries 1
}

@test "answers that are unusual, and right" {
    survives "chunked times=all"
    survives "chunked times=all op=list"
    survives "nolength times=all"
    survives "nolength times=all op=list"
    survives "close times=all op=get,list,head"
    survives "close quiet=1 times=all op=get,list,head"
    survives "hints times=all op=get,list,head"
    survives "encoded times=all"
    survives "replace op=list old=&quot; new= times=all"
    survives "header name=X-Long value=y repeat=30000 times=all"
}

@test "errors that pass" {
    for e in "status" "status code=SlowDown after=1" "status status=500 code=InternalError" \
        "status status=502 code=x" "status status=504 code=x" "status status=429 code=x" \
        "status status=400 code=RequestTimeout" "plainstatus" "plainstatus status=503" \
        "error200" "error200 code=SlowDown"; do
        survives "$e op=list,get times=2"
    done
    survives "status times=12" # most requests of the run
}

@test "errors that stay" {
    refuses 77 AccessDenied a/small.bin "status status=403 code=AccessDenied match=a/small.bin times=all"
    refuses 66 NoSuchKey a/large.bin "status status=404 code=NoSuchKey match=a/large.bin times=all"
    refuses 69 SlowDown a/small.bin "status match=a/small.bin times=all" -- --retries 1
    refuses 69 InternalError a/large.bin \
        "status status=500 code=InternalError match=a/large.bin times=all" -- --retries 1
    refuses 69 "" a/large.bin "truncate match=a/large.bin times=all" -- --retries 1
    refuses 69 "" a/small.bin "stall at=9 match=a/small.bin times=all" -- --retries 1 --stall 0.5
    refuses 77 AccessDenied s3://b/ "status status=403 code=AccessDenied op=list times=all"
    refuses 69 "" s3://b/ "status op=list times=all" -- --retries 1
}

@test "wrong bytes under a right head" {
    survives "flip match=a/small.bin"
    survives "encoded real=1 match=a/small.bin"
    survives "garbage match=a/small.bin"
    survives "badsum match=a/small.bin"
    survives "flip match=a/large.bin skip=2"
    refuses 65 CRC a/small.bin "flip match=a/small.bin times=all" -- --retries 3
    refuses 65 CRC a/large.bin "flip match=a/large.bin times=all" -- --retries 3
}

@test "an object that changes while it is fetched" {
    refuses 75 changed a/large.bin "change match=a/large.bin skip=2"
    again
    refuses 75 changed a/large.bin "change size=500 match=a/large.bin skip=2"
    again
    refuses 75 changed a/small.bin "change match=a/small.bin"
    again # a server that ignores If-Match is found out by the ETag of its answers
    refuses 75 changed a/large.bin "change match=a/large.bin skip=2" \
        "nomatch match=a/large.bin times=all"
    again
    refuses 75 changed a/large.bin "etag match=a/large.bin"
    refuses 75 changed a/small.bin "etag match=a/small.bin"
}

@test "a good local file is never harmed" {
    set_faults
    "$fetch" -q s3://b/ -o dst $s3
    cp -r dst before
    for fault in "status status=404 code=NoSuchKey" truncate flip norange error200 "stall at=5"; do
        set_faults "change match=a/*" # at the source; and then nothing of it arrives
        curl -s "$url/b/a/large.bin" "$url/b/a/small.bin" -o /dev/null -o /dev/null
        set_faults "$fault match=a/* times=all"
        run timeout 60 "$fetch" -q s3://b/ -o dst $s3 --retries 1 --stall 0.5 --part-size 65536
        [ "$status" != 0 ] || { echo "$fault: $output"; false; }
        diff -r -x .draft-fetch before dst
    done
}

@test "a listing that is wrong" {
    survives "garbage op=list"
    survives "garbage op=list text="
    survives "cutbody op=list"
    survives "replace op=list old=</ListBucketResult> new="
    for fault in "garbage" "garbage text=<html/>" "cutbody at=300" \
        "replace old=<Size>5000 new=<Size>-5000" "replace old=<Size>5000 new=<Size>5x" \
        "replace old=<Size>5000 new=<Size>99999999999999999999" \
        "replace old=<Key>one new=<Kay>one" "token how=repeat" "token how=endless" \
        "token how=empty" "token how=missing"; do
        fetch_under "$fault op=list times=all" -- --retries 1
        [ "$status" = 65 ] || [ "$status" = 69 ] || { echo "$fault: $status: $output"; false; }
        [[ $output == *s3://b/* ]]
        only_good dst ""
    done
}

@test "names and sizes in a listing that do not fit the objects" {
    refuses 69 listed a/small.bin \
        "replace op=list old=<Size>5000 new=<Size>4999 times=all" -- --retries 1
    refuses 69 listed a/small.bin \
        "replace op=list old=<Size>5000 new=<Size>5001 times=all" -- --retries 1
    refuses 66 "" a/smull.bin "replace op=list old=small new=smull times=all"
    fetch_under "replace op=list old=one.txt new=../one.txt times=all"
    [ "$status" = 65 ]
    [[ $output == *"../one.txt"* ]]
    [ ! -e one.txt ]
    cmp "$SRC/a/large.bin" dst/a/large.bin
}
