#include "tracer/live.h"

#include "base/map.h"
#include "tracer/live_blocks.h"
#include "tracer/live_ranges.h"
#include "tracer/site_table.h"

#include <errno.h>

#define ADDRESS_MAX (UINT64_C(1) << 57)
#define THREADS_MAX 16384

/* An address space. */
struct space {
	uint32_t refs; /* processes that it belongs to */
	struct blocks blocks;
	struct ranges ranges;
};

/* A pid between FORK or EXEC and EXEC or EXIT. */
struct process {
	uint64_t serial; /* 1, 2, …; never used again */
	struct space *space;
};

/*
 * What a thread did last. Threads die without an event, so nothing here may matter for long: it
 * is void when the thread's id turns up in another process, and forgotten when enough others
 * were active since.
 */
struct thread {
	uint64_t serial; /* of the process */
	/* The block of its last event, if that was an ALLOC; else address 0. */
	uint64_t last_address;
	int64_t last_t_ns;
	/* What its last event took away, if that was a FREE or MUNMAP with EVENT_REALLOC. */
	struct block block; /* address 0 = none */
	bool was_temporary;
	int64_t freed_t_ns;
	struct piece *pieces; /* NULL = none */
};

struct live {
	struct site_table sites;
	struct map processes; /* by pid → struct process, owned */
	/* By tid → struct thread, owned: new ones, and those not seen since [0] was full. */
	struct map threads[2];
	uint64_t last_serial;
	struct live_totals totals; /* without what sites sums up */
	/* Of the last event, since the next one is likely of the same. NULL = look it up. */
	struct process *process;
	struct thread *thread;
	uint32_t pid, tid;
};

/* -- processes and threads ------------------------------------------------------------------- */

static void space_unref(struct space *s)
{
	if (--s->refs > 0)
		return;
	blocks_done(&s->blocks);
	ranges_done(&s->ranges);
	free(s);
}

/* shared: its address space, if that is another's too; NULL = a new one. */
static struct process *process_new(struct live *l, uint32_t pid, struct space *shared)
{
	struct process *p = calloc(1, sizeof(*p));
	struct space *s = shared ? shared : calloc(1, sizeof(*s));

	if (!p || !s || map_put(&l->processes, pid, (uintptr_t)p, NULL) < 0) {
		free(p);
		if (!shared)
			free(s);
		return NULL;
	}
	s->refs++;
	p->space = s;
	p->serial = ++l->last_serial;
	return p;
}

static struct process *process_of(struct live *l, uint32_t pid)
{
	if (!l->process || l->pid != pid) {
		l->pid = pid;
		l->process = map_pointer(map_get(&l->processes, pid));
		if (!l->process)
			l->process = process_new(l, pid, NULL);
	}
	return l->process;
}

static void forget(struct thread *th)
{
	pieces_free(th->pieces);
	*th = (struct thread){0};
}

static void threads_free(struct map *threads)
{
	for (size_t i = 0; i < threads->cap; i++) {
		struct thread *th = map_pointer(threads->slots[i].value);

		if (th) {
			forget(th);
			free(th);
		}
	}
	map_done(threads);
}

static struct thread *find_thread(struct live *l, uint32_t tid)
{
	struct thread *th = map_pointer(map_get(&l->threads[0], tid));

	if (th)
		return th;
	if (l->threads[0].n >= THREADS_MAX) {
		threads_free(&l->threads[1]);
		l->threads[1] = l->threads[0];
		l->threads[0] = (struct map){0};
	}
	th = map_pointer(map_take(&l->threads[1], tid));
	if (!th)
		th = calloc(1, sizeof(*th));
	if (th && map_put(&l->threads[0], tid, (uintptr_t)th, NULL) < 0) {
		forget(th);
		free(th);
		return NULL;
	}
	return th;
}

static struct thread *thread_of(struct live *l, uint32_t tid, const struct process *p)
{
	if (!l->thread || l->tid != tid) {
		l->tid = tid;
		l->thread = find_thread(l, tid);
	}
	if (l->thread && l->thread->serial != p->serial) {
		forget(l->thread);
		l->thread->serial = p->serial;
	}
	return l->thread;
}

/* -- blocks ---------------------------------------------------------------------------------- */

