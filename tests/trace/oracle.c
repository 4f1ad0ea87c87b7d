/*
 * The tests' second opinion: preloaded into a workload, it writes down every allocator call that
 * goes through the dynamic symbols, with the caller's stack, for compare.py to hold against what
 * the tracer saw from outside.
 *
 * Each process appends to $ORACLE_DIR/PID.log, one write per call, so that nothing is lost to
 * _exit, exec or SIGKILL. It never allocates: stacks are walked by a private copy of libgcc's
 * unwinder, module names come from _dl_find_object (no lock, right under dlclose), records are
 * built in memory mapped per thread. Calls go on to the next definition, so it stacks on any
 * preloaded allocator. Without ORACLE_DIR it only passes calls on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#define LOG_FD 973 /* out of the way of programs that close what they find */
#define PAGE 4096
#define DEPTH_MAX 1024
#define MODULES_MAX 256
#define SLOTS 8 /* signal handlers that interrupt each other in one thread */

enum kind { ALLOC, FREE, RESTORE, FAILED, MMAP, MUNMAP, BRK, START = 64, MODULE };

enum function {
	F_MALLOC,
	F_CALLOC,
	F_REALLOC,
	F_REALLOCARRAY,
	F_FREE,
	F_POSIX_MEMALIGN,
	F_ALIGNED_ALLOC,
	F_MEMALIGN,
	F_VALLOC,
	F_PVALLOC,
	F_MMAP,
	F_MUNMAP,
	F_MREMAP,
	F_NEW,
	F_DELETE
};

/* What a record of any kind begins with; compare.py knows the layout. */
struct record {
	uint32_t length; /* of the whole record in bytes */
	uint8_t kind, is_realloc;
	uint16_t function;
	uint32_t pid, tid;
	int64_t entry_ns, return_ns; /* of the wrapper: the call itself lies between */
	uint64_t address, size;      /* MODULE: its number, its load bias; START: 1 after exec */
	uint32_t frames, pad;
};

struct frame {
	uint64_t module, offset;
};

struct slot {
	struct record r;
	struct frame frames[DEPTH_MAX];
};

struct module {
	uintptr_t start, bias;
	char path[256];
};

static struct module modules[MODULES_MAX];
static unsigned modules_used;
static pid_t log_pid; /* whose log LOG_FD is */
static bool is_off;
static __thread struct slot *slots __attribute__((tls_model("initial-exec")));
static __thread unsigned slot_next __attribute__((tls_model("initial-exec")));
static __thread bool is_inside __attribute__((tls_model("initial-exec")));

/* -- what dlsym needs before it has answered: never freed, never recorded --------------------- */

static char early[65536] __attribute__((aligned(16)));
static size_t early_used;
static __thread bool is_resolving __attribute__((tls_model("initial-exec")));

static void *early_alloc(size_t size)
{
	size_t at = __atomic_fetch_add(&early_used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);

	if (at + size + 16 > sizeof(early))
		_exit(111);
	*(size_t *)(early + at) = size;
	return early + at + 16;
}

static bool is_early(const void *p)
{
	return (const char *)p >= early && (const char *)p < early + sizeof(early);
}

static void *next_of(void **cache, const char *name)
{
	void *f = __atomic_load_n(cache, __ATOMIC_RELAXED);

	if (f)
		return f;
	is_resolving = true;
	f = dlsym(RTLD_NEXT, name);
	is_resolving = false;
	if (!f)
		_exit(112);
	__atomic_store_n(cache, f, __ATOMIC_RELAXED);
	return f;
}

/* Until the end of the block, left by an exception too, calls are those of the allocator itself. */
#define INSIDE                                                          \
	__attribute__((cleanup(outside))) bool was_inside_ = is_inside; \
	is_inside = true

static void outside(const bool *was)
{
	is_inside = *was;
}

