#include "tracer/scan.h"

#include "base/clock.h"
#include "tracer/areas.h"
#include "tracer/residency.h"
#include "tracer/swapcache.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <time.h>

#define FIRST_NS (100 * NS_PER_MS) /* after the start: what the command has loaded by then */
#define CPU_SHARE 50               /* a fiftieth */
#define CHUNK 4096                 /* pages that are looked at together */

struct scanner {
	struct scanner_opts opts;
	struct pagemaps pagemaps;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of is_stopping */
	pthread_cond_t stop;
	bool is_stopping;
	int64_t t0_mono_ns;
	struct scanner_totals totals;
	struct swapcache *swapcache; /* NULL = not known */
	/* Of a scan: */
	struct scan scan;
	struct residency residency;
	struct map spaces; /* that were seen */
	struct map shmem;  /* likewise, memory of several processes */
	pid_t *pids;
	size_t cap_pids;
	bool is_alone; /* there is one process: nobody shares swap entries */
	bool is_swap_used;
	/* Of a process: */
	struct live_block *blocks; /* room for cap: n_blocks, and behind them n_pieces */
	size_t cap, n_blocks, n_pieces;
	const struct live_block *pieces;
	struct areas areas;
	uint32_t pid;
	/* Of a chunk: */
	uint64_t entries[CHUNK], swap_entries[CHUNK];
	struct page pages[CHUNK];
	bool in_swapcache[CHUNK];
	/* The rows written last, by site. */
	struct site_sample *rows, *changed;
	size_t n_rows;
};

/* -- time ----------------------------------------------------------------------------------------
 */

int64_t scan_period(int64_t least_ns, int64_t cpu_ns)
{
	return MAX(least_ns, cpu_ns * CPU_SHARE);
}

int64_t scan_deadline(int64_t last_ns, int64_t period_ns, int64_t now_ns)
{
	return MAX(last_ns + period_ns, now_ns);
}

static int64_t thread_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

static bool is_stopping(struct scanner *s)
{
	return __atomic_load_n(&s->is_stopping, __ATOMIC_ACQUIRE);
}

/* False: it is to stop. */
static bool wait_until(struct scanner *s, int64_t t_ns)
{
	struct timespec ts = {.tv_sec = t_ns / NS_PER_S, .tv_nsec = t_ns % NS_PER_S};
	int r = 0;

	(void)pthread_mutex_lock(&s->lock);
	while (!s->is_stopping && r != ETIMEDOUT)
		r = pthread_cond_timedwait(&s->stop, &s->lock, &ts);
	(void)pthread_mutex_unlock(&s->lock);
	return !is_stopping(s);
}

/* -- what is live --------------------------------------------------------------------------------
 */

static int make_room(struct scanner *s, size_t n)
{
	size_t cap = n + n / 8 + 1024;

	free(s->blocks);
	s->cap = 0;
	s->blocks = malloc(cap * sizeof(*s->blocks));
	if (!s->blocks)
		return -ENOMEM;
	memset(s->blocks, 1,
	       cap * sizeof(*s->blocks)); /* touched now, not while the reader waits */
	s->cap = cap;
	return 0;
}

/* 1: an address space that was not seen in this scan. The sites that there are by then are told
 * in *ret_sites. */
static int copy_live(struct scanner *s, size_t *ret_sites)
{
	for (;;) {
		const struct site *sites;
		struct live *l = reader_lock(s->opts.reader);
		int64_t start = clock_mono_ns();
		uint64_t space = live_space(l, s->pid);
		bool is_seen = space && map_get(&s->spaces, space);

		s->n_pieces = s->n_blocks = 0;
		if (!is_seen)
			s->n_blocks = live_copy(l, s->pid, s->blocks, s->cap, &s->n_pieces);
		*ret_sites = live_sites(l, &sites);
		s->totals.lock_ns = MAX(s->totals.lock_ns, clock_mono_ns() - start);
		reader_unlock(s->opts.reader);
		if (is_seen)
			return 0;
		if (s->n_blocks + s->n_pieces <= s->cap)
			return space && map_put(&s->spaces, space, 1, NULL) < 0 ? -ENOMEM : 1;
		if (make_room(s, s->n_blocks + s->n_pieces) < 0)
			return -ENOMEM;
	}
}

/* Index of the first that ends behind the address; those before it may be longer, but then the
 * byte is not theirs. */