static bool is_possible(uint64_t address, uint64_t size)
{
	return size <= ADDRESS_MAX && address <= ADDRESS_MAX - size;
}

/* Counts; the block itself is the caller's. */
static void count_free(struct live *l, const struct block *b, int64_t t_ns)
{
	if (b->is_inherited)
		return;
	site_table_remove(&l->sites, b->site, b->size, 1);
	site_table_freed(&l->sites, b->site, t_ns - b->t_ns, 1);
}

/* The table's entry for a block that begins to live there now; NULL = no memory. */
static struct block *block_at(struct live *l, struct space *s, uint64_t address, int64_t t_ns)
{
	struct block *b = blocks_at(&s->blocks, address);

	if (b && b->site != 0) {
		l->totals.replaced++;
		count_free(l, b, t_ns);
	}
	return b;
}

static enum live_effect on_alloc(struct live *l, struct space *s, const struct event *ev)
{
	struct block *b;
	uint32_t site;

	if (ev->address == 0 || !is_possible(ev->address, ev->size))
		return LIVE_NOTHING;
	site = site_table_get(&l->sites, ev->stack, SITE_MALLOC);
	b = site ? block_at(l, s, ev->address, ev->t_ns) : NULL;
	if (!b)
		return LIVE_NO_MEMORY;
	*b = (struct block){
		.address = ev->address, .size = ev->size, .t_ns = ev->t_ns, .site = site};
	blocks_filled(&s->blocks, b);
	site_table_alloc(&l->sites, site, ev->size, ev->t_ns);
	return LIVE_OK;
}

static enum live_effect on_free(struct live *l, struct space *s, struct thread *th,
				const struct event *ev)
{
	struct block *b;
	bool is_temporary;

	if (ev->address == 0)
		return LIVE_NOTHING;
	b = blocks_find(&s->blocks, ev->address);
	if (!b) {
		l->totals.unknown_frees++;
		return LIVE_UNKNOWN;
	}
	/* The time tells it from a block that another thread put there since. */
	is_temporary =
		!b->is_inherited && th->last_address == ev->address && th->last_t_ns == b->t_ns;
	count_free(l, b, ev->t_ns);
	if (is_temporary)
		site_table_temporary(&l->sites, b->site, 1);
	if (ev->flags & EVENT_REALLOC) {
		th->block = *b;
		th->was_temporary = is_temporary;
		th->freed_t_ns = ev->t_ns;
	}
	blocks_remove(&s->blocks, b);
	return LIVE_OK;
}

static enum live_effect on_failed(struct live *l, const struct event *ev)
{
	uint32_t site = site_table_get(&l->sites, ev->stack, SITE_MALLOC);

	if (!site)
		return LIVE_NO_MEMORY;
	site_table_failed(&l->sites, site);
	l->totals.failed_allocs++;
	return LIVE_OK;
}

/* -- mappings -------------------------------------------------------------------------------- */

/* Takes out what lies in [start, end), counted as unmapped. ranges_reserve has been called. */
static struct piece *unmap(struct live *l, struct space *s, uint64_t start, uint64_t end,
			   int64_t t_ns)
{
	struct piece *list = ranges_take(&s->ranges, start, end);

	for (const struct piece *p = list; p; p = p->right) {
		struct mapping *m = p->mapping;

		if (p->is_inherited)
			continue;
		m->bytes -= p->end - p->start;
		site_table_remove(&l->sites, m->site, p->end - p->start, m->bytes == 0);
		if (m->bytes == 0) {
			m->gone_t_ns = t_ns;
			site_table_freed(&l->sites, m->site, t_ns - m->t_ns, 1);
		}
	}
	return list;
}

static enum live_effect map(struct live *l, struct space *s, const struct event *ev,
			    enum site_kind kind)
{
	uint64_t start = ev->address, end = start + ev->size;
	struct mapping *m;
	uint32_t site;

	if (ev->size == 0 || !is_possible(start, ev->size))
		return LIVE_NOTHING;
	site = site_table_get(&l->sites, ev->stack, kind);
	m = calloc(1, sizeof(*m));
	if (!site || !m || ranges_reserve(&s->ranges) < 0) {
		free(m);
		return LIVE_NO_MEMORY;
	}
	pieces_free(unmap(l, s, start, end, ev->t_ns));
	*m = (struct mapping){.site = site, .bytes = ev->size, .t_ns = ev->t_ns};
	ranges_add(&s->ranges, start, end, m);
	site_table_alloc(&l->sites, site, ev->size, ev->t_ns);
	return LIVE_OK;
}

