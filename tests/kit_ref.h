/* SPDX-License-Identifier: MIT */
/* kit_ref.h - references that have a file of their own; called by ref_run alone. */
#ifndef KIT_REF_H
#define KIT_REF_H

#include "kit_op.h"

/* kit_ref_delta.c */
void ref_gate(struct call *k);
void ref_delta_mix(struct call *k);
void ref_delta(struct call *k);
void ref_norm_gate(struct call *k);

#endif
