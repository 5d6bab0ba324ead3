#!/usr/bin/env bats
# draft-fetch: every file equal to its source, whatever happens on the way.

setup() {
    bats_require_minimum_version 1.5.0
    cd "$BATS_TEST_TMPDIR"
    mkdir -p src/a/b "src/a b"
    printf one >src/one.txt
    : >src/empty
    head -c 9000000 /dev/urandom >src/a/large.bin
    printf two >src/a/b/two.txt
    printf 'x%.0s' {1..1000} >"src/a b/#%+é.txt"
    fetch=$BIN/draft-fetch
}

# The fetched tree equals the source; nothing but fetch's own folder is beside it.
same() {
    diff -r --exclude .draft-fetch "$1" "$2" >&2 && [ ! -e "$2/.draft-fetch/tmp" ]
}

keys() { sed -n 's/.*"key":"\([^"]*\)".*/\1/p' "$1/.draft-fetch/manifest.json"; }

@test "copies a folder and does nothing the second time" {
    run -0 "$fetch" src -o dst
    [[ $output == *"5 objects fetched"* ]]
    same src dst
    [ "$(keys dst | wc -l)" = 5 ]
    cp dst/.draft-fetch/manifest.json before
    inode=$(stat -c %i dst/one.txt)
    run -0 "$fetch" src -o dst
    [[ $output == *"nothing to do: all 5 objects are there"* ]]
    [ "$(stat -c %i dst/one.txt)" = "$inode" ]
    cmp before dst/.draft-fetch/manifest.json
    [ ! -e dst/.draft-fetch/manifest.journal ]
}

@test "any number of threads gives the same manifest" {
    "$fetch" -q src -o d1 -j 1
    "$fetch" -q src -o d4 -j 4
    cmp d1/.draft-fetch/manifest.json d4/.draft-fetch/manifest.json
}

@test "checksums are CRC-64/NVME of the content" {
    printf 123456789 >src/digits
    "$fetch" -q src -o dst
    # the catalogue's check value
    grep -q '"key":"digits","size":9,.*"crc64nvme":"ae8b14860a799888"' dst/.draft-fetch/manifest.json
}

@test "file URLs, single files, several sources" {
    "$fetch" -q "file://$PWD/src/a%20b" -o dst
    cmp "src/a b/#%+é.txt" "dst/#%+é.txt"
    "$fetch" -q "file://localhost$PWD/src/one.txt" src/a -o dst
    cmp src/one.txt dst/one.txt
    cmp src/a/large.bin dst/large.bin
    [ "$(keys dst | wc -l)" = 4 ]
    for bad in file://host/x file:x//y "file:///%zz" "file:///%00" file://; do
        run -64 "$fetch" "$bad" -o dst || run -66 "$fetch" "$bad" -o dst
    done
}

@test "unknown schemes are named" {
    for s in gopher; do
        run -64 "$fetch" "$s://x/y" -o dst
        [[ $output == *"$s://x/y: this build does not know the scheme $s://"* ]]
    done
}

@test "changes at the source are fetched, and only they" {
    "$fetch" -q src -o dst
    printf four >src/one.txt
    printf new >src/new.txt
    run -0 "$fetch" src -o dst
    [[ $output == *"2 objects fetched (7 B), 4 there already"* ]]
    same src dst
    touch -d 2001-01-01 src/empty # same content, but how would we know
    run -0 "$fetch" src -o dst
    [[ $output == *"1 objects fetched"* ]]
}

@test "local damage is found by time, or by --verify" {
    "$fetch" -q src -o dst
    printf ONE >dst/one.txt
    rm dst/empty
    run -0 "$fetch" src -o dst
    [[ $output == *"2 objects fetched"* ]]
    same src dst
    printf OnE >dst/one.txt
    touch -r src/one.txt dst/one.txt
    run -0 "$fetch" src -o dst
    [[ $output == *"nothing to do"* ]]
    run -0 "$fetch" src -o dst --verify
    [[ $output == *"dst/one.txt is damaged"* ]]
    same src dst
}

@test "include, exclude, dry run" {
    run -0 --separate-stderr "$fetch" src -o dst --include '*.txt' --exclude 'a/*' --dry-run
    [ "$output" = $'1000\ta b/#%+é.txt\n3\tone.txt' ]
    [ ! -e dst ]
    run -0 "$fetch" src -o dst --include '*.bin,o*'
    [ "$(keys dst | tr '\n' ' ')" = "a/large.bin one.txt " ]
    run -0 --separate-stderr "$fetch" src -o dst --dry-run -q
    [ "$(wc -l <<<"$output")" = 3 ]
    [ -z "$stderr" ]
}