#define NEXT(name)                                          \
	({                                                  \
		static void *cache_;                        \
		(__typeof__(&name))next_of(&cache_, #name); \
	})

/*
 * Each wrapper is exported as a mere label. To the tracer it is then no function and gets no probe,
 * whose trampoline, in the place of the return address, would hide from us who has called.
 */
#define EXPORT_AS(name, wrapper)                                                         \
	__asm__(".pushsection .text\n.globl " #name "\n.type " #name ", @notype\n" #name \
		": jmp oracle_" #wrapper "\n.popsection");
#define EXPORT(name)          \
	EXPORT_AS(name, name) \
	__attribute__((used, noinline))

/* -- the log ----------------------------------------------------------------------------------- */

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static void put(const void *record, size_t n)
{
	if (write(LOG_FD, record, n) != (ssize_t)n)
		is_off = true;
}

static void put_module(unsigned i)
{
	struct {
		struct record r;
		char path[sizeof(modules[0].path)];
	} m = {.r = {.length = sizeof(m), .kind = MODULE, .pid = (uint32_t)log_pid}};

	m.r.address = i;
	m.r.size = modules[i].bias;
	memcpy(m.path, modules[i].path, sizeof(m.path));
	put(&m, sizeof(m));
}

/* Opens the log of this process: the first time, after exec, and in the child of a fork. */
static bool open_log(pid_t pid, int64_t entry_ns)
{
	struct record r = {.length = sizeof(r), .kind = START, .pid = (uint32_t)pid};
	const char *dir = getenv("ORACLE_DIR");
	char path[4096];
	int fd;

	if (!dir || is_off)
		return false;
	snprintf(path, sizeof(path), "%s/%d.log", dir, pid);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd < 0 || dup3(fd, LOG_FD, O_CLOEXEC) < 0) {
		is_off = true;
		return false;
	}
	close(fd);
	r.address = log_pid == 0;
	r.entry_ns = r.return_ns = entry_ns; /* before the call that is its first */
	log_pid = pid;
	put(&r, sizeof(r));
	for (unsigned i = 0; i < modules_used; i++)
		put_module(i);
	return true;
}

static unsigned module_of(uintptr_t pc, uintptr_t *ret_bias)
{
	struct dl_find_object o;
	unsigned i, n = __atomic_load_n(&modules_used, __ATOMIC_ACQUIRE);
	const char *name;

	if (_dl_find_object((void *)pc, &o) != 0) {
		*ret_bias = 0;
		return UINT32_MAX;
	}
	*ret_bias = o.dlfo_link_map->l_addr;
	name = o.dlfo_link_map->l_name;
	for (i = 0; i < n; i++)
		if (modules[i].start == (uintptr_t)o.dlfo_map_start &&
		    (*name == '\0' ||
		     strncmp(modules[i].path, name, sizeof(modules[i].path) - 1) == 0))
			return i;
	/* Two threads may both add one: harmless. */
	i = __atomic_load_n(&modules_used, __ATOMIC_RELAXED);
	if (i == MODULES_MAX)
		_exit(113);
	modules[i] = (struct module){(uintptr_t)o.dlfo_map_start, o.dlfo_link_map->l_addr, ""};
	if (*name == '\0')
		(void)!readlink("/proc/self/exe", modules[i].path, sizeof(modules[i].path) - 1);
	else
		strncpy(modules[i].path, name, sizeof(modules[i].path) - 1);
	__atomic_store_n(&modules_used, i + 1, __ATOMIC_RELEASE);
	put_module(i);
	return i;
}

/* Our own innermost frames are left out. */
static bool is_own(uintptr_t pc)
{
	static const char here;
	struct dl_find_object o;

	return _dl_find_object((void *)pc, &o) == 0 &&
	       (uintptr_t)&here >= (uintptr_t)o.dlfo_map_start &&
	       (uintptr_t)&here < (uintptr_t)o.dlfo_map_end;
}

static _Unwind_Reason_Code walk_frame(struct _Unwind_Context *context, void *data)
{
	struct slot *s = data;
	int is_exact; /* where a signal came: told as if it were a return address */
	uintptr_t pc = _Unwind_GetIPInfo(context, &is_exact), bias;
	struct frame *f;

	if (s->r.frames == 0 && is_own(pc))
		return _URC_NO_REASON;
	if (pc == 0 || s->r.frames == DEPTH_MAX)
		return _URC_END_OF_STACK;
	f = &s->frames[s->r.frames++];
	f->module = module_of(pc, &bias);
	f->offset = pc - bias + (is_exact ? 1 : 0);
	return _URC_NO_REASON;
}

static void log_call(enum kind kind, enum function function, bool is_realloc, int64_t entry_ns,
		     uint64_t address, uint64_t size)
{
	int saved_errno = errno;
	int64_t return_ns = now_ns();
	pid_t pid = (pid_t)syscall(SYS_getpid);
	struct slot *s;

	if (is_resolving || is_inside || (pid != log_pid && !open_log(pid, entry_ns)) || is_off)
		goto out;
	if (!slots) {
		/* Not by way of mmap(): the tracer would take that for the workload's. */
		slots = (struct slot *)syscall(SYS_mmap, NULL, SLOTS * sizeof(struct slot),
					       PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
					       -1, 0);
		if (slots == MAP_FAILED)
			_exit(114);
	}
	s = &slots[slot_next++ % SLOTS];
	s->r = (struct record){.kind = kind,
			       .is_realloc = is_realloc,
			       .function = function,
			       .pid = (uint32_t)pid,
			       .tid = (uint32_t)syscall(SYS_gettid),
			       .entry_ns = entry_ns,
			       .return_ns = return_ns,
			       .address = address,
			       .size = size};
	if (kind == ALLOC || kind == FAILED || kind == MMAP)
		_Unwind_Backtrace(walk_frame, s);
	s->r.length = (uint32_t)(sizeof(s->r) + s->r.frames * sizeof(s->frames[0]));
	put(s, s->r.length);
out:
	errno = saved_errno;
}

/* -- the heap ---------------------------------------------------------------------------------- */

#define LOG_ALLOC(function, is_realloc, p, size) \
	log_call((p) ? ALLOC : FAILED, function, is_realloc, entry_ns, (uintptr_t)(p), size)

EXPORT(malloc)
static void *oracle_malloc(size_t size)
{
	int64_t entry_ns = now_ns();
	void *p;

	if (is_resolving)
		return early_alloc(size);
	p = NEXT(malloc)(size);
	LOG_ALLOC(F_MALLOC, false, p, size);
	return p;
}

EXPORT(calloc)
static void *oracle_calloc(size_t n, size_t size)
{
	int64_t entry_ns = now_ns();
	void *p;

	if (is_resolving)
		return early_alloc(n * size); /* static memory: zero */
	p = NEXT(calloc)(n, size);
	LOG_ALLOC(F_CALLOC, false, p, n * size);
	return p;
}

EXPORT(free)
static void oracle_free(void *p)
{
	int64_t entry_ns = now_ns();

	if (!p || is_early(p))
		return;
	NEXT(free)(p);
	log_call(FREE, F_FREE, false, entry_ns, (uintptr_t)p, 0);
}

static void *early_realloc(void *p, size_t size)
{
	size_t had = ((size_t *)p)[-2];
	void *q = oracle_malloc(size);

	return q ? memcpy(q, p, had < size ? had : size) : NULL;
}

/* The release of the old block and what became of it. A block given back for size 0 is only
 * released. */
static void log_realloc(enum function f, void *old, void *p, size_t size, int64_t entry_ns)
{
	if (old)
		log_call(FREE, f, true, entry_ns, (uintptr_t)old, 0);
	if (p)
		log_call(ALLOC, f, true, entry_ns, (uintptr_t)p, size);
	else if (old && size > 0)
		log_call(RESTORE, f, true, entry_ns, (uintptr_t)old, 0);
	if (!p && size > 0)
		log_call(FAILED, f, true, entry_ns, 0, size);
}

EXPORT(realloc)
static void *oracle_realloc(void *old, size_t size)
{
	int64_t entry_ns = now_ns();
	void *p;

	if (is_resolving && !old)
		return early_alloc(size);
	if (is_early(old))
		return early_realloc(old, size);
	p = NEXT(realloc)(old, size);
	log_realloc(F_REALLOC, old, p, size, entry_ns);
	return p;
}

EXPORT(reallocarray)
static void *oracle_reallocarray(void *old, size_t n, size_t size)
{
	int64_t entry_ns = now_ns();
	void *p;

	{
		INSIDE; /* libc's calls realloc by its dynamic symbol: us */
		p = NEXT(reallocarray)(old, n, size);
	}
	log_realloc(F_REALLOCARRAY, old, p, n * size, entry_ns);
	return p;
}

EXPORT(posix_memalign)
static int oracle_posix_memalign(void **memptr, size_t align, size_t size)
{
	int64_t entry_ns = now_ns();
	int r = NEXT(posix_memalign)(memptr, align, size);

	if (r != EINVAL)
		LOG_ALLOC(F_POSIX_MEMALIGN, false, r == 0 ? *memptr : NULL, size);
	return r;
}

EXPORT(aligned_alloc)
static void *oracle_aligned_alloc(size_t align, size_t size)
{
	int64_t entry_ns = now_ns();
	void *p = NEXT(aligned_alloc)(align, size);

	LOG_ALLOC(F_ALIGNED_ALLOC, false, p, size);
	return p;
}

EXPORT(memalign)
static void *oracle_memalign(size_t align, size_t size)
{
	int64_t entry_ns = now_ns();
	void *p = NEXT(memalign)(align, size);

	LOG_ALLOC(F_MEMALIGN, false, p, size);
	return p;
}

EXPORT(valloc)
static void *oracle_valloc(size_t size)
{
	int64_t entry_ns = now_ns();
	void *p = NEXT(valloc)(size);

	LOG_ALLOC(F_VALLOC, false, p, size);
	return p;
}

static size_t round_page(size_t size)
{
	return (size + PAGE - 1) & ~(size_t)(PAGE - 1);
}

EXPORT(pvalloc)
static void *oracle_pvalloc(size_t size)
{
	int64_t entry_ns = now_ns();
	void *p = NEXT(pvalloc)(size);

	LOG_ALLOC(F_PVALLOC, false, p, round_page(size));
	return p;
}

/* -- C++: the operators call malloc and free by their dynamic symbols, that is, us ----------------
 */

#define OPERATOR_NEW(name, parameters, ...)          \
	void *name parameters;                       \
	EXPORT(name)                                 \
	static void *oracle_##name parameters        \
	{                                            \
		int64_t entry_ns = now_ns();         \
		void *p;                             \
                                                     \
		{                                    \
			INSIDE;                      \
			p = NEXT(name)(__VA_ARGS__); \
		}                                    \
		LOG_ALLOC(F_NEW, false, p, size);    \
		return p;                            \
	}

#define OPERATOR_DELETE(name, parameters, ...)                                      \
	void name parameters;                                                       \
	EXPORT(name)                                                                \
	static void oracle_##name parameters                                        \
	{                                                                           \
		int64_t entry_ns = now_ns();                                        \
                                                                                    \
		{                                                                   \
			INSIDE;                                                     \
			NEXT(name)(__VA_ARGS__);                                    \
		}                                                                   \
		if (p)                                                              \
			log_call(FREE, F_DELETE, false, entry_ns, (uintptr_t)p, 0); \
	}

OPERATOR_NEW(_Znwm, (size_t size), size)
OPERATOR_NEW(_Znam, (size_t size), size)
OPERATOR_NEW(_ZnwmRKSt9nothrow_t, (size_t size, const void *tag), size, tag)
OPERATOR_NEW(_ZnamRKSt9nothrow_t, (size_t size, const void *tag), size, tag)
OPERATOR_NEW(_ZnwmSt11align_val_t, (size_t size, size_t align), size, align)
OPERATOR_NEW(_ZnamSt11align_val_t, (size_t size, size_t align), size, align)
OPERATOR_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), size,
	     align, tag)