/* stash: for RESTORE; NULL = there will be none. */
static enum live_effect on_unmap(struct live *l, struct space *s, uint64_t start, uint64_t size,
				 int64_t t_ns, struct piece **stash)
{
	struct piece *list;

	if (size == 0 || !is_possible(start, size))
		return LIVE_NOTHING;
	if (ranges_reserve(&s->ranges) < 0)
		return LIVE_NO_MEMORY;
	list = unmap(l, s, start, start + size, t_ns);
	if (!list)
		return LIVE_NOTHING;
	if (stash)
		*stash = list;
	else
		pieces_free(list);
	return LIVE_OK;
}

static enum live_effect on_brk(struct live *l, struct space *s, const struct event *ev)
{
	uint64_t shrink = -ev->size;

	if ((int64_t)ev->size >= 0)
		return map(l, s, ev, SITE_BRK);
	if (shrink > ev->address)
		return LIVE_NOTHING;
	return on_unmap(l, s, ev->address - shrink, shrink, ev->t_ns, NULL);
}

/* -- RESTORE --------------------------------------------------------------------------------- */

static enum live_effect restore_block(struct live *l, struct space *s, struct thread *th,
				      int64_t t_ns)
{
	struct block *b = block_at(l, s, th->block.address, t_ns);

	if (!b)
		return LIVE_NO_MEMORY;
	*b = th->block;
	blocks_filled(&s->blocks, b);
	if (b->is_inherited)
		return LIVE_OK;
	site_table_put_back(&l->sites, b->site, b->size, 1, t_ns);
	site_table_freed(&l->sites, b->site, th->freed_t_ns - b->t_ns, -1);
	if (th->was_temporary)
		site_table_temporary(&l->sites, b->site, -1);
	return LIVE_OK;
}

static enum live_effect restore_pieces(struct live *l, struct space *s, struct thread *th,
				       int64_t t_ns)
{
	for (const struct piece *p = th->pieces; p; p = p->right) {
		if (ranges_reserve(&s->ranges) < 0)
			return LIVE_NO_MEMORY;
		pieces_free(unmap(l, s, p->start, p->end, t_ns));
	}
	while (th->pieces) {
		struct piece *p = th->pieces;
		struct mapping *m = p->mapping;
		bool was_gone = m->bytes == 0;

		th->pieces = p->right;
		ranges_put(&s->ranges, p);
		if (p->is_inherited)
			continue;
		m->bytes += p->end - p->start;
		site_table_put_back(&l->sites, m->site, p->end - p->start, was_gone, t_ns);
		if (was_gone)
			site_table_freed(&l->sites, m->site, m->gone_t_ns - m->t_ns, -1);
	}
	return LIVE_OK;
}

/* The thread's next event: what was taken away comes back, or is gone for good. */
static enum live_effect settle_realloc(struct live *l, struct space *s, struct thread *th,
				       const struct event *ev)
{
	enum live_effect effect = LIVE_NOTHING;

	if (ev->kind == EVENT_RESTORE) {
		if (th->block.address != 0)
			effect = restore_block(l, s, th, ev->t_ns);
		else if (th->pieces)
			effect = restore_pieces(l, s, th, ev->t_ns);
	}
	th->block.address = 0;
	pieces_free(th->pieces);
	th->pieces = NULL;
	return effect;
}

/* -- processes come and go ------------------------------------------------------------------- */

/* Ends what is live in an address space that nobody has any more. */
static void discard(struct live *l, const struct space *s, bool is_leaked)
{
	for (size_t i = 0; i < s->blocks.cap; i++) {
		const struct block *b = &s->blocks.slots[i];

		if (b->address == 0 || b->is_inherited)
			continue;
		site_table_remove(&l->sites, b->site, b->size, 1);
		if (is_leaked)
			site_table_leaked(&l->sites, b->site, b->size, 1);
	}
	for (const struct piece *p = ranges_next(&s->ranges, 0); p;
	     p = ranges_next(&s->ranges, p->end)) {
		struct mapping *m = p->mapping;

		if (p->is_inherited)
			continue;
		m->bytes -= p->end - p->start;
		site_table_remove(&l->sites, m->site, p->end - p->start, m->bytes == 0);
		if (is_leaked)
			site_table_leaked(&l->sites, m->site, p->end - p->start, m->bytes == 0);
	}
}

