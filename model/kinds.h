/* The kinds of events, stacks and faults: enums alone, so that BPF programs can include them too.
 */
#pragma once

enum event_kind {
	EVENT_ALLOC,   /* a block of the heap: address, size as requested */
	EVENT_FREE,    /* address */
	EVENT_RESTORE, /* the thread's last FREE or MUNMAP with EVENT_REALLOC did not happen */
	EVENT_FAILED,  /* an allocation that returned NULL: size */
	EVENT_MMAP,    /* address, size rounded to pages; replaces what was mapped there */
	EVENT_MUNMAP,  /* address, size rounded to pages; may cover parts of several mappings */
	EVENT_BRK,     /* the workload moved its break itself: address = the end before, size =
			* growth in bytes, negative (as int64_t) when it shrank */
	EVENT_FORK,    /* pid made a child: address = the child's pid. Without EVENT_SHARED_MM the
			* child has a copy of what was live */
	EVENT_EXEC,    /* the process's live blocks are gone */
	EVENT_EXIT,    /* the process's last thread ended: size = status as of wait(2) */
	EVENT_FAULT,   /* a major fault: address, size = ns that it took (0 = not known), stack =
			* that of the site owning the address (0 = none) */
	EVENT_KINDS
};

enum {
	EVENT_REALLOC = 1,
	EVENT_SHARED_MM = 2, /* FORK by vfork, posix_spawn or CLONE_VM */
};

/* What can be traced. */
enum trace_part {
	TRACE_ALLOC = 1, /* allocations, and where they are in memory */
	TRACE_FAULT = 2, /* major faults */
};

enum stack_quality {
	STACK_FULL,    /* unwound to the thread's first frame */
	STACK_CUT,     /* the outer end is missing */
	STACK_GUESSED, /* at least one frame found by frame pointer, without unwind rows */
	STACK_NONE,    /* nothing known */
};

/* What is mapped where a fault was. */
enum fault_mapping {
	FAULT_FILE,
	FAULT_ANON,
	FAULT_STACK,
	FAULT_BRK,
	FAULT_VDSO,
	FAULT_UNKNOWN,
	FAULT_MAPPINGS
};