OPERATOR_NEW(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t size, size_t align, const void *tag), size,
	     align, tag)
OPERATOR_DELETE(_ZdlPv, (void *p), p)
OPERATOR_DELETE(_ZdaPv, (void *p), p)
OPERATOR_DELETE(_ZdlPvm, (void *p, size_t size), p, size)
OPERATOR_DELETE(_ZdaPvm, (void *p, size_t size), p, size)
OPERATOR_DELETE(_ZdlPvRKSt9nothrow_t, (void *p, const void *tag), p, tag)
OPERATOR_DELETE(_ZdaPvRKSt9nothrow_t, (void *p, const void *tag), p, tag)
OPERATOR_DELETE(_ZdlPvSt11align_val_t, (void *p, size_t align), p, align)
OPERATOR_DELETE(_ZdaPvSt11align_val_t, (void *p, size_t align), p, align)
OPERATOR_DELETE(_ZdlPvmSt11align_val_t, (void *p, size_t size, size_t align), p, size, align)
OPERATOR_DELETE(_ZdaPvmSt11align_val_t, (void *p, size_t size, size_t align), p, size, align)
OPERATOR_DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t align, const void *tag), p,
		align, tag)
OPERATOR_DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t align, const void *tag), p,
		align, tag)

/* -- mappings: anonymous ones only, failed calls are none ---------------------------------------
 */