/* The process is no more. If its pid goes on, the next event makes it anew. */
static void leave(struct live *l, uint32_t pid, bool is_exec)
{
	struct process *p = map_pointer(map_take(&l->processes, pid));

	l->process = NULL;
	if (!p)
		return;
	if (p->space->refs == 1)
		discard(l, p->space, !is_exec);
	space_unref(p->space);
	free(p);
}

static enum live_effect on_fork(struct live *l, struct space *s, const struct event *ev)
{
	bool is_shared = ev->flags & EVENT_SHARED_MM;
	uint32_t pid = (uint32_t)ev->address;
	struct process *child;

	if (pid == 0 || ev->address > UINT32_MAX || pid == ev->pid)
		return LIVE_NOTHING;
	leave(l, pid, false); /* the EXIT of who had that pid was not seen */
	child = process_new(l, pid, is_shared ? s : NULL);
	if (!child)
		return LIVE_NO_MEMORY;
	if (!is_shared && (blocks_inherit(&child->space->blocks, &s->blocks) < 0 ||
			   ranges_inherit(&child->space->ranges, &s->ranges) < 0)) {
		leave(l, pid, false);
		return LIVE_NO_MEMORY;
	}
	return LIVE_OK;
}

/* -- events ---------------------------------------------------------------------------------- */

static enum live_effect in_space(struct live *l, struct space *s, struct thread *th,
				 const struct event *ev)
{
	switch (ev->kind) {
	case EVENT_ALLOC:
		return on_alloc(l, s, ev);
	case EVENT_FREE:
		return on_free(l, s, th, ev);
	case EVENT_FAILED:
		return on_failed(l, ev);
	case EVENT_MMAP:
		return map(l, s, ev, SITE_MMAP);
	case EVENT_MUNMAP:
		return on_unmap(l, s, ev->address, ev->size, ev->t_ns,
				ev->flags & EVENT_REALLOC ? &th->pieces : NULL);
	case EVENT_BRK:
		return on_brk(l, s, ev);
	case EVENT_FORK:
		return on_fork(l, s, ev);
	default:
		return LIVE_NOTHING;
	}
}

static enum live_effect of_thread(struct live *l, const struct event *ev)
{
	struct process *p = process_of(l, ev->pid);
	struct thread *th = p ? thread_of(l, ev->tid, p) : NULL;
	enum live_effect effect = LIVE_NOTHING;

	if (!th)
		return LIVE_NO_MEMORY;
	if (ev->kind == EVENT_RESTORE || th->block.address != 0 || th->pieces)
		effect = settle_realloc(l, p->space, th, ev);
	if (ev->kind != EVENT_RESTORE)
		effect = in_space(l, p->space, th, ev);
	if (effect != LIVE_NOTHING) {
		bool is_alloc = ev->kind == EVENT_ALLOC && effect == LIVE_OK;

		th->last_address = is_alloc ? ev->address : 0;
		th->last_t_ns = ev->t_ns;
	}
	return effect;
}

enum live_effect live_event(struct live *l, const struct event *ev)
{
	enum live_effect effect = LIVE_OK;

	if (ev->kind == EVENT_EXEC || ev->kind == EVENT_EXIT)
		leave(l, ev->pid, ev->kind == EVENT_EXEC);
	else
		effect = of_thread(l, ev);
	l->totals.events += effect == LIVE_OK || effect == LIVE_UNKNOWN;
	l->totals.no_memory += effect == LIVE_NO_MEMORY;
	return effect;
}

int live_new(struct live **ret)
{
	struct live *l = calloc(1, sizeof(*l));

	if (!l)
		return -ENOMEM;
	*ret = l;
	return 0;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->processes.cap; i++) {
		struct process *p = map_pointer(l->processes.slots[i].value);

		if (p) {
			space_unref(p->space);
			free(p);
		}
	}
	map_done(&l->processes);
	threads_free(&l->threads[0]);
	threads_free(&l->threads[1]);
	site_table_done(&l->sites);
	free(l);
}

