/* SPDX-License-Identifier: MIT */
/* test_inspect.c - what draft-inspect finds out, and the fixtures of its bats tests. */
#include "tools/inspect/look_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "err.h"
#include "kit_shard.h"
#include "mem.h"

#define GOLDEN "tests/golden/shards"

static struct log quiet; // a log without a stream is silent

static char *own(const char *path)
{
    static char kept[16][512];
    static int turn;
    char *copy = kept[turn++ % 16];
    memcpy(copy, path, strlen(path) + 1);
    return copy;
}

/* Looks at a path; the facts must hold each of the texts (NULL ends them). */
static void finds(struct look *l, char *path, const char *const *text)
{
    kit_ok(look_run(l, path));
    for (; *text; text++)
        ck_assert_msg(strstr(l->facts.out.p, *text), "\"%s\" is not in:\n%s", *text,
                      l->facts.out.p);
    buf_drop(&l->facts.out);
}

#define FINDS(l, path, ...) finds(l, path, (const char *const[]){__VA_ARGS__, NULL})

/* The kept files are what is written today: neither the format nor the fixtures of the
 * shell tests may drift. */
START_TEST(fixtures)
{
    char *dir = own(kit_tmp_dir());
    char **name;
    int64_t names;
    kit_packed_write(kit_path("%s/packed", dir));
    kit_hidden_write(kit_path("%s/hidden", dir), -1, 0);
    for (int i = 0; i < 2; i++) {
        const char *run = i ? "hidden" : "packed";
        kit_ok(file_list(kit_path("%s/%s", dir, run), &name, &names));
        ck_assert_int_eq(names, 3);
        for (int64_t k = 0; k < names; k++) {
            size_t n, m;
            char *now = kit_read(kit_path("%s/%s/%s", dir, run, name[k]), &n);
            char *kept = kit_read(kit_path(GOLDEN "/%s/%s", run, name[k]), &m);
            ck_assert_uint_eq(n, m);
            kit_same(name[k], now, kept, n);
            mem_free(now);
            mem_free(kept);
        }
        file_list_free(name, names);
    }
}
END_TEST

START_TEST(packed)
{
    char *dir = own(kit_tmp_dir());
    struct look l = {.log = &quiet, .row = -1};
    kit_packed_write(dir);
    FINDS(&l, dir, "packed rows, whole and verified", "stage       pack",
          "options length=8 seed=1", "shards      2\n", "rows        3\n",
          "row length  8\n", "tokens      19\n", "full        79.17 %",
          "supervised  13\n", "documents   5\n", "source I64 [3] per entry");
    l.facts.as_json = true;
    FINDS(&l, dir, "\"rows\":3", "\"full\":0.79166", "\"kind\":\"packed\"",
          "\"columns\":[{\"name\":\"source\",\"type\":\"I64\",\"shape\":[3],\"per\":"
          "\"entry\"}",
          "\"metadata\":{\"options\":\"length=8 seed=1\",");
}
END_TEST

START_TEST(numbers)
{
    char *dir = own(kit_tmp_dir());
    struct look l = {.log = &quiet, .row = -1, .stats = true};
    kit_hidden_write(dir, -1, 0);
    FINDS(&l, dir, "layer 1 rms 2 largest 2\n", "layer 3 rms 3 largest 3\n",
          "zero tokens 0\n", "input digest 00000000000000bb");

    dir = own(kit_tmp_dir());
    kit_hidden_write(dir, 9, 0xc120); // -10: token 2, first tap
    FINDS(&l, dir, "layer 1 rms 2.6833 largest 10\n", "layer 3 rms 3 largest 3\n");

    /* Not finite: named to the token, but only where numbers are looked at. */
    const uint16_t bad[] = {0x7f80, 0xff80, 0x7fc0, 0xffff};
    for (int i = 0; i < 4; i++) {
        dir = own(kit_tmp_dir());
        kit_hidden_write(dir, 30, bad[i]);
        kit_fails(
            look_run(&l, dir), E_FORMAT,
            "hidden-00001.safetensors: tensor aux: row 1, token 7, tap 1: number 0");
        l.stats = false;
        kit_ok(look_run(&l, dir));
        l.stats = true;
    }
    buf_drop(&l.facts.out);
}
END_TEST

START_TEST(types)
{
    static const uint16_t bf16[] = {0x4000, 0xc040}, f16[] = {0x4000, 0xc200};
    static const uint8_t e4m3[] = {0x40, 0xc4}, nan8[] = {0x40, 0x7f};
    static const float f32[] = {2, -3};
    static const double f64[] = {2, -3};
    const struct {
        enum st_type type;
        const void *p;
    } each[] = {{ST_BF16, bf16},
                {ST_F16, f16},
                {ST_F8_E4M3, e4m3},
                {ST_F32, f32},
                {ST_F64, f64}};
    for (int i = 0; i < 5; i++) {
        struct look_numbers n = {0};
        ck_assert_int_eq(look_numbers_add(&n, each[i].p, each[i].type, 2, 0.5f), -1);
        ck_assert_double_eq(n.squares, 1 + 1.5 * 1.5);
        ck_assert_double_eq(n.largest, 1.5);
        ck_assert_int_eq(n.n, 2);
    }
    struct look_numbers n = {0};
    ck_assert_int_eq(look_numbers_add(&n, nan8, ST_F8_E4M3, 2, 1), 1);
    ck_assert_int_eq(look_numbers_add(&n, f32, ST_F32, 2, INFINITY), 0);
}
END_TEST

