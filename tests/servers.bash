# servers.bash - S3 servers for bats files: the fault server, real ones from PyPI.
#
# Each function starts a server in the background, waits until it answers and sets $url
# and $s3, the options of draft-fetch for it.  stop_servers ends them all.
# shellcheck shell=bash

SERVERS=()

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
    for _ in $(seq 100); do [ -s port ] && break; sleep 0.05; done
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
