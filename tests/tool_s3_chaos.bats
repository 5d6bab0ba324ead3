#!/usr/bin/env bats
# draft-fetch under random faults and kills; `make test-chaos` is the long form.

@test "ten runs under random faults and SIGKILLs" {
    run "$BATS_TEST_DIRNAME/../scripts/chaos.sh" "${BIN%/bin}" 10
    echo "$output"
    [ "$status" = 0 ]
    echo "# $output" | head -1 >&3
}