static char *tokenizer(const char *model, const char *decoder, const char *vocab)
{
    char text[600], *path = own(kit_path("%s/tokenizer.json", kit_tmp_dir()));
    snprintf(text, sizeof text,
             "{\"added_tokens\":[{\"id\":7,\"content\":\"<|end|>\"}],"
             "\"decoder\":{\"type\":%s},"
             "\"model\":{\"type\":\"%s\",\"vocab\":%s}}",
             decoder, model, vocab);
    kit_write_text(path, text);
    return path;
}

#define VOCAB                                                                          \
    "{\"Hello\":0,\"\xc4\xa0world\":1,\"!\":2,\"\xc4\x8a\":3,\"\xc3\x83\":4,"          \
    "\"\xc2\xa9\":5,\"x y\":6}"

START_TEST(one_row)
{
    char *dir = own(kit_tmp_dir());
    struct look l = {.log = &quiet, .row = 0};
    struct bpe *bpe;
    kit_packed_write(dir);
    FINDS(&l, dir, "row         0\n",
          " file a.jsonl record 5 first 0 begin 0 end 4 supervised 2\n"
          "0 1 {+2 3+}\n",
          " file b.jsonl record 0 first 3 begin 4 end 7 supervised 2\n4 {+5 7+}\n");
    kit_ok(bpe_open(&bpe, tokenizer("BPE", "\"ByteLevel\"", VOCAB)));
    l.bpe = bpe;
    FINDS(&l, dir, "\nHello world{+!\n+}\n", "\n\xc3{+\xa9<|end|>+}\n");
    l.facts.as_json = true;
    FINDS(&l, dir, "\"text\":\"Hello world{+!\\n+}\"", "\"ids\":[0,1,2,3]",
          "\"mask\":[0,0,1,1]");
    l.facts.as_json = false;
    l.row = 1;
    FINDS(&l, dir, "x y{+x yx yx y");
    l.row = 2;
    FINDS(&l, dir, "Hello{+!+}\n", "first 2 begin 2 end 4");
    l.row = 3;
    kit_fails(look_run(&l, dir), E_CONFIG, "no row 3");
    bpe_close(bpe);
    buf_drop(&l.facts.out);
}
END_TEST

START_TEST(tokenizers)
{
    struct bpe *b;
    size_t n;
    kit_fails(bpe_open(&b, tokenizer("Unigram", "\"ByteLevel\"", VOCAB)), E_FORMAT,
              "model Unigram is unsupported");
    kit_fails(bpe_open(&b, tokenizer("BPE", "\"Metaspace\"", VOCAB)), E_FORMAT,
              "decoder Metaspace is unsupported");
    kit_fails(
        bpe_open(&b, tokenizer("BPE", "\"Sequence\",\"decoders\":[{\"type\":\"Fuse\"}]",
                               VOCAB)),
        E_FORMAT, "decoder Fuse is unsupported");
    kit_fails(bpe_open(&b, tokenizer("BPE", "\"ByteLevel\"", "{\"a\":-1}")), E_FORMAT,
              "piece \"a\": id -1");
    kit_fails(bpe_open(&b, tokenizer("BPE", "\"ByteLevel\"", "{\"a\":16777216}")),
              E_FORMAT, "out of range");
    kit_fails(bpe_open(&b, tokenizer("BPE", "\"ByteLevel\"", "{\"a\":\"0\"}")),
              E_FORMAT, "piece \"a\"");
    kit_ok(bpe_open(
        &b, tokenizer("BPE", "\"Sequence\",\"decoders\":[{\"type\":\"ByteLevel\"}]",
                      VOCAB)));
    ck_assert_ptr_null(bpe_piece(b, 8, &n));
    ck_assert_ptr_null(bpe_piece(b, -1, &n));
    ck_assert_str_eq(bpe_piece(b, 7, &n), "<|end|>");
    bpe_close(b);
}
END_TEST

/* Every byte has its character: all 256 come back, whatever the table's order. */
START_TEST(alphabet)
{
    struct buf text = {0};
    struct bpe *b;
    int next = 256;
    buf_adds(&text, "{\"decoder\":{\"type\":\"ByteLevel\"},\"model\":{\"type\":\"BPE\","
                    "\"vocab\":{");
    for (int i = 0; i < 256; i++) {
        bool own_character =
            (i >= 33 && i <= 126) || (i >= 161 && i <= 172) || (i >= 174);
        buf_addf(&text, "%s\"\\u%04x\":%d", i ? "," : "", own_character ? i : next++,
                 i);
    }
    buf_adds(&text, "}}}");
    char *path = own(kit_path("%s/t.json", kit_tmp_dir()));
    kit_write(path, text.p, text.len);
    kit_ok(bpe_open(&b, path));
    for (int i = 0; i < 256; i++) {
        size_t n;
        const char *p = bpe_piece(b, i, &n);
        ck_assert_uint_eq(n, 1);
        ck_assert_int_eq((uint8_t)p[0], i);
    }
    bpe_close(b);
    buf_drop(&text);
}
END_TEST

/* A text that a terminal would obey is shown, not sent. */
START_TEST(control_bytes)
{
    char *dir = own(kit_tmp_dir());
    struct look l = {.log = &quiet, .row = 1};
    struct bpe *bpe;
    kit_packed_write(dir);
    kit_ok(bpe_open(&bpe, tokenizer("BPE", "\"ByteLevel\"",
                                    "{\"\xc4\x9b[2J\xc4\x80\xc3\x82\xc4\xbd\":6}")));
    l.bpe = bpe;
    FINDS(&l, dir, "\\x1b[2J\\x00\xc2\\x9b{+");
    l.facts.as_json = true;
    FINDS(&l, dir, "\\u001b[2J\xef\xbf\xbd\xc2");
    bpe_close(bpe);
}
END_TEST

KIT_MAIN("inspect", fixtures, packed, numbers, types, one_row, tokenizers, alphabet,
         control_bytes)
