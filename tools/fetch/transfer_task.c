/* SPDX-License-Identifier: MIT */
/* transfer_task.c - the life of a task: begun, perhaps handed to the caller to be
 * opened, its works counted out and in, ended, forgotten. */
#include <string.h>

#include "mem.h"
#include "transfer_parts.h"

void tasks_append(struct tasks *list, struct task *task)
{
    task->link = NULL;
    if (!list->first)
        list->last = &list->first;
    *list->last = task;
    list->last = &task->link;
    list->n++;
}

int task_begin(struct task *task)
{
    struct keep *k = mem_zero(1, sizeof *k);
    if (!k)
        return E_MEMORY;
    k->partial.fd = k->partial.journal = -1;
    place_temp(k->temp, task->number);
    task->user = k;
    return 0;
}

void task_fail(struct task *task, int code)
{
    if (task->code == 0) {
        task->code = code;
        memcpy(keep_of(task)->why, err_text(), strlen(err_text()) + 1);
    }
}

void task_fail_all(struct transfer *t, int code)
{
    if (t->code == 0) {
        t->code = code;
        memcpy(t->why, err_text(), strlen(err_text()) + 1);
    }
    t->stop = true;
    pthread_cond_signal(&t->news);
}

void task_hand_over(struct transfer *t, struct task *task)
{
    tasks_append(&t->fresh, task);
    pthread_cond_signal(&t->news);
}

void task_end(struct transfer *t, struct task *task)
{
    queue_shut(&t->queue, task); // its lane may still hold it
    tasks_append(&t->ended, task);
    t->left--;
    if (t->left == 0 || t->ended.n == NEWS || task->pieces > 1)
        pthread_cond_signal(&t->news);
}

/* Ended is what has nothing out any more and has failed or is whole. */
void task_settle(struct transfer *t, struct task *task)
{
    task->out--;
    if (task->out == 0 && (task->code < 0 || task->left == 0))
        task_end(t, task);
}

void task_forget(struct transfer *t, struct task *task)
{
    struct keep *k = keep_of(task);
    if (k) {
        partial_close(&k->partial);
        texts_drop(&k->places);
        mem_free(k->other);
        mem_free(k);
    }
    queue_forget(&t->queue, task);
}
