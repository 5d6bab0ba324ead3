#!/usr/bin/env bats
# Every tool: its man page names exactly its options, and its frame behaves alike.

setup() {
    bats_require_minimum_version 1.5.0
    tools=$(ls "$BIN")
    [ -n "$tools" ]
}

page() { echo "tools/${1#draft-}/$1.1"; }

# name, letter, argument of each option that a page describes.
described() {
    sed -n 's/^\.It Fl //p' "$1" | sed 's/\\-/-/g' |
        awk '{letter = "-"; i = 1
              if ($1 !~ /^-/) {letter = $1; i = 4}
              print substr($i, 2), letter, ($(i + 1) == "Ar" ? $(i + 2) : "-")}' | sort
}

@test "man pages describe every option, and no other" {
    for t in $tools; do
        "$BIN/$t" --options | awk '{print $1, $2, $3}' | sort >"$BATS_TEST_TMPDIR/have"
        described "$(page "$t")" >"$BATS_TEST_TMPDIR/described"
        diff "$BATS_TEST_TMPDIR/have" "$BATS_TEST_TMPDIR/described" || {
            echo "$t and its man page differ"
            return 1
        }
    done
}

@test "defaults that man pages state are the tools'" {
    for t in $tools; do
        sed 's/\\-/-/g' "$(page "$t")" |
            awk '/^\.It Fl / {for (i = 3; i <= 6; i++) if ($i ~ /^-/) name = substr($i, 2)}
                 /^The default is .*\.$/ {sub(/\.$/, "", $0); print name, $4}' |
            sort >"$BATS_TEST_TMPDIR/stated"
        "$BIN/$t" --options | awk '{print $1, $4}' | sort >"$BATS_TEST_TMPDIR/real"
        run -0 comm -23 "$BATS_TEST_TMPDIR/stated" "$BATS_TEST_TMPDIR/real"
        [ -z "$output" ]
    done
}

@test "man pages are clean" {
    for t in $tools; do mandoc -Tlint -Wwarning "$(page "$t")"; done
}

@test "--help is on stdout and shows every option" {
    for t in $tools; do
        run --separate-stderr "$BIN/$t" --help
        [ "$status" = 0 ]
        [ -z "$stderr" ]
        help=$output
        for o in $("$BIN/$t" --options | awk '{print $1}'); do
            grep -q -e "--$o\b" <<<"$help"
        done
    done
}

@test "--version names the tool" {
    for t in $tools; do
        run "$BIN/$t" --version
        [ "$status" = 0 ]
        [[ $output =~ ^$t\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
    done
}

@test "wrong calls exit with 64, a message on stderr and nothing on stdout" {
    for t in $tools; do
        for wrong in --no-such-option --progress=loud "--threads=-1" --threads=x "-j"; do
            run --separate-stderr "$BIN/$t" "$wrong"
            [ "$status" = 64 ]
            [ -z "$output" ]
            [[ $stderr == "$t: "* ]]
        done
    done
}

@test "a full disk behind stdout is an error" {
    for t in $tools; do
        run -74 sh -c "'$BIN/$t' --help >/dev/full"
        [[ $output == *"cannot write stdout: No space left on device"* ]]
        run -0 sh -c "'$BIN/$t' --help >&- 2>/dev/null; [ \$? = 74 ]"
    done
}
