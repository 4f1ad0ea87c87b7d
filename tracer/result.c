#include "tracer/result.h"

#include "base/map.h"
#include "base/str.h"
#include "tracer/cost.h"
#include "tracer/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#define INLINED_MAX 32 /* frames that one address stands for */

struct result {
	struct trace_result out;
	struct symbols *symbols;
	struct symbols_module **by_module; /* by id */
	bool *is_opened;
	struct module *modules;
	struct frame *frames;
	size_t n_frames, cap_frames;
	struct map places; /* ROW_KEY → first frame << 8 | number of frames */
	struct stack *stacks;
	uint32_t *levels; /* of all stacks, one after the other */
	size_t n_levels, cap_levels;
	struct str summary;
};

/* -- names ---------------------------------------------------------------------------------------
 */

static struct symbols_module *open_module(struct result *r, struct modules *ms, uint32_t id)
{
	struct module_file *m = id ? modules_get(ms, id) : NULL;
	const char *why;

	if (!m)
		return NULL;
	if (!r->is_opened[id]) {
		r->is_opened[id] = true;
		r->by_module[id] = symbols_module(r->symbols, &m->m, m->fd, &why);
	}
	return r->by_module[id];
}

static int grow_frames(struct result *r)
{
	size_t cap = r->cap_frames ? 2 * r->cap_frames : 4096;
	struct frame *grown;

	if (r->n_frames + INLINED_MAX <= r->cap_frames)
		return 0;
	grown = realloc(r->frames, cap * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->frames = grown;
	r->cap_frames = cap;
	return 0;
}

/* first << 8 | count of the frames of a place; 0 = no memory. */
static uint64_t frames_of(struct result *r, struct modules *ms, struct frame_ref ref)
{
	uint64_t key = ROW_KEY(ref.module, ref.offset), known = map_get(&r->places, key);
	struct symbols_module *m;
	uint64_t value;
	int n = 1;

	if (known)
		return known;
	if (grow_frames(r) < 0)
		return 0;
	m = open_module(r, ms, ref.module);
	if (m)
		n = symbols_lookup(r->symbols, m, ref, &r->frames[r->n_frames], INLINED_MAX);
	else
		r->frames[r->n_frames] = (struct frame){.ref = ref};
	value = (uint64_t)r->n_frames << 8 | (unsigned)n;
	if (map_put(&r->places, key, value, NULL) < 0)
		return 0;
	r->n_frames += (size_t)n;
	return value;
}

/* Those of faults come first: rows that were written before know their places by number. */
static int add_fault_places(struct result *r, const struct result_in *in)
{
	const struct frame_ref *places;
	size_t n = faults_places(reader_faults(in->reader), &places);

	for (size_t i = 0; i < n; i++) {
		struct symbols_module *m = open_module(r, in->modules, places[i].module);

		if (grow_frames(r) < 0)
			return -ENOMEM;
		if (m)
			(void)symbols_lookup(r->symbols, m, places[i], &r->frames[r->n_frames],
					     INLINED_MAX);
		else
			r->frames[r->n_frames] = (struct frame){.ref = places[i]};
		r->n_frames++;
	}
	return 0;
}

/* -- stacks --------------------------------------------------------------------------------------
 */

static int add_levels(struct result *r, uint64_t place, uint32_t *depth)
{
	for (uint64_t i = 0; i < (place & 0xff); i++) {
		if (r->n_levels == r->cap_levels) {
			size_t cap = r->cap_levels ? 2 * r->cap_levels : 65536;
			uint32_t *grown = realloc(r->levels, cap * sizeof(*grown));

			if (!grown)
				return -ENOMEM;
			r->levels = grown;
			r->cap_levels = cap;
		}
		r->levels[r->n_levels++] = (uint32_t)((place >> 8) + i);
		++*depth;
	}
	return 0;
}

static int add_stack(struct result *r, const struct result_in *in, uint32_t id)
{
	enum stack_quality quality;
	uint32_t n, depth = 0;
	const struct frame_ref *f = stacks_frames(reader_stacks(in->reader), id, &n, &quality);

	for (uint32_t i = 0; i < n; i++) {
		uint64_t place = frames_of(r, in->modules, f[i]);

		if (!place || add_levels(r, place, &depth) < 0)
			return -ENOMEM;
	}
	r->stacks[id - 1] = (struct stack){.id = id, .depth = depth, .quality = quality};
	return 0;
}

static int add_stacks(struct result *r, const struct result_in *in)
{
	size_t n = stacks_count(reader_stacks(in->reader)), level = 0;

	r->stacks = calloc(n + 1, sizeof(*r->stacks));
	if (!r->stacks)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		if (add_stack(r, in, (uint32_t)i + 1) < 0)
			return -ENOMEM;
		if (in->on_progress && i % 256 == 0)
			in->on_progress(in->ctx, (double)i / (double)n);
	}
	for (size_t i = 0; i < n; i++) {
		r->stacks[i].frames = &r->levels[level];
		level += r->stacks[i].depth;
	}
	r->out.stacks = r->stacks;
	r->out.n_stacks = n;
	r->out.frames = r->frames;
	r->out.n_frames = r->n_frames;
	return 0;
}

static int add_modules(struct result *r, const struct result_in *in)
{
	size_t n = modules_count(in->modules);

	r->modules = calloc(n + 1, sizeof(*r->modules));
	r->by_module = calloc(n + 1, sizeof(struct symbols_module *));
	r->is_opened = calloc(n + 1, sizeof(*r->is_opened));
	if (!r->modules || !r->by_module || !r->is_opened)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->modules[i] = modules_get(in->modules, (uint32_t)i + 1)->m;
	r->out.modules = r->modules;
	r->out.n_modules = n;
	return 0;
}

