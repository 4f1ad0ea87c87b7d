/*
 * The live table against a model of it that is as plain as can be: arrays of blocks and pages,
 * every sum made anew after every event. Random events of all kinds, from a fixed seed; every
 * effect is compared at once, all figures and every address every 1000 events.
 */
#include "tracer/live.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define EVENTS 100000
#define PIDS 6 /* pids 1 … 6, each with threads pid, pid + 1000, pid + 2000 */
#define TIDS 3
/* Blocks at HEAP + 16 × slot, of up to 40 bytes and now and then of pages: they may overlap. */
#define SLOTS 40
#define PAGES 40
#define STACKS 5
#define KINDS 3
#define HEAP (0x10000 - 16 * SLOTS / 2) /* a page ends in its middle */
#define AREA 0x100000
#define PAGE 0x1000

struct m_block {
	bool is_live, is_inherited;
	uint64_t size;
	int64_t t_ns;
	int site;
	int number; /* of the ALLOC; 1, 2, … */
};

struct m_page {
	int mapping; /* 0 = none */
	bool is_inherited;
};

struct m_mapping {
	int site;
	int64_t t_ns, gone_t_ns;
	int64_t counted_t_ns; /* the last time add_up met it */
};

struct m_space {
	struct m_block block[SLOTS];
	struct m_page page[PAGES];
};

struct m_thread {
	int last; /* number of the block, if the last event was an ALLOC */
	bool has_block, was_temporary, has_pages;
	int slot;
	int64_t freed_t_ns;
	struct m_block block;
	struct m_page page[PAGES];
};

struct model {
	struct m_space space[PIDS];
	int space_of[PIDS]; /* -1 = none */
	struct m_thread thread[PIDS][TIDS];
	struct m_mapping mapping[EVENTS + 1];
	int n_mappings, n_blocks;
	struct site site[STACKS * KINDS];
	bool has_site[STACKS * KINDS];
	struct live_totals totals;
};

static struct model m;
static struct live *l;
static uint64_t seed;

static uint64_t random_below(uint64_t n)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (seed >> 33) % n;
}

/* -- the model ------------------------------------------------------------------------------- */

static int bucket(uint64_t v)
{
	int i = 0;

	while (v > 1) {
		v /= 2;
		i++;
	}
	return i;
}

static int m_site(uint32_t stack, enum site_kind kind)
{
	int i = (int)stack * KINDS + (int)kind;

	m.has_site[i] = true;
	return i;
}

static void freed(int site, int64_t age, int n)
{
	m.site[site].free_count += n;
	m.site[site].lifetime_log2[bucket((uint64_t)age)] += (uint32_t)n;
}

static void allocated(int site, uint64_t size)
{
	m.site[site].alloc_count++;
	m.site[site].alloc_bytes += (int64_t)size;
	m.site[site].size_log2[bucket(size)]++;
}

static struct m_space *m_space(int pid)
{
	for (int s = 0; m.space_of[pid] < 0; s++) {
		bool is_used = false;

		for (int p = 0; p < PIDS; p++)
			is_used |= m.space_of[p] == s;
		if (!is_used) {
			m.space_of[pid] = s;
			memset(&m.space[s], 0, sizeof(m.space[s]));
		}
	}
	return &m.space[m.space_of[pid]];
}

static int pages_left(int mapping)
{
	int n = 0;

	for (int p = 0; p < PIDS; p++)
		for (int i = 0; i < PAGES; i++) {
			const struct m_page *g = &m.space[p].page[i];

			n += g->mapping == mapping && !g->is_inherited;
		}
	return n;
}

static void free_block(struct m_block *b, int64_t t_ns)
{
	if (!b->is_inherited)
		freed(b->site, t_ns - b->t_ns, 1);
	b->is_live = false;
}

