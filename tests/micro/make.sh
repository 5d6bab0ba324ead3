#!/bin/sh
# make.sh - writes the micro pipeline's input: train.jsonl and prompts.jsonl.
#
# Documents are runs of a small linear congruence over ids 3 .. 402, so that a drafter has
# something to learn in seconds; ids stay below the fixture target's vocabulary of 512.
set -eu
cd "$(dirname "$0")"
awk 'BEGIN {
    for (d = 0; d < 24; d++) {
        n = 30 + (d * 37) % 90; x = 3 + (d * 101) % 400
        ids = ""; mask = ""
        for (t = 0; t < n; t++) {
            ids = ids (t ? "," : "") x; mask = mask (t ? "," : "") (t >= 8 ? 1 : 0)
            x = 3 + (x * 7 + 11) % 400
        }
        print "{\"input_ids\":[" ids "],\"loss_mask\":[" mask "]}"
    }
}' >train.jsonl
awk 'BEGIN {
    for (d = 0; d < 4; d++) {
        x = 3 + (d * 53 + 19) % 400; ids = ""
        for (t = 0; t < 10; t++) { ids = ids (t ? "," : "") x; x = 3 + (x * 7 + 11) % 400 }
        print "{\"input_ids\":[" ids "]}"
    }
}' >prompts.jsonl
