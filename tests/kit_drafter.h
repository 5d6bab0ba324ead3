/* SPDX-License-Identifier: MIT */
/* kit_drafter.h - golden drafters (tests/golden/README.md) as things to run.
 *
 * A fixture is a drafter with its weights, one packed row and its anchors; a task is
 * what drafter_step is asked, in arrays that a test may spoil; an answer is what came
 * out. */
#ifndef KIT_DRAFTER_H
#define KIT_DRAFTER_H

#include "anchor.h"
#include "drafter.h"
#include "kit_model.h"

enum { KIT_S = 320, KIT_Q = 512, KIT_A = 32 };

struct kit_fixture {
    struct st_file file;
    struct par *par;
    struct dev *dev;
    struct drafter m; /* f32 weights */
    double gamma;
    struct tensor embed, head; /* f32 [V,H] */
    struct tensor aux;         /* f32 [S,K*H] */
    int64_t length, anchors;
    int32_t ids[KIT_S], doc[KIT_S], anchor[KIT_A];
    uint8_t mask[KIT_S];
};

/* kit_fixture_open reads tests/golden/drafter/NAME.safetensors. */
void kit_fixture_open(struct kit_fixture *f, const char *name, int threads);
void kit_fixture_close(struct kit_fixture *f);

/* The row as anchor.h has it; its view lives as long as the fixture. */
struct anchor_row kit_fixture_row(const struct kit_fixture *f);

struct kit_task {
    struct tensor aux;
    int64_t context, blocks, labelled;
    int32_t pos[KIT_S];
    int32_t id[KIT_Q], at[KIT_Q], lo[KIT_Q], slide[KIT_Q], hi[KIT_Q];
    int32_t row[KIT_Q], label[KIT_Q];
    float weight[KIT_Q];
};

/* kit_task_make asks for all anchors of the fixture in blocks of m.config.block;
 * kit_task_document only for those of document d, in a row of its own. */
void kit_task_make(struct kit_task *t, const struct kit_fixture *f);
void kit_task_document(struct kit_task *t, const struct kit_fixture *f, int32_t d);

struct kit_answer {
    struct tensor hidden; /* [Q,H] */
    struct tensor grads;  /* [count]; no data unless asked */
    int32_t hit[KIT_Q];
    struct drafter_result result;
};

/* kit_task_run runs a step in exactly the memory that was planned; gradients begin at
 * 0. */
void kit_task_run(struct kit_answer *a, struct kit_fixture *f, const struct kit_task *t,
                  bool grads);
void kit_answer_free(struct kit_answer *a);

#endif
