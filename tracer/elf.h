/*
 * An ELF file of x86-64 opened for reading: symbols, segments, build id, through libelf on a
 * duplicate of the descriptor. Nothing is mapped: a file that shrinks while it is read gives
 * errors, not signals. The only file that includes libelf's headers beside tracer/cfi.c and
 * tracer/symbols.c.
 *
 * Life: elf_file_open → use → elf_file_close. A file that is no ELF, truncated, of another
 * machine or damaged is an error with one clear line; no file makes us read beyond its end, or
 * allocate by a size that the file claims and does not have. Symbol tables that are damaged are
 * left out; elf_file_problem tells.
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

/* Strings of the dynamic segment, the nth of its kind; NULL = no more. Borrowed. */
enum elf_string { ELF_SONAME, ELF_NEEDED, ELF_RPATH, ELF_RUNPATH };
const char *elf_file_string(const struct elf_file *f, enum elf_string kind, size_t nth);

/* A program without an interpreter and libraries: nothing is loaded beside it. */
bool elf_file_is_static(const struct elf_file *f);

/* Why symbols may be missing, as a sentence's part; NULL = nothing is wrong. */
const char *elf_file_problem(const struct elf_file *f);

/* A function that the file defines. */
struct elf_function {
	const char *name; /* may end in a version, "@…"; borrowed */
	uint64_t vaddr, size;
	bool is_ifunc;   /* vaddr is that of the function which chooses one */
	bool is_local;   /* seen by nobody outside its object file */
	bool is_dynamic; /* other files are linked to it */
};

/* Goes through the functions of .symtab, then .dynsym; start with a zeroed cursor. */
struct elf_cursor {
	size_t table, i;
};
bool elf_file_next_function(const struct elf_file *f, struct elf_cursor *c,
			    struct elf_function *ret);

/* Copies code from a virtual address on, no further than its executable segment has bytes in the
 * file; the number of bytes copied. */
size_t elf_file_code(const struct elf_file *f, uint64_t vaddr, void *buf, size_t n);

/* The nth executable segment as far as it is in the file; false = no more. */
bool elf_file_code_segment(const struct elf_file *f, size_t nth, uint64_t *ret_vaddr,
			   uint64_t *ret_size);