static void unmap_page(struct m_page *g, int64_t t_ns)
{
	struct m_mapping *p = &m.mapping[g->mapping];
	int mapping = g->mapping;
	bool counts = mapping != 0 && !g->is_inherited;

	g->mapping = 0;
	if (counts && pages_left(mapping) == 0) {
		p->gone_t_ns = t_ns;
		freed(p->site, t_ns - p->t_ns, 1);
	}
}

static enum live_effect m_alloc(struct m_space *s, struct m_thread *th, const struct event *ev)
{
	struct m_block *b = &s->block[(ev->address - HEAP) / 16];

	if (b->is_live) {
		m.totals.replaced++;
		free_block(b, ev->t_ns);
	}
	*b = (struct m_block){.is_live = true,
			      .size = ev->size,
			      .t_ns = ev->t_ns,
			      .site = m_site(ev->stack, SITE_MALLOC),
			      .number = ++m.n_blocks};
	allocated(b->site, b->size);
	th->last = b->number;
	return LIVE_OK;
}

static enum live_effect m_free(struct m_space *s, struct m_thread *th, int last,
			       const struct event *ev)
{
	struct m_block *b;
	bool is_temporary;
	int slot;

	if (ev->address == 0) {
		th->last = last;
		return LIVE_NOTHING;
	}
	slot = (int)((ev->address - HEAP) / 16);
	b = &s->block[slot];
	if (!b->is_live) {
		m.totals.unknown_frees++;
		return LIVE_UNKNOWN;
	}
	is_temporary = b->number == last && !b->is_inherited;
	m.site[b->site].temporary_count += is_temporary;
	if (ev->flags & EVENT_REALLOC) {
		th->has_block = true;
		th->was_temporary = is_temporary;
		th->slot = slot;
		th->block = *b;
		th->freed_t_ns = ev->t_ns;
	}
	free_block(b, ev->t_ns);
	return LIVE_OK;
}

static enum live_effect m_map(struct m_space *s, const struct event *ev, enum site_kind kind)
{
	int site = m_site(ev->stack, kind);

	m.mapping[++m.n_mappings] = (struct m_mapping){.site = site, .t_ns = ev->t_ns};
	for (uint64_t i = 0; i < PAGES; i++)
		if (AREA + i * PAGE - ev->address < ev->size)
			unmap_page(&s->page[i], ev->t_ns);
	for (uint64_t i = 0; i < PAGES; i++)
		if (AREA + i * PAGE - ev->address < ev->size)
			s->page[i] = (struct m_page){.mapping = m.n_mappings};
	allocated(site, ev->size);
	return LIVE_OK;
}

static enum live_effect m_unmap(struct m_space *s, struct m_thread *th, int last, uint64_t start,
				uint64_t size, const struct event *ev)
{
	bool found = false;

	memset(th->page, 0, sizeof(th->page));
	for (uint64_t i = 0; i < PAGES; i++) {
		if (AREA + i * PAGE - start >= size || s->page[i].mapping == 0)
			continue;
		found = true;
		th->page[i] = s->page[i];
		unmap_page(&s->page[i], ev->t_ns);
	}
	th->has_pages = found && ev->kind == EVENT_MUNMAP && ev->flags & EVENT_REALLOC;
	if (!found)
		th->last = last;
	return found ? LIVE_OK : LIVE_NOTHING;
}

static void m_restore_pages(struct m_space *s, const struct m_page *page, int64_t t_ns)
{
	for (int i = 0; i < PAGES; i++)
		if (page[i].mapping != 0)
			unmap_page(&s->page[i], t_ns);
	for (int i = 0; i < PAGES; i++) {
		const struct m_mapping *p = &m.mapping[page[i].mapping];

		if (page[i].mapping == 0)
			continue;
		if (!page[i].is_inherited && pages_left(page[i].mapping) == 0)
			freed(p->site, p->gone_t_ns - p->t_ns, -1);
		s->page[i] = page[i];
	}
}