static size_t first_behind(const struct live_block *list, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (list[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 && list[low - 1].address + list[low - 1].size > address ? low - 1 : low;
}

/* Widens [*from, *to) by what of the list lies in [start, end). */
static void widen(const struct live_block *list, size_t n, uint64_t start, uint64_t end,
		  uint64_t *from, uint64_t *to)
{
	size_t first = first_behind(list, n, start), behind = first_behind(list, n, end - 1);

	if (behind < n && list[behind].address < end)
		behind++;
	if (first >= behind)
		return;
	*from = MIN(*from, MAX(list[first].address, start));
	*to = MAX(*to, MIN(list[behind - 1].address + list[behind - 1].size, end));
}

/* The pages of the area that have owners, from the first to the last. */
static struct area owned_part(const struct scanner *s, const struct area *a)
{
	struct area part = *a;
	uint64_t from = a->end, to = a->start;

	widen(s->blocks, s->n_blocks, a->start, a->end, &from, &to);
	widen(s->pieces, s->n_pieces, a->start, a->end, &from, &to);
	part.start = MIN(from & -PAGE_BYTES, a->end);
	part.end = MAX((to + PAGE_BYTES - 1) & -PAGE_BYTES, part.start);
	return part;
}

/* -- pages ---------------------------------------------------------------------------------------
 */

static size_t decode(struct scanner *s, uint64_t at, size_t n_entries, size_t *ret_swapped)
{
	size_t n = 0, swapped = 0;

	for (size_t i = 0; i < n_entries; i++) {
		uint64_t entry = s->entries[i];
		enum page_state state = entry ? pagemap_state(&s->pagemaps, entry) : PAGE_NONE;

		if (state == PAGE_NONE)
			continue;
		s->pages[n] = (struct page){.address = at + i * PAGE_BYTES, .state = state};
		if (state == PAGE_PRESENT || !s->is_alone)
			s->pages[n].identity = pagemap_identity(entry);
		if (state == PAGE_SWAPPED)
			s->swap_entries[swapped++] = pagemap_swap_entry(entry);
		n++;
	}
	*ret_swapped = swapped;
	return n;
}

static void look_in_swapcache(struct scanner *s, size_t n, size_t n_swapped)
{
	size_t at = 0;

	if (n_swapped == 0 || !s->swapcache)
		return;
	if (swapcache_look(s->swapcache, s->swap_entries, n_swapped, s->in_swapcache) < 0) {
		swapcache_close(s->swapcache);
		s->swapcache = NULL;
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (s->pages[i].state == PAGE_SWAPPED)
			s->pages[i].in_swapcache = s->in_swapcache[at++];
	}
}

static int scan_area(struct scanner *s, const struct pagemap *m, const struct area *a)
{
	uint64_t at = a->start;
	ssize_t n;

	while ((n = pagemap_read(m, &at, a->end, s->entries, CHUNK)) > 0) {
		size_t swapped, pages = decode(s, at, (size_t)n, &swapped);

		if (is_stopping(s))
			return -ECANCELED;
		look_in_swapcache(s, pages, swapped);
		history_pages(s->opts.history, s->pid, s->pages, pages, clock_mono_ns());
		for (size_t i = 0; i < pages; i++) {
			if (residency_page(&s->residency, &s->pages[i], a->is_anon) < 0)
				return -ENOMEM;
		}
		at += (uint64_t)n * PAGE_BYTES;
	}
	return 0; /* a process that ends has no more pages */
}

/* Memory that several processes share is told of by the first one. */
static int add_swapped_shmem(struct scanner *s)
{
	for (size_t i = 0; i < s->areas.n; i++) {
		const struct area *a = &s->areas.list[i];
		uint64_t key = map_mix(a->inode) + a->offset, was = 0;

		if (a->swapped_bytes == 0)
			continue;
		if (map_put(&s->shmem, key, 1, &was) < 0)
			return -ENOMEM;
		if (!was)
			residency_swapped(&s->residency, a->start, a->end, a->swapped_bytes);
	}
	return 0;
}

static bool has_owned_shmem(const struct scanner *s)
{
	for (size_t i = 0; i < s->areas.n; i++) {
		struct area part = owned_part(s, &s->areas.list[i]);

		if (s->areas.list[i].is_shmem && part.start < part.end)
			return true;
	}
	return false;
}

static int scan_areas(struct scanner *s, const struct pagemap *m)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->areas.n; i++) {
		const struct area *a = &s->areas.list[i];
		const struct area part = a->is_anon ? *a : owned_part(s, a);

		r = scan_area(s, m, &part);
	}
	if (r < 0 || !s->is_swap_used || !has_owned_shmem(s))
		return r;
	if (areas_read_swapped(&s->areas, (pid_t)s->pid) < 0)
		return 0; /* it is gone */
	r = residency_process(&s->residency, s->residency.n_sites, s->blocks, s->n_blocks,
			      s->pieces, s->n_pieces);
	return r < 0 ? r : add_swapped_shmem(s);
}