@test "parts together are the whole, and a whole run folds them in" {
    for i in 0 1 2; do "$fetch" -q src -o dst --part $i/3; done
    same src dst
    [ "$(cat dst/.draft-fetch/manifest-*-of-3.json | grep -c key)" = 5 ]
    mkdir dst/.draft-fetch/tmp-1-of-7
    echo x >dst/.draft-fetch/tmp-1-of-7/8.part
    run -0 "$fetch" src -o dst
    [[ $output == *"nothing to do"* ]]
    [ "$(cd dst/.draft-fetch && echo *)" = "lock lock-0-of-3 lock-1-of-3 lock-2-of-3 manifest.json" ]
    [ "$(keys dst | wc -l)" = 5 ]
    printf more >src/more
    "$fetch" -q src -o dst
    [ "$(keys dst | wc -l)" = 6 ]
    run -64 "$fetch" src -o dst --part 3/3
    for bad in connections=0 connections=-1 part-size=0 part-size=-1 retries=-1 rate=-1 memory=-1 stall=0 stall=1e30; do
        run -64 "$fetch" src -o dst "--${bad%=*}" "${bad#*=}"
        [[ $output == *"option --${bad%=*}: "*" to "* ]]
        run -64 "$fetch" --put src s3://bucket/x "--${bad%=*}" "${bad#*=}"
    done
}

@test "failures are named, the others proceed, good files stay" {
    "$fetch" -q src -o dst
    printf changed >src/a/b/two.txt
    ln -s nowhere src/dead
    ln -s a src/folder-link
    ln -s one.txt src/file-link
    mkfifo src/pipe
    printf 'x' >$'src/new\nline'
    printf 'x' >$'src/\xff'
    run -66 "$fetch" src -o dst
    [[ $output == *"cannot read src/dead: No such file"* ]]
    [[ $output == *"src/folder-link: refused: a link to a folder"* ]]
    [[ $output == *"src/pipe: refused: neither file nor folder"* ]]
    [[ $output == *"new?line: refused: control character"* ]]
    [[ $output == *"refused: the name is not UTF-8"* ]]
    [[ $output == *"5 of 11 objects failed"* ]]
    cmp src/a/b/two.txt dst/a/b/two.txt
    cmp src/one.txt dst/file-link
    [ -f dst/file-link ]
    [ ! -L dst/file-link ]
    run -65 "$fetch" src -o dst --exclude dead
    run -0 "$fetch" src -o dst --exclude 'dead,folder-link,pipe,new*,?'
}

@test "what cannot lie side by side is refused" {
    mkdir -p s2/one.txt
    printf x >s2/one.txt/y
    printf other >s2/empty
    run -78 "$fetch" src s2 -o dst
    [[ $output == *"one.txt/y: refused: one.txt is a file"* ]]
    [[ $output == *"empty: refused: both s2/empty and src/empty have this name"* ]]
    [ -f dst/one.txt ]
}

@test "a folder in the way of a file, a file in the way of a folder" {
    mkdir -p dst/one.txt/x
    printf precious >dst/a
    run -74 "$fetch" src -o dst
    [[ $output == *"one.txt: Is a directory"* ]]
    [[ $output == *"cannot create folder dst/a"* ]]
    [ "$(cat dst/a)" = precious ]
    [ -d dst/one.txt/x ]
    cmp src/empty dst/empty
}

@test "links inside the destination are not followed" {
    mkdir -p dst out
    ln -s ../out dst/a
    ln -s ../out/one dst/one.txt
    run -78 "$fetch" src -o dst
    [[ $output == *"a/b/two.txt: refused: dst/a is a link, which may lead out"* ]]
    [[ $output == *"2 of 5 objects failed"* ]]
    [ -z "$(ls out)" ]
    [ -f dst/one.txt ] # a link in the place of a file is replaced
    [ ! -L dst/one.txt ]
    run -78 "$fetch" src -o dst --dry-run
    rm -rf dst/.draft-fetch
    ln -s ../out dst/.draft-fetch
    run -78 "$fetch" src -o dst
    [[ $output == *"dst/.draft-fetch is a link"* ]]
    [ -z "$(ls out)" ]
    ln -s dst other # DEST itself may be one
    rm dst/.draft-fetch dst/a
    run -0 "$fetch" src -o other
    same src dst
}

@test "a destination inside its source is refused" {
    run -78 "$fetch" src -o src/new/deep
    [ ! -e src/new ]
    run -78 "$fetch" src -o src
    run -78 "$fetch" . -o .
    run -0 "$fetch" src -o src2
}