static enum live_effect m_restore(struct m_space *s, const struct m_thread *was, int64_t t_ns)
{
	if (was->has_block) {
		struct m_block *b = &s->block[was->slot];

		if (b->is_live) {
			m.totals.replaced++;
			free_block(b, t_ns);
		}
		*b = was->block;
		if (!b->is_inherited) {
			freed(b->site, was->freed_t_ns - b->t_ns, -1);
			m.site[b->site].temporary_count -= was->was_temporary;
		}
		return LIVE_OK;
	}
	if (was->has_pages) {
		m_restore_pages(s, was->page, t_ns);
		return LIVE_OK;
	}
	return LIVE_NOTHING;
}

static void m_leave(int pid, bool is_exec)
{
	int space = m.space_of[pid], n = 0;
	struct m_space *s;

	memset(m.thread[pid], 0, sizeof(m.thread[pid]));
	for (int p = 0; p < PIDS; p++)
		n += m.space_of[p] == space;
	m.space_of[pid] = -1;
	if (space < 0 || n > 1)
		return;
	s = &m.space[space];
	for (int i = 0; i < SLOTS && !is_exec; i++) {
		const struct m_block *b = &s->block[i];

		if (b->is_live && !b->is_inherited) {
			m.site[b->site].leaked_count++;
			m.site[b->site].leaked_bytes += (int64_t)b->size;
		}
	}
	for (int i = 0; i < PAGES && !is_exec; i++) {
		struct m_page *g = &s->page[i];
		int mapping = g->mapping;

		if (mapping == 0 || g->is_inherited)
			continue;
		g->mapping = 0;
		m.site[m.mapping[mapping].site].leaked_bytes += PAGE;
		m.site[m.mapping[mapping].site].leaked_count += pages_left(mapping) == 0;
	}
	memset(s, 0, sizeof(*s));
}

static enum live_effect m_fork(int pid, int child, bool is_shared)
{
	struct m_space *s, *c;

	if (pid == child)
		return LIVE_NOTHING;
	m_leave(child, false);
	s = m_space(pid);
	if (is_shared) {
		m.space_of[child] = m.space_of[pid];
		return LIVE_OK;
	}
	c = m_space(child);
	*c = *s;
	for (int i = 0; i < SLOTS; i++)
		c->block[i].is_inherited = true;
	for (int i = 0; i < PAGES; i++)
		c->page[i].is_inherited = true;
	return LIVE_OK;
}

/* Everything that is a sum over what is live. */
static void add_up(int64_t t_ns)
{
	for (int i = 0; i < STACKS * KINDS; i++)
		m.site[i].live_bytes = m.site[i].live_count = 0;
	for (int p = 0; p < PIDS; p++) {
		for (int i = 0; i < SLOTS; i++) {
			const struct m_block *b = &m.space[p].block[i];

			if (b->is_live && !b->is_inherited) {
				m.site[b->site].live_count++;
				m.site[b->site].live_bytes += (int64_t)b->size;
			}
		}
		for (int i = 0; i < PAGES; i++) {
			const struct m_page *g = &m.space[p].page[i];
			struct site *s = &m.site[m.mapping[g->mapping].site];

			if (g->mapping == 0 || g->is_inherited)
				continue;
			s->live_bytes += PAGE;
			s->live_count += m.mapping[g->mapping].counted_t_ns != t_ns;
			m.mapping[g->mapping].counted_t_ns = t_ns;
		}
	}
	m.totals.live_bytes = m.totals.live_count = 0;
	for (int i = 0; i < STACKS * KINDS; i++) {
		struct site *s = &m.site[i];

		s->peak_live_bytes = MAX(s->peak_live_bytes, s->live_bytes);
		m.totals.live_bytes += s->live_bytes;
		m.totals.live_count += s->live_count;
	}
	if (m.totals.live_bytes <= m.totals.peak_bytes)
		return;
	m.totals.peak_bytes = m.totals.live_bytes;
	m.totals.peak_t_ns = t_ns;
	for (int i = 0; i < STACKS * KINDS; i++)
		m.site[i].at_peak_bytes = m.site[i].live_bytes;
}

