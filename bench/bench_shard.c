/* SPDX-License-Identifier: MIT */
/* bench_shard.c - how fast rows become shards and shards become rows.
 *
 *   DIR=/mnt/nvme ROWS=16 bench_shard      both optional: where, rows of 64 MiB
 *
 * A line a case: what, the median GB/s of three runs.  The first lines are what bounds
 * the others: a copy in memory, the checksum, and a pipe that carries the same bytes
 * with nothing done to them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "err.h"
#include "hash.h"
#include "kit_time.h"
#include "log.h"
#include "mem.h"
#include "shard.h"

enum { RUNS = 3, ROW = 64 << 20 };

static struct {
    char *dir; // of the run; removed at the end
    int64_t rows;
    char *row, *other; // ROW bytes each
} bench;

static void must(int rc)
{
    if (rc < 0) {
        fprintf(stderr, "bench_shard: %s\n", err_text());
        exit(1);
    }
}

static void copy(void)
{
    for (int64_t i = 0; i < bench.rows; i++)
        memcpy(bench.other, bench.row, ROW);
}

static void checksum(void)
{
    for (int64_t i = 0; i < bench.rows; i++)
        bench.other[0] = (char)(bench.other[0] + (char)hash_bytes(bench.row, ROW));
}

static void write_run(const char *dir)
{
    struct shard_options o = {
        .name = "bench",
        .stage = "bench",
        .parts = 1,
        .column = {{.name = "x", .type = ST_BF16, .rank = 1, .dim = {ROW / 2}}},
        .columns = 1};
    struct shard_writer *w;
    int64_t have;
    void *at[SHARD_COLUMNS];
    must(shard_create(&w, dir, &o, &have));
    for (int64_t i = have; w && i < bench.rows; i++) {
        must(shard_row(w, at));
        memcpy(at[0], bench.row, ROW);
    }
    if (w)
        must(shard_finish(w));
}

static void write_folder(void)
{
    must(file_remove_tree(bench.dir));
    write_run(bench.dir);
}

static void read_path(char *path)
{
    struct shard_reader *r;
    struct shard_view v;
    int rc;
    must(shard_open(&r, &path, 1));
    while ((rc = shard_next(r, &v)) > 0)
        continue;
    must(rc);
    shard_close(r);
}

static void read_folder(void)
{
    read_path(bench.dir);
}

/* Runs `put` in a process of its own, with its output in a pipe that is our stdin. */
static void through_pipe(void (*put)(void), void (*get)(void))
{
    int fd[2], status;
    if (pipe(fd) != 0)
        must(err_set(E_IO, "no pipe"));
    pid_t child = fork();
    if (child == 0) {
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        put();
        _exit(0);
    }
    dup2(fd[0], STDIN_FILENO);
    close(fd[0]);
    close(fd[1]);
    get();
    waitpid(child, &status, 0);
}

static void put_raw(void)
{
    for (int64_t i = 0; i < bench.rows; i++)
        must(file_put(STDOUT_FILENO, bench.row, ROW, "pipe"));
}

static void get_raw(void)
{
    while (file_get(STDIN_FILENO, bench.other, ROW, "pipe") > 0)
        continue;
}

static void put_run(void)
{
    write_run("-");
}

static void get_run(void)
{
    read_path("-");
}

static void pipe_raw(void)
{
    through_pipe(put_raw, get_raw);
}

static void pipe_run(void)
{
    through_pipe(put_run, get_run);
}

static void measure(const char *what, void (*run)(void))
{
    double took[RUNS];
    for (int i = 0; i < RUNS; i++) {
        double begun = log_now();
        run();
        took[i] = log_now() - begun;
    }
    printf("%-28s %6.2f GB/s\n", what,
           1e-9 * (double)bench.rows * ROW / kit_median(took, RUNS));
    fflush(stdout);
}

int main(void)
{
    const char *dir = getenv("DIR"), *rows = getenv("ROWS");
    bench.dir = file_path(dir ? dir : "/tmp", "bench_shard.run");
    bench.rows = rows ? strtoll(rows, NULL, 10) : 16;
    bench.row = mem_alloc(ROW);
    bench.other = mem_alloc(ROW);
    if (!bench.dir || !bench.row || !bench.other)
        must(E_MEMORY);
    for (size_t i = 0; i < ROW; i++)
        bench.row[i] = (char)(i * 2654435761u >> 13);
    memset(bench.other, 0, ROW);
    measure("memcpy", copy);
    measure("xxh3", checksum);
    measure("pipe, nothing done", pipe_raw);
    measure("shards through a pipe", pipe_run);
    measure("shards to a folder, durable", write_folder);
    measure("shards from a folder", read_folder);
    must(file_remove_tree(bench.dir));
    return 0;
}