/* -- questions ------------------------------------------------------------------------------- */

struct live_totals live_totals(const struct live *l)
{
	struct live_totals t = l->totals;

	t.live_bytes = l->sites.live_bytes;
	t.live_count = l->sites.live_count;
	t.peak_bytes = l->sites.peak_bytes;
	t.peak_t_ns = l->sites.peak_t_ns;
	return t;
}

static struct live_block of_block(const struct block *b)
{
	return (struct live_block){b->address, b->size, b->site, b->t_ns};
}

static struct live_block of_piece(const struct piece *p)
{
	return (struct live_block){p->start, p->end - p->start, p->mapping->site, p->mapping->t_ns};
}

static struct space *find_space(const struct live *l, uint32_t pid)
{
	const struct process *p = map_pointer(map_get(&l->processes, pid));

	return p ? p->space : NULL;
}

uint32_t live_find(const struct live *l, uint32_t pid, uint64_t address, struct live_block *ret)
{
	struct space *s = find_space(l, pid);
	const struct block *b = s ? blocks_find_inside(&s->blocks, address) : NULL;
	const struct piece *p = s && !b ? ranges_find(&s->ranges, address) : NULL;
	struct live_block found;

	if (!b && !p)
		return 0;
	found = b ? of_block(b) : of_piece(p);
	if (ret)
		*ret = found;
	return found.site;
}

/* What a realloc or mremap of that thread is moving is still its site's while it is copied. */
static uint32_t moving(const struct live *l, uint32_t tid, uint64_t address)
{
	const struct thread *th = map_pointer(map_get(&l->threads[0], tid));

	if (!th)
		th = map_pointer(map_get(&l->threads[1], tid));
	if (!th)
		return 0;
	if (th->block.address != 0 && address - th->block.address < th->block.size)
		return th->block.site;
	for (const struct piece *p = th->pieces; p; p = p->right) {
		if (address >= p->start && address < p->end)
			return p->mapping->site;
	}
	return 0;
}

uint32_t live_fault(struct live *l, const struct fault *f)
{
	uint32_t site = live_find(l, f->pid, f->address, NULL);

	if (!site)
		site = moving(l, f->tid, f->address);
	if (!site && (f->mapping == FAULT_ANON || f->mapping == FAULT_BRK))
		site = live_allocator(l);
	if (site && !f->is_own)
		site_table_fault(&l->sites, site, f->duration_ns);
	return site;
}

void live_count_faults(struct live *l)
{
	l->sites.counts_faults = true;
}

uint64_t live_space(const struct live *l, uint32_t pid)
{
	return (uintptr_t)find_space(l, pid);
}

size_t live_copy(const struct live *l, uint32_t pid, struct live_block *ret, size_t max,
		 size_t *ret_pieces)
{
	const struct space *s = find_space(l, pid);
	size_t n = 0;

	*ret_pieces = 0;
	if (!s)
		return 0;
	for (const struct piece *p = ranges_next(&s->ranges, 0); p;
	     p = ranges_next(&s->ranges, p->end))
		++*ret_pieces;
	if (s->blocks.n + *ret_pieces > max)
		return s->blocks.n;
	for (size_t i = 0; i < s->blocks.cap; i++) {
		if (s->blocks.slots[i].address != 0)
			ret[n++] = of_block(&s->blocks.slots[i]);
	}
	for (const struct piece *p = ranges_next(&s->ranges, 0); p;
	     p = ranges_next(&s->ranges, p->end))
		ret[n++] = of_piece(p);
	return s->blocks.n;
}

uint32_t live_allocator(struct live *l)
{
	return site_table_get(&l->sites, 0, SITE_OTHER);
}

void live_swapped(struct live *l, uint32_t site, int64_t bytes)
{
	site_table_swapped(&l->sites, site, bytes);
}

void live_finish(struct live *l)
{
	site_table_finish(&l->sites);
}

size_t live_sites(const struct live *l, const struct site **ret)
{
	*ret = l->sites.sites;
	return l->sites.n;
}