static enum live_effect m_in_space(const struct event *ev)
{
	int pid = (int)ev->pid - 1;
	struct m_thread *th = &m.thread[pid][ev->tid / 1000], was = *th;
	struct m_space *s = m_space(pid);
	uint64_t size = ev->size;

	*th = (struct m_thread){0};
	switch (ev->kind) {
	case EVENT_ALLOC:
		return m_alloc(s, th, ev);
	case EVENT_FREE:
		return m_free(s, th, was.last, ev);
	case EVENT_RESTORE:
		if (!was.has_block && !was.has_pages)
			th->last = was.last;
		return m_restore(s, &was, ev->t_ns);
	case EVENT_FAILED:
		m.site[m_site(ev->stack, SITE_MALLOC)].failed_count++;
		m.totals.failed_allocs++;
		return LIVE_OK;
	case EVENT_MMAP:
		return m_map(s, ev, SITE_MMAP);
	case EVENT_MUNMAP:
		return m_unmap(s, th, was.last, ev->address, size, ev);
	case EVENT_BRK:
		if ((int64_t)size > 0)
			return m_map(s, ev, SITE_BRK);
		return m_unmap(s, th, was.last, ev->address + size, -size, ev);
	default:
		if (ev->address == ev->pid)
			th->last = was.last;
		return m_fork(pid, (int)ev->address - 1, ev->flags & EVENT_SHARED_MM);
	}
}

static enum live_effect m_event(const struct event *ev)
{
	enum live_effect effect = LIVE_OK;

	if (ev->kind == EVENT_EXEC || ev->kind == EVENT_EXIT)
		m_leave((int)ev->pid - 1, ev->kind == EVENT_EXEC);
	else
		effect = m_in_space(ev);
	m.totals.events += effect != LIVE_NOTHING;
	add_up(ev->t_ns);
	return effect;
}

/* -- random events --------------------------------------------------------------------------- */

static struct event random_event(int64_t t_ns)
{
	static const uint8_t kinds[] = {
		EVENT_ALLOC, EVENT_ALLOC,  EVENT_ALLOC,  EVENT_ALLOC,   EVENT_ALLOC,   EVENT_FREE,
		EVENT_FREE,  EVENT_FREE,   EVENT_FREE,   EVENT_RESTORE, EVENT_RESTORE, EVENT_MMAP,
		EVENT_MMAP,  EVENT_MUNMAP, EVENT_MUNMAP, EVENT_BRK,     EVENT_FAILED};
	struct event ev = {.t_ns = t_ns, .stack = (uint32_t)random_below(STACKS)};
	uint64_t page = random_below(PAGES), n = 1 + random_below(8);

	n = MIN(n, PAGES - page);
	ev.pid = 1 + (uint32_t)random_below(PIDS);
	ev.tid = ev.pid + 1000 * (uint32_t)random_below(TIDS);
	ev.kind = kinds[random_below(ARRAY_SIZE(kinds))];
	if (random_below(100) < 2)
		ev.kind = (uint8_t)(EVENT_FORK + random_below(3));
	ev.address = HEAP + 16 * random_below(SLOTS);
	ev.size = random_below(30) == 0 ? random_below(9000) : random_below(41);
	switch (ev.kind) {
	case EVENT_FREE:
		if (random_below(20) == 0)
			ev.address = 0;
		ev.flags = random_below(3) == 0 ? EVENT_REALLOC : 0;
		break;
	case EVENT_MMAP:
	case EVENT_MUNMAP:
		ev.address = AREA + PAGE * page;
		ev.size = PAGE * n;
		ev.flags = random_below(2) == 0 ? EVENT_REALLOC : 0;
		break;
	case EVENT_BRK:
		ev.size = PAGE * n;
		ev.address = AREA + PAGE * page;
		if (random_below(2) == 0) {
			ev.address += ev.size;
			ev.size = -ev.size;
		}
		break;
	case EVENT_FORK:
		ev.address = 1 + random_below(PIDS);
		ev.flags = random_below(2) == 0 ? EVENT_SHARED_MM : 0;
		break;
	default:
		break;
	}
	return ev;
}

