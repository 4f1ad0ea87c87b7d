/*
 * An ELF file of x86-64 opened for reading: symbols, sections, segments, build id, through
 * libelf on a private mapping of the descriptor. The only file that includes libelf's headers
 * beside tracer/cfi.c and tracer/symbols.c.
 *
 * Life: elf_file_open → use → elf_file_close. A file that is no ELF, truncated, of another
 * machine or damaged is an error with one clear line; no file makes us read beyond its end, or
 * allocate by a size that the file claims and does not have.
 */
#pragma once

#include "base/err.h"
#include "model/site.h"

struct elf_file;

/* fd is borrowed for the call (duplicated where needed). name is for messages. -ENOEXEC: no ELF
 * at all (no message worth printing), -EBADMSG: damaged, -ENOTSUP: not for x86-64. */
int elf_file_open(struct elf_file **ret, int fd, const char *name, struct err *err);
void elf_file_close(struct elf_file *f); /* NULL allowed */

/* Bytes of the build id copied to id; 0 = the file has none. */
int elf_file_build_id(const struct elf_file *f, uint8_t id[BUILD_ID_MAX]);

/* The PT_INTERP path, or NULL (static). Borrowed. */
const char *elf_file_interp(const struct elf_file *f);

/* File offset of a virtual address that is in a loaded segment; -1 = in none. */
int64_t elf_file_offset(const struct elf_file *f, uint64_t vaddr);

/* Virtual address of a file offset in an executable segment; UINT64_MAX = in none. */
uint64_t elf_file_vaddr(const struct elf_file *f, uint64_t offset);