static int scan_process(struct scanner *s, pid_t pid)
{
	struct pagemap m;
	size_t n_sites;
	int r;

	s->pid = (uint32_t)pid;
	r = pagemap_open(&m, &s->pagemaps, pid);
	if (r == -EACCES || r == -EPERM)
		s->totals.problem = "page tables of the workload cannot be read: rights lack";
	if (r < 0)
		return 0; /* else it is gone */
	r = copy_live(s, &n_sites);
	if (r > 0 && areas_read(&s->areas, pid) == 0 && s->areas.n > 0) {
		scan_sort(s->blocks, s->n_blocks);
		s->pieces = &s->blocks[s->n_blocks];
		s->scan.processes++;
		s->scan.blocks += (int64_t)(s->n_blocks + s->n_pieces);
		r = residency_process(&s->residency, n_sites, s->blocks, s->n_blocks, s->pieces,
				      s->n_pieces);
		if (r == 0)
			r = scan_areas(s, &m);
	}
	pagemap_close(&m);
	return MIN(r, 0);
}

/* -- rows ----------------------------------------------------------------------------------------
 */

static int make_rows(struct scanner *s, size_t n)
{
	struct site_sample *rows, *changed;

	if (n <= s->n_rows)
		return 0;
	rows = realloc(s->rows, n * sizeof(*rows));
	if (rows)
		s->rows = rows;
	changed = realloc(s->changed, n * sizeof(*changed));
	if (changed)
		s->changed = changed;
	if (!rows || !changed)
		return -ENOMEM;
	/* Of a site without memory there is nothing to tell. */
	for (; s->n_rows < n; s->n_rows++)
		s->rows[s->n_rows] = (struct site_sample){.site = (uint32_t)s->n_rows + 1,
							  .swapcache_bytes = -1};
	return 0;
}

static struct site_sample row_of(const struct scanner *s, const struct site *site)
{
	const struct site_bytes *b = &s->residency.sites[site->id - 1];

	return (struct site_sample){
		.site = site->id,
		.live_bytes = site->live_bytes,
		.resident_bytes = b->resident,
		.swapped_bytes = b->swapped,
		.swapcache_bytes = s->swapcache ? b->swapcache : -1,
		.cold_bytes = b->cold,
		.returned_bytes = b->returned,
		.thrashing_bytes = b->thrashing,
		.major_faults = site->major_faults,
	};
}

static bool is_same(const struct site_sample *a, const struct site_sample *b)
{
	return a->live_bytes == b->live_bytes && a->resident_bytes == b->resident_bytes &&
	       a->swapped_bytes == b->swapped_bytes && a->swapcache_bytes == b->swapcache_bytes &&
	       a->cold_bytes == b->cold_bytes && a->returned_bytes == b->returned_bytes &&
	       a->thrashing_bytes == b->thrashing_bytes && a->major_faults == b->major_faults;
}

/* Nothing of it in memory or in swap, and no fault: not worth a first row. */
static bool is_empty(const struct site_sample *a)
{
	return a->resident_bytes + a->swapped_bytes + a->live_bytes == 0 && a->major_faults <= 0;
}

/* Returns how many rows have changed, or -ENOMEM. */
static ssize_t collect(struct scanner *s)
{
	const struct site *sites;
	struct live *l;
	ssize_t n = 0;

	if (make_rows(s, s->residency.n_sites) < 0)
		return -ENOMEM;
	l = reader_lock(s->opts.reader);
	(void)live_sites(l, &sites);
	for (size_t i = 0; i < s->residency.n_sites; i++) {
		struct site_sample row = row_of(s, &sites[i]);

		live_swapped(l, sites[i].id, row.swapped_bytes);
		s->scan.resident_bytes += row.resident_bytes;
		s->scan.swapped_bytes += row.swapped_bytes;
		s->scan.swapcache_bytes += MAX(row.swapcache_bytes, 0);
		if (is_same(&row, &s->rows[i]) || (is_empty(&row) && is_empty(&s->rows[i])))
			continue;
		s->rows[i] = s->changed[n++] = row;
	}
	reader_unlock(s->opts.reader);
	if (!s->swapcache)
		s->scan.swapcache_bytes = -1;
	return n;
}

/* -- scans ---------------------------------------------------------------------------------------
 */

static bool is_swap_used(void)
{
	struct sysinfo si;

	return sysinfo(&si) == 0 && si.freeswap != si.totalswap;
}