/* Often the same thread goes on, and frees what it allocated. */
static struct event next_event(const struct event *last, int64_t t_ns)
{
	struct event ev = random_event(t_ns);

	if (random_below(2) == 0) {
		ev.pid = last->pid;
		ev.tid = last->tid;
		if (ev.kind == EVENT_FREE && last->kind == EVENT_ALLOC)
			ev.address = last->address;
	}
	return ev;
}

/* -- comparing ------------------------------------------------------------------------------- */

static void compare_sites(bool is_end)
{
	const struct site *sites;
	size_t n = live_sites(l, &sites), n_model = 0;

	for (size_t i = 0; i < STACKS * KINDS; i++)
		n_model += m.has_site[i];
	assert_int_equal(n, n_model);
	for (size_t i = 0; i < n; i++) {
		const struct site *a = &sites[i];
		const struct site *b = &m.site[a->stack * KINDS + a->kind];

		assert_int_equal(a->alloc_count, b->alloc_count);
		assert_int_equal(a->free_count, b->free_count);
		assert_int_equal(a->alloc_bytes, b->alloc_bytes);
		assert_int_equal(a->live_bytes, b->live_bytes);
		assert_int_equal(a->live_count, b->live_count);
		assert_int_equal(a->leaked_bytes, b->leaked_bytes + (is_end ? b->live_bytes : 0));
		assert_int_equal(a->leaked_count, b->leaked_count + (is_end ? b->live_count : 0));
		assert_int_equal(a->peak_live_bytes, b->peak_live_bytes);
		assert_int_equal(a->temporary_count, b->temporary_count);
		assert_int_equal(a->failed_count, b->failed_count);
		assert_memory_equal(a->size_log2, b->size_log2, sizeof(a->size_log2));
		assert_memory_equal(a->lifetime_log2, b->lifetime_log2, sizeof(a->lifetime_log2));
		if (is_end)
			assert_int_equal(a->at_peak_bytes, b->at_peak_bytes);
	}
}

static void compare_totals(void)
{
	struct live_totals a = live_totals(l);

	assert_int_equal(a.events, m.totals.events);
	assert_int_equal(a.live_bytes, m.totals.live_bytes);
	assert_int_equal(a.live_count, m.totals.live_count);
	assert_int_equal(a.peak_bytes, m.totals.peak_bytes);
	assert_int_equal(a.peak_t_ns, m.totals.peak_t_ns);
	assert_int_equal(a.unknown_frees, m.totals.unknown_frees);
	assert_int_equal(a.failed_allocs, m.totals.failed_allocs);
	assert_int_equal(a.replaced, m.totals.replaced);
	assert_int_equal(a.no_memory, 0);
}