/* -- figures -------------------------------------------------------------------------------------
 */

static void figure(struct result *r, const char *name, int64_t value)
{
	if (value >= 0)
		str_addf(&r->summary, "%s\"%s\": %" PRId64, r->summary.len > 1 ? ", " : "", name,
			 value);
}

static void count_calls(struct result *r)
{
	int64_t allocs = 0, frees = 0;

	for (size_t i = 0; i < r->out.n_sites; i++) {
		allocs += r->out.sites[i].alloc_count;
		frees += r->out.sites[i].free_count;
	}
	figure(r, "allocs", allocs);
	figure(r, "frees", frees);
}

/* What a hit costs without the program's work. */
static int64_t mean_trap(const struct result_in *in, const struct reader_totals *t)
{
	return in->cost_ns < 0 || t->hits == 0 ? -1 : (in->cost_ns - t->program_ns) / t->hits;
}

static void add_slowdown(struct result *r, const struct result_in *in)
{
	double slowdown = cost_slowdown(in->cost_ns, in->run.cpu_ns);

	if (!isnan(slowdown))
		str_addf(&r->summary, ", \"slowdown\": %.4f", slowdown);
}

static void add_scans(struct result *r, const struct result_in *in)
{
	figure(r, "scans", in->scans.scans);
	figure(r, "scan_cpu_ns", in->scans.cpu_ns);
	figure(r, "scan_period_ns", in->scans.period_ns);
	figure(r, "scan_lock_ns", in->scans.lock_ns);
	figure(r, "history_forgotten", in->history_forgotten);
	if (in->scans.problem)
		str_addf(&r->summary, ", \"scan_problem\": \"%s\"", in->scans.problem);
}

static int add_summary(struct result *r, const struct result_in *in)
{
	struct reader_totals t = reader_totals(in->reader);
	struct live_totals l = live_totals(reader_live(in->reader));
	struct stacks_totals s = stacks_totals(reader_stacks(in->reader));
	struct rusage ru;

	(void)getrusage(RUSAGE_SELF, &ru);
	str_add(&r->summary, "{");
	figure(r, "events", t.received);
	figure(r, "recorded", t.recorded);
	figure(r, "bytes_written", in->run.bytes_written);
	count_calls(r);
	figure(r, "peak_live_bytes", l.peak_bytes);
	figure(r, "peak_t_ns", l.peak_t_ns - in->t0_mono_ns);
	figure(r, "processes", (int64_t)r->out.n_processes);
	figure(r, "sites", (int64_t)r->out.n_sites);
	figure(r, "stacks", (int64_t)r->out.n_stacks);
	figure(r, "stack_definitions", s.chains + s.captures);
	figure(r, "stacks_full", t.quality[STACK_FULL]);
	figure(r, "stacks_cut", t.quality[STACK_CUT]);
	figure(r, "stacks_guessed", t.quality[STACK_GUESSED]);
	figure(r, "stacks_none", t.quality[STACK_NONE]);
	figure(r, "checked", s.checked);
	figure(r, "mismatched", s.mismatched);
	figure(r, "produced", t.produced);
	figure(r, "lost", t.lost);
	figure(r, "pauses", t.pauses);
	figure(r, "paused_ns", t.paused_ns);
	figure(r, "stops", t.stops);
	figure(r, "hits", t.hits);
	figure(r, "outside", t.outside);
	figure(r, "nested", t.nested);
	figure(r, "skipped", t.skipped);
	figure(r, "stepped", t.stepped);
	figure(r, "returns", t.returns);
	figure(r, "trap_ns", mean_trap(in, &t));
	figure(r, "program_ns", t.program_ns);
	figure(r, "tracer_cpu_ns", t.cpu_ns);
	figure(r, "tracer_rss_bytes", ru.ru_maxrss * INT64_C(1024));
	figure(r, "unknown_frees", l.unknown_frees - t.duplicate_frees);
	figure(r, "failed_allocs", l.failed_allocs);
	figure(r, "faults", in->has_faults ? t.faults : -1);
	figure(r, "own_faults", in->has_faults ? t.own_faults : -1);
	figure(r, "faulted_pages", t.faulted_pages);
	figure(r, "captures_lost", t.captures_lost);
	figure(r, "unresolved", s.unresolved);
	figure(r, "copies_bytes", in->copied_bytes);
	add_scans(r, in);
	add_slowdown(r, in);
	str_add(&r->summary, "}");
	r->out.summary_json = r->summary.data;
	return r->summary.failed ? -ENOMEM : 0;
}

int result_new(struct result **ret, const struct result_in *in, struct err *err)
{
	struct result *r = calloc(1, sizeof(*r));
	int code;

	if (!r)
		return err_errno(err, -ENOMEM, "cannot put the trace together");
	r->out.n_sites = live_sites(reader_live(in->reader), &r->out.sites);
	r->out.n_processes = reader_processes(in->reader, &r->out.processes);
	r->out.coverage = in->coverage;
	r->out.n_coverage = in->n_coverage;
	code = symbols_new(&r->symbols, err);
	if (code == 0 && (add_modules(r, in) < 0 || add_fault_places(r, in) < 0 ||
			  add_stacks(r, in) < 0 || add_summary(r, in) < 0))
		code = err_errno(err, -ENOMEM, "cannot put the trace together");
	if (code < 0) {
		result_free(r);
		return code;
	}
	*ret = r;
	return 0;
}

const struct trace_result *result_get(const struct result *r)
{
	return &r->out;
}

void result_free(struct result *r)
{
	if (!r)
		return;
	symbols_free(r->symbols);
	map_done(&r->places);
	str_done(&r->summary);
	free(r->by_module);
	free(r->is_opened);
	free(r->modules);
	free(r->frames);
	free(r->stacks);
	free(r->levels);
	free(r);
}
