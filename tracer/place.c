/* Where probes go; see place.h. */
#include "tracer/place.h"

#include <errno.h>

#include "tracer/insn.h"

/* As far as a probe may move: the start of a function that does nothing yet. */
#define SKIP_MAX 32

/* Code that is searched; in a file with more, probes stay at the entries. */
#define CODE_MAX ((uint64_t)256 << 20)

/* The first emulated instruction, reached by harmless ones only; 0 = none, or at the entry. */
static size_t first_emulated(const uint8_t *code, size_t n)
{
	struct insn in;

	for (size_t at = 0; at <= SKIP_MAX && at < n; at += in.length) {
		if (insn_decode(&in, code + at, n - at) < 0)
			return 0;
		if (in.is_emulated)
			return at;
		if (!in.is_harmless)
			return 0;
	}
	return 0;
}

/* A loop back to the probe would be one more call, one past it would be none. */
size_t place_probe(const uint8_t *code, size_t n)
{
	size_t to = first_emulated(code, n);
	struct insn in;

	if (to == 0)
		return 0;
	for (size_t at = 0; at < n; at += in.length) {
		int64_t target;

		if (insn_decode(&in, code + at, n - at) < 0 || in.is_computed)
			return 0;
		target = (int64_t)(at + in.length) + in.target;
		if (in.is_branch && target > 0 && target <= (int64_t)to)
			return 0;
	}
	return to;
}

static void enter(struct place_skip *skip, size_t n, uint64_t vaddr)
{
	/* Nearly always: one comparison for all. */
	if (vaddr - skip[0].from > skip[n - 1].to - skip[0].from)
		return;
	for (size_t i = 0; i < n && skip[i].from < vaddr; i++) {
		if (vaddr <= skip[i].to)
			skip[i].is_entered = true;
	}
}

/*
 * Branches with a distance of four bytes, wherever their bytes may stand: cold parts of functions
 * lie far away. Bytes that only look like a branch cost a probe its better place, once in some
 * hundred files.
 */
static void search(struct place_skip *skip, size_t n, uint64_t vaddr, const uint8_t *code,
		   size_t size)
{
	for (size_t i = 0; i + 6 <= size; i++) {
		bool is_near = code[i + 1] == 0xe8 || code[i + 1] == 0xe9;
		bool is_jcc = code[i] == 0x0f && (code[i + 1] & 0xf0) == 0x80;
		int32_t distance;

		if (!is_near && !is_jcc)
			continue;
		distance = (int32_t)(code[i + 2] | code[i + 3] << 8 | code[i + 4] << 16 |
				     (uint32_t)code[i + 5] << 24);
		enter(skip, n, vaddr + i + 6 + distance);
	}
}

static int search_segment(const struct elf_file *f, struct place_skip *skip, size_t n,
			  uint64_t vaddr, uint64_t size, struct err *err)
{
	enum { CHUNK = 1 << 18, OVERLAP = 5 };
	_cleanup_free_ uint8_t *buf = malloc(CHUNK);

	if (!buf)
		return err_errno(err, -ENOMEM, "looking for branches");
	for (uint64_t at = 0; at < size; at += CHUNK - OVERLAP)
		search(skip, n, vaddr + at, buf, elf_file_code(f, vaddr + at, buf, CHUNK));
	return 0;
}

int place_check(const struct elf_file *f, struct place_skip *skip, size_t n, struct err *err)
{
	struct elf_cursor c = {0};
	struct elf_function fn;
	uint64_t vaddr, size, all = 0;

	if (n == 0)
		return 0;
	while (elf_file_next_function(f, &c, &fn))
		enter(skip, n, fn.vaddr);
	for (size_t i = 0; elf_file_code_segment(f, i, &vaddr, &size); i++)
		all += size;
	for (size_t i = 0; all > CODE_MAX && i < n; i++)
		skip[i].is_entered = true;
	for (size_t i = 0; all <= CODE_MAX && elf_file_code_segment(f, i, &vaddr, &size); i++) {
		int r = search_segment(f, skip, n, vaddr, size, err);

		if (r < 0)
			return r;
	}
	return 0;
}
