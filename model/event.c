#include "model/event.h"

#include "model/fault.h"
#include "model/site.h"

const char *event_kind_name(enum event_kind kind)
{
	static const char *const names[] = {"alloc", "free", "restore", "failed", "mmap", "munmap",
					    "brk",   "fork", "exec",    "exit",   "fault"};

	_Static_assert(ARRAY_SIZE(names) == EVENT_KINDS, "a name per kind");
	return names[kind];
}

const char *stack_quality_name(enum stack_quality q)
{
	static const char *const names[] = {"full", "cut", "guessed", "none"};

	return names[q];
}

const char *site_kind_name(enum site_kind k)
{
	static const char *const names[] = {"malloc", "mmap", "brk", "other"};

	return names[k];
}

const char *fault_mapping_name(enum fault_mapping m)
{
	static const char *const names[] = {"file", "anon", "stack", "brk", "vdso", "unknown"};

	_Static_assert(ARRAY_SIZE(names) == FAULT_MAPPINGS, "a name per mapping");
	return names[m];
}