EXPORT(mmap)
static void *oracle_mmap(void *at, size_t size, int prot, int flags, int fd, off_t offset)
{
	int64_t entry_ns = now_ns();
	void *p = NEXT(mmap)(at, size, prot, flags, fd, offset);

	if (p != MAP_FAILED && flags & MAP_ANONYMOUS)
		log_call(MMAP, F_MMAP, false, entry_ns, (uintptr_t)p, round_page(size));
	return p;
}

EXPORT_AS(mmap64, mmap)

EXPORT(munmap)
static int oracle_munmap(void *p, size_t size)
{
	int64_t entry_ns = now_ns();
	int r = NEXT(munmap)(p, size);

	if (r == 0)
		log_call(MUNMAP, F_MUNMAP, false, entry_ns, (uintptr_t)p, round_page(size));
	return r;
}

EXPORT(mremap)
static void *oracle_mremap(void *old, size_t old_size, size_t size, int flags, ...)
{
	int64_t entry_ns = now_ns();
	void *p, *at;
	va_list args;

	va_start(args, flags);
	at = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	p = NEXT(mremap)(old, old_size, size, flags, at);
	log_call(MUNMAP, F_MREMAP, true, entry_ns, (uintptr_t)old, round_page(old_size));
	if (p == MAP_FAILED)
		log_call(RESTORE, F_MREMAP, true, entry_ns, (uintptr_t)old, 0);
	else
		log_call(MMAP, F_MREMAP, true, entry_ns, (uintptr_t)p, round_page(size));
	return p;
}