static int begin(struct scanner *s, int64_t start_ns)
{
	struct live *l = reader_lock(s->opts.reader);
	uint32_t allocator = live_allocator(l);

	reader_unlock(s->opts.reader);
	if (!allocator)
		return -ENOMEM;
	map_clear(&s->spaces);
	map_clear(&s->shmem);
	s->is_swap_used = is_swap_used();
	s->scan = (struct scan){.t_ns = start_ns - s->t0_mono_ns};
	residency_begin(&s->residency, allocator);
	history_begin(s->opts.history, start_ns);
	return 0;
}

/* One whole scan, or none: where memory lacks or it is to stop, there are no rows. */
static void scan(struct scanner *s, int64_t start_ns)
{
	int64_t cpu_ns = thread_cpu_ns();
	ssize_t n = cgroup_processes(s->opts.cg, &s->pids, &s->cap_pids);
	int r = n <= 0 ? -ESRCH : begin(s, start_ns);

	s->is_alone = n == 1;
	for (ssize_t i = 0; r == 0 && i < n; i++)
		r = is_stopping(s) ? -ECANCELED : scan_process(s, s->pids[i]);
	if (r == 0)
		r = residency_end(&s->residency);
	if (r < 0 || s->scan.processes == 0)
		return;
	history_end(s->opts.history);
	n = collect(s);
	if (n < 0)
		return;
	s->scan.scan_ns = thread_cpu_ns() - cpu_ns;
	s->scan.period_ns = scan_period(s->opts.period_ns, s->scan.scan_ns);
	s->totals.scans++;
	s->totals.period_ns = s->scan.period_ns;
	s->opts.sink->scan(s->opts.sink->ctx, &s->scan, s->changed, (size_t)n);
}

static void *run(void *arg)
{
	struct scanner *s = arg;
	int64_t next_ns = clock_mono_ns() + FIRST_NS;

	(void)pthread_setname_np(pthread_self(), "scan");
	while (wait_until(s, next_ns)) {
		int64_t cpu_ns = thread_cpu_ns();

		scan(s, clock_mono_ns());
		cpu_ns = thread_cpu_ns() - cpu_ns;
		next_ns = scan_deadline(next_ns, scan_period(s->opts.period_ns, cpu_ns),
					clock_mono_ns());
	}
	s->totals.cpu_ns = thread_cpu_ns();
	return NULL;
}

/* -- the object ----------------------------------------------------------------------------------
 */

static void make_lock(struct scanner *s)
{
	pthread_condattr_t attr;

	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&s->stop, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_init(&s->lock, NULL);
}

int scanner_new(struct scanner **ret, const struct scanner_opts *opts, struct err *err)
{
	struct scanner *s = calloc(1, sizeof(*s));

	if (!s)
		return err_errno(err, -ENOMEM, "cannot start the residency scan");
	s->opts = *opts;
	s->totals.period_ns = -1;
	s->swapcache = swapcache_open();
	make_lock(s);
	*ret = s;
	return 0;
}

int scanner_start(struct scanner *s, int64_t t0_mono_ns, struct err *err)
{
	struct err why;

	s->t0_mono_ns = t0_mono_ns;
	if (pagemaps_open(&s->pagemaps, &why) < 0) {
		s->totals.problem = "this kernel shows no page tables";
		return 0;
	}
	if (pthread_create(&s->thread, NULL, run, s) != 0)
		return err_errno(err, -EAGAIN, "cannot start the residency scan");
	s->has_thread = true;
	return 0;
}

void scanner_stop(struct scanner *s)
{
	if (!s || !s->has_thread)
		return;
	(void)pthread_mutex_lock(&s->lock);
	__atomic_store_n(&s->is_stopping, true, __ATOMIC_RELEASE);
	(void)pthread_cond_signal(&s->stop);
	(void)pthread_mutex_unlock(&s->lock);
	(void)pthread_join(s->thread, NULL);
	s->has_thread = false;
}

struct scanner_totals scanner_totals(const struct scanner *s)
{
	return s->totals;
}

void scanner_free(struct scanner *s)
{
	if (!s)
		return;
	scanner_stop(s);
	pagemaps_close(&s->pagemaps);
	swapcache_close(s->swapcache);
	residency_done(&s->residency);
	areas_done(&s->areas);
	map_done(&s->spaces);
	map_done(&s->shmem);
	(void)pthread_cond_destroy(&s->stop);
	(void)pthread_mutex_destroy(&s->lock);
	free(s->pids);
	free(s->blocks);
	free(s->rows);
	free(s->changed);
	free(s);
}
