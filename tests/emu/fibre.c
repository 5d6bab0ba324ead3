/* SPDX-License-Identifier: MIT */
/* fibre.c - from one stack to another: x86-64's callee-saved registers, and nothing
 * else.
 */
#include "block.h"

#include <string.h>

__asm__(".text\n"
        ".globl emu_switch\n"
        ".type emu_switch, @function\n"
        "emu_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size emu_switch, . - emu_switch\n");

void *emu_stack_new(void *stack, size_t bytes, void (*begin)(void))
{
    void **top = (void **)((char *)stack + bytes);
    *--top = NULL; // where `begin` would return to; keeps the stack's alignment
    memcpy(--top, &begin, sizeof begin);
    for (int i = 0; i < 6; i++)
        *--top = NULL;
    return top;
}
