#!/usr/bin/env bats
# Keys that are hard to bring home: each arrives intact or is refused by name, on every
# server that can store it.  Real servers come from scripts/deps.sh servers and are
# started by `make test-servers` alone (THOROUGH).
# shellcheck disable=SC2086  # $s3 is a list of words

setup() {
    bats_require_minimum_version 1.5.0
    load servers
    cd "$BATS_TEST_TMPDIR"
    fetch=$BIN/draft-fetch
    keys="python3 $BATS_TEST_DIRNAME/s3keys.py"
}

teardown() { stop_servers; }

teardown_file() {
    [ -z "${THOROUGH:-}" ] || python3 "$BATS_TEST_DIRNAME/s3keys.py" table "$BATS_FILE_TMPDIR/table" >&3
}

# fetch_all FILE PREFIX...: the whole bucket, or the part below a prefix; then once more,
# which must find everything there.
fetch_all() {
    local prefix
    for prefix in "${@:2}"; do
        run timeout 120 "$fetch" "s3://keys/$prefix" -o "dst/$prefix" $s3
        [ "$status" = 65 ] || [ "$status" = 78 ] || { echo "$status: $output"; false; }
        echo "$output" >log
        $keys check "$1" "dst/$prefix" "$prefix" log \
            "$BATS_FILE_TMPDIR/table" "$BATS_TEST_DESCRIPTION" | sed 's/^/# /' >&3
        [ "${PIPESTATUS[0]}" = 0 ] || { head -5 log; false; }
        run timeout 120 "$fetch" "s3://keys/$prefix" -o "dst/$prefix" $s3
        [[ $output == *" 0 objects fetched"* ]] || { echo "$output"; false; }
        rm -rf dst
    done
    [ -z "$(ls | grep -vxE "$1|$1.objects|log|port|serve.*|weed")" ]
}

@test "the fault server, which can store all of them" {
    $keys objects keys.json
    fault_server --objects keys=keys.json.objects --page 7
    fetch_all keys.json "" pre/
    run -0 "$fetch" s3://keys/pre2 -o one $s3
    [ "$(ls one)" = pre2 ]
}

@test "the same, signed" {
    $keys objects keys.json
    fault_server --objects keys=keys.json.objects --page 50 --auth "$KEY:$SECRET" --region us-east-1
    keys_of "$KEY" "$SECRET"
    fetch_all keys.json "" pre/
}

@test "seaweedfs" {
    weed_server
    $keys put $url "$KEY:$SECRET" keys.json >&3
    $keys look $url "$KEY:$SECRET" keys.json >&3
    fetch_all keys.json "" pre/
}

@test "moto, with signatures checked" {
    moto_server
    $keys put $url "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" keys.json >&3
    $keys look $url "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" keys.json >&3
    fetch_all keys.json "" pre/
}

@test "rclone serve s3" {
    rclone_server
    $keys put $url "$KEY:$SECRET" keys.json >&3
    stop_servers # what it refused has confused its cache of folders
    rclone_server
    $keys look $url "$KEY:$SECRET" keys.json >&3
    fetch_all keys.json "" # once something was deleted there, it lists pre/ as empty
}
