/* SPDX-License-Identifier: MIT */
/* crc.h - the cyclic redundancy checks that S3 keeps with its objects, and their sums.
 *
 * The CRC of a whole follows from those of its pieces, so pieces are checked where and
 * when they arrive.  No packaged C library has CRC-64/NVME, so all three are ours:
 * folded with carry-less multiplication where the processor has it (Gopal et al., "Fast
 * CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009),
 * eight bytes at a time from tables elsewhere.
 *
 * Values are as the catalogue of CRCs gives them: of "123456789" CRC-64/NVME is
 * ae8b14860a799888, CRC-32C e3069283, CRC-32 cbf43926. */
#ifndef CRC_H
#define CRC_H

#include <stddef.h>
#include <stdint.h>

enum crc { CRC64NVME, CRC32C, CRC32 };

/* crc_add continues a CRC; 0 is that of nothing. */
uint64_t crc_add(enum crc kind, uint64_t value, const void *p, size_t n);

/* crc_join is the CRC of a followed by b, which has n bytes. */
uint64_t crc_join(enum crc kind, uint64_t a, uint64_t b, uint64_t n);

#endif