@test "what is missing or not allowed has its own status" {
    run -66 "$fetch" none -o dst
    [[ $output == *"cannot read none: No such file"* ]]
    run -64 "$fetch" -o dst
    run -64 "$fetch" src
    [ "$(id -u)" != 0 ] || skip "root may read everything"
    chmod 0 src/one.txt
    run -77 "$fetch" src -o dst
    [[ $output == *"cannot open src/one.txt: Permission denied"* ]]
}

@test "nothing at all is a mistake" {
    mkdir empty
    run -66 "$fetch" empty -o dst
    [[ $output == *"empty: there are no objects"* ]]
    run -66 "$fetch" src empty -o dst
    run -66 "$fetch" src -o dst --include '*.parquet,*.arrow'
    [[ $output == *"of 5 objects, --include and --exclude leave none"* ]]
    run -66 "$fetch" src -o dst --exclude '*' --dry-run
    : >urls
    run -66 "$fetch" --urls urls -o dst
    [[ $output == *"urls: there are no objects"* ]]
    [ ! -e dst ]
    mkdir one && printf x >one/x
    for i in 0 1 2; do # a share may be empty
        run -0 "$fetch" one -o dst --part $i/3
    done
    cmp one/x dst/x
}

@test "dot files and temporaries are not input" {
    mkdir src/.git
    printf x >src/.git/config
    printf x >src/.hidden
    printf x >src/part.tmp
    run -0 "$fetch" src -o dst
    [[ $output == *"5 objects fetched"* ]]
}

@test "a damaged manifest costs copies, not files" {
    "$fetch" -q src -o dst
    printf '{"format":1,"objects":[\n{"key":"one' >dst/.draft-fetch/manifest.json
    run -0 "$fetch" src -o dst
    [[ $output == *"1 damaged manifests"* ]]
    [[ $output == *"5 objects fetched"* ]]
    run -0 "$fetch" src -o dst
    [[ $output == *"nothing to do"* ]]
}

@test "killed anywhere, run again: equal, nothing left over" {
    for i in $(seq 200); do printf '%s' "$i" >src/a/f$i; done
    for ms in 002 010 050 150; do
        rm -rf dst
        "$fetch" -q src -o dst &
        pid=$!
        sleep 0.$ms
        kill -9 $pid 2>/dev/null || true
        wait $pid || true
        # what has its name is whole
        [ -z "$(diff -rq --exclude .draft-fetch src dst 2>/dev/null | grep differ)" ]
        run -0 "$fetch" src -o dst
        same src dst
    done
}

@test "what a killed run has recorded is not copied again" {
    "$fetch" -q src -o dst
    mv dst/.draft-fetch/manifest.json saved
    sed -n 's/^\({.*}\),*$/\1/p' saved | head -3 >dst/.draft-fetch/manifest.journal
    printf '{"key":"one.t' >>dst/.draft-fetch/manifest.journal
    mkdir dst/.draft-fetch/tmp
    printf x >dst/.draft-fetch/tmp/7
    run -0 "$fetch" src -o dst
    [[ $output == *"2 objects fetched"*"3 there already"* ]]
    cmp saved dst/.draft-fetch/manifest.json
    same src dst
    [ ! -e dst/.draft-fetch/manifest.journal ]
}

@test "SIGTERM stops with 75 and keeps what is done" {
    for i in $(seq 40); do head -c 4000000 /dev/zero >src/z$i; done
    "$fetch" src -o dst -j 1 2>err &
    pid=$!
    sleep 0.1
    kill -TERM $pid
    status=0
    wait $pid || status=$?
    [ $status = 75 ] || [ $status = 0 ] # it may have been quick
    [ $status = 0 ] || grep -q "stopped by a signal" err
    run -0 "$fetch" src -o dst
    same src dst
}

@test "one run at a time in a destination" {
    mkdir -p dst/.draft-fetch
    exec 9>dst/.draft-fetch/lock
    flock 9
    run -75 "$fetch" src -o dst
    [[ $output == *"another process is at work here (it holds dst/.draft-fetch/lock)"* ]]
    run -75 "$fetch" src -o dst --part 0/2
    exec 9>&-
    run -0 "$fetch" src -o dst
}

@test "a full disk: nothing short under a final name" {
    [ "$(id -u)" = 0 ] || skip "needs root to mount"
    mkdir small
    mount -t tmpfs -o size=4m tmpfs small 2>/dev/null || skip "cannot mount"
    run "$fetch" src -o small/dst
    result=$status text=$output
    cmp src/one.txt small/dst/one.txt || result=bad
    [ ! -e small/dst/a/large.bin ] || result=bad
    umount small
    [ "$result" = 74 ]
    [[ $text == *"No space left on device"* ]]
}