static void compare_address(const struct m_space *s, uint32_t pid, uint64_t address)
{
	const struct m_block *b = NULL;
	bool is_inside = false; /* some block, if not the nearest */
	uint64_t at = 0;
	struct live_block found;
	uint32_t id = live_find(l, pid, address, &found);
	const struct site *sites;

	(void)live_sites(l, &sites);
	for (uint64_t i = 0; s && i < SLOTS; i++)
		if (s->block[i].is_live && HEAP + 16 * i <= address) {
			b = &s->block[i];
			at = HEAP + 16 * i;
			is_inside |= address - at < b->size;
		}
	if (b && (at == address || address - at < b->size)) {
		assert_int_not_equal(id, 0);
		assert_int_equal(sites[id - 1].stack * KINDS + sites[id - 1].kind, b->site);
		assert_int_equal(found.address, at);
		assert_int_equal(found.size, b->size);
		assert_int_equal(found.t_ns, b->t_ns);
	} else if (is_inside && id != 0) {
		assert_true(address - found.address < found.size);
	} else if (s && address >= AREA && address < AREA + PAGES * PAGE &&
		   s->page[(address - AREA) / PAGE].mapping != 0) {
		const struct m_mapping *p = &m.mapping[s->page[(address - AREA) / PAGE].mapping];

		assert_int_not_equal(id, 0);
		assert_int_equal(sites[id - 1].stack * KINDS + sites[id - 1].kind, p->site);
		assert_int_equal(found.t_ns, p->t_ns);
		assert_true(address >= found.address && address - found.address < found.size);
	} else {
		assert_int_equal(id, 0);
	}
}

static void compare_spaces(void)
{
	for (uint32_t pid = 1; pid <= PIDS; pid++) {
		int space = m.space_of[pid - 1], n_blocks = 0;
		const struct m_space *s = space < 0 ? NULL : &m.space[space];
		struct live_block copy[SLOTS + PAGES];
		uint64_t mapped = 0, found = 0;
		size_t n_pieces;

		for (uint64_t a = HEAP - 4; a < HEAP + 16 * SLOTS + 48; a += 4)
			compare_address(s, pid, a);
		for (uint64_t a = HEAP + 16 * SLOTS; a < HEAP + 10000; a += 500)
			compare_address(s, pid, a);
		for (uint64_t a = AREA - PAGE; a <= AREA + PAGES * PAGE; a += PAGE / 2)
			compare_address(s, pid, a);
		for (int i = 0; s && i < SLOTS; i++)
			n_blocks += s->block[i].is_live;
		for (int i = 0; s && i < PAGES; i++)
			mapped += s->page[i].mapping != 0 ? PAGE : 0;
		assert_int_equal(live_copy(l, pid, copy, ARRAY_SIZE(copy), &n_pieces), n_blocks);
		for (size_t i = 0; i < n_pieces; i++)
			found += copy[n_blocks + (int)i].size;
		assert_int_equal(found, mapped);
	}
}

static void run(uint64_t with_seed)
{
	struct event ev = {.pid = 1, .tid = 1};
	int seen[EVENT_KINDS][LIVE_NO_MEMORY] = {{0}};
	int64_t t_ns = 0;

	memset(&m, 0, sizeof(m));
	for (int i = 0; i < PIDS; i++)
		m.space_of[i] = -1;
	seed = with_seed;
	assert_int_equal(live_new(&l), 0);
	for (int i = 1; i <= EVENTS; i++) {
		enum live_effect effect;

		t_ns += 1 + (int64_t)random_below(3000);
		ev = next_event(&ev, t_ns);
		effect = m_event(&ev);
		if (live_event(l, &ev) != effect)
			fail_msg("event %d, %s: effect is not %d", i, event_kind_name(ev.kind),
				 (int)effect);
		seen[ev.kind][effect]++;
		if (i % 1000 == 0) {
			compare_totals();
			compare_sites(false);
			compare_spaces();
		}
	}
	live_finish(l);
	compare_sites(true);
	live_free(l);
	/* The events were such that every kind had its effects. */
	for (int i = 0; i < EVENT_FAULT; i++)
		assert_true(seen[i][LIVE_OK] > 100);
	assert_true(seen[EVENT_RESTORE][LIVE_NOTHING] > 100);
	assert_true(seen[EVENT_FREE][LIVE_UNKNOWN] > 100);
}

static void seed_1(void **state)
{
	(void)state;
	run(1);
}

static void seed_2(void **state)
{
	(void)state;
	run(20261130);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seed_1),
		cmocka_unit_test(seed_2),
	};

	return cmocka_run_group_tests_name("live against a model", tests, NULL, NULL);
}
