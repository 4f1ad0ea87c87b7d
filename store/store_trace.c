#include "store/store_trace.h"

#include "store/statement.h"

#include <string.h>

struct trace_writer {
	sqlite3 *db;
	int64_t run_id;
	const struct trace_result *t;
	int64_t base; /* ids of this run's frames and stacks are above it */
};

/* NULL after a failure: every use of it then fails too. */
static sqlite3_stmt *prepare(struct trace_writer *w, const char *sql)
{
	sqlite3_stmt *st = NULL;

	return sqlite3_prepare_v2(w->db, sql, -1, &st, NULL) == SQLITE_OK ? st : NULL;
}

/* "" = there is none. */
static const char *build_id_hex(const struct module *m, char buf[static 2 * BUILD_ID_MAX + 1])
{
	buf[0] = '\0';
	for (int i = 0; i < m->build_id_len; i++)
		(void)snprintf(buf + 2 * i, 3, "%02x", m->build_id[i]);
	return buf;
}

static void bind_build_id(sqlite3_stmt *st, int at, const char *hex)
{
	sqlite3_bind_text(st, at, *hex ? hex : NULL, -1, SQLITE_TRANSIENT);
}

static int write_modules(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st = prepare(w, "INSERT INTO module VALUES (?,?,?,?)");
	char hex[2 * BUILD_ID_MAX + 1];
	int r = st ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_modules; i++) {
		const struct module *m = &w->t->modules[i];

		sqlite3_bind_int64(st, 1, w->run_id);
		sqlite3_bind_int64(st, 2, m->id);
		bind_text(st, 3, m->path);
		bind_build_id(st, 4, build_id_hex(m, hex));
		r = step(st);
	}
	return r;
}

/* Ids mostly are their order. */
static const struct module *find_module(const struct trace_result *t, uint32_t id)
{
	if (id > 0 && id <= t->n_modules && t->modules[id - 1].id == id)
		return &t->modules[id - 1];
	for (size_t i = 0; id > 0 && i < t->n_modules; i++) {
		if (t->modules[i].id == id)
			return &t->modules[i];
	}
	return NULL;
}

static int write_frames(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(w, "INSERT INTO frame VALUES (?,?,?,?,?,?,?,?)");
	char hex[2 * BUILD_ID_MAX + 1];
	int r = st ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_frames; i++) {
		const struct frame *f = &w->t->frames[i];
		const struct module *m = find_module(w->t, f->ref.module);

		sqlite3_bind_int64(st, 1, w->base + 1 + (int64_t)i);
		bind_text(st, 2, m ? m->path : NULL);
		bind_build_id(st, 3, m ? build_id_hex(m, hex) : "");
		sqlite3_bind_int64(st, 4, (int64_t)f->ref.offset);
		bind_text(st, 5, f->function);
		bind_text(st, 6, f->file);
		bind_known(st, 7, f->line > 0 ? f->line : -1);
		sqlite3_bind_int(st, 8, f->is_inline);
		r = step(st);
	}
	return r;
}

static int write_stack_frames(struct trace_writer *w, sqlite3_stmt *st, const struct stack *s)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && i < s->depth; i++) {
		sqlite3_bind_int64(st, 1, w->base + s->id);
		sqlite3_bind_int64(st, 2, i);
		sqlite3_bind_int64(st, 3, w->base + 1 + s->frames[i]);
		r = step(st);
	}
	return r;
}

static int write_stacks(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st = prepare(w, "INSERT INTO stack VALUES (?,?,?)");
	_cleanup_statement_ sqlite3_stmt *frames =
		prepare(w, "INSERT INTO stack_frame VALUES (?,?,?)");
	int r = st && frames ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_stacks; i++) {
		const struct stack *s = &w->t->stacks[i];

		sqlite3_bind_int64(st, 1, w->base + s->id);
		sqlite3_bind_int64(st, 2, s->depth);
		bind_text(st, 3, stack_quality_name(s->quality));
		r = step(st);
		if (r == 0)
			r = write_stack_frames(w, frames, s);
	}
	return r;
}

static int write_histogram(struct trace_writer *w, sqlite3_stmt *st, uint32_t site,
			   const char *kind, const uint32_t counts[static SITE_LOG2_MAX])
{
	int r = 0;

	for (int i = 0; r == 0 && i < SITE_LOG2_MAX; i++) {
		if (counts[i] == 0)
			continue;
		sqlite3_bind_int64(st, 1, w->run_id);
		sqlite3_bind_int64(st, 2, site);
		bind_text(st, 3, kind);
		sqlite3_bind_int(st, 4, i);
		sqlite3_bind_int64(st, 5, counts[i]);
		r = step(st);
	}
	return r;
}

static int write_site(struct trace_writer *w, sqlite3_stmt *st, const struct site *s)
{
	const int64_t values[] = {s->alloc_count,     s->free_count,      s->alloc_bytes,
				  s->peak_live_bytes, s->at_peak_bytes,   s->leaked_bytes,
				  s->leaked_count,    s->temporary_count, s->failed_count};

	sqlite3_bind_int64(st, 1, w->run_id);
	sqlite3_bind_int64(st, 2, s->id);
	bind_known(st, 3, s->stack > 0 ? w->base + s->stack : -1);
	bind_text(st, 4, site_kind_name(s->kind));
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		sqlite3_bind_int64(st, (int)i + 5, values[i]);
	bind_known(st, 14, s->major_faults);
	bind_known(st, 15, s->fault_ns);
	bind_known(st, 16, s->max_swapped_bytes);
	return step(st);
}

static int write_sites(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(w, "INSERT INTO site VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)");
	_cleanup_statement_ sqlite3_stmt *histogram =
		prepare(w, "INSERT INTO site_histogram VALUES (?,?,?,?,?)");
	int r = st && histogram ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_sites; i++) {
		const struct site *s = &w->t->sites[i];

		r = write_site(w, st, s);
		/* In the order of the key: lifetime, size. */
		if (r == 0)
			r = write_histogram(w, histogram, s->id, "lifetime", s->lifetime_log2);
		if (r == 0)
			r = write_histogram(w, histogram, s->id, "size", s->size_log2);
	}
	return r;
}

static int write_processes(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st = prepare(
		w, "INSERT OR IGNORE INTO process (run_id, pid, start_t_ns, ppid, exe, comm,"
		   " end_t_ns, exit_code) VALUES (?,?,?,?,?,?,?,?)");
	int r = st ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_processes; i++) {
		const struct process_info *p = &w->t->processes[i];

		sqlite3_bind_int64(st, 1, w->run_id);
		sqlite3_bind_int64(st, 2, p->pid);
		sqlite3_bind_int64(st, 3, p->start_t_ns);
		if (p->ppid) /* 0: made by analyzer, outside the trace */
			sqlite3_bind_int64(st, 4, p->ppid);
		else
			sqlite3_bind_null(st, 4);
		bind_text(st, 5, p->exe);
		sqlite3_bind_text(st, 6, p->comm, (int)strnlen(p->comm, sizeof(p->comm)),
				  SQLITE_STATIC);
		bind_known(st, 7, p->end_t_ns);
		bind_known(st, 8, p->exit_code);
		r = step(st);
	}
	return r;
}

static int write_coverage(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(w, "INSERT INTO coverage VALUES (?,?,?,?,?,?)");
	int r = st ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < w->t->n_coverage; i++) {
		const struct coverage *c = &w->t->coverage[i];

		sqlite3_bind_int64(st, 1, w->run_id);
		bind_text(st, 2, c->path);
		bind_text(st, 3, c->families);
		sqlite3_bind_int(st, 4, c->probes);
		sqlite3_bind_int(st, 5, c->is_private);
		bind_text(st, 6, c->problem);
		r = step(st);
	}
	return r;
}

static int write_summary(struct trace_writer *w)
{
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(w, "UPDATE run SET trace = ? WHERE run_id = ?");

	if (!st)
		return -EIO;
	/* Also without figures it says that the run was traced to its end. */
	bind_text(st, 1, w->t->summary_json ? w->t->summary_json : "{}");
	sqlite3_bind_int64(st, 2, w->run_id);
	return step(st);
}

int trace_write(sqlite3 *db, int64_t run_id, const struct trace_result *t)
{
	static int (*const parts[])(struct trace_writer *) = {
		write_modules,   write_frames,   write_stacks,  write_sites,
		write_processes, write_coverage, write_summary,
	};
	struct trace_writer w = {.db = db, .run_id = run_id, .t = t, .base = trace_id_base(run_id)};
	int r = 0;

	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(parts); i++)
		r = parts[i](&w);
	return r;
}

/* -- rows of the run while it goes on ------------------------------------------------------------
 */

static int write_fault(sqlite3_stmt *st, int64_t run_id, const struct fault *f)
{
	sqlite3_bind_int64(st, 1, run_id);
	sqlite3_bind_int64(st, 2, f->t_ns);
	sqlite3_bind_int64(st, 3, f->pid);
	sqlite3_bind_int64(st, 4, f->tid);
	sqlite3_bind_int64(st, 5, (int64_t)f->address);
	bind_known(st, 6, f->site > 0 ? (int64_t)f->site : -1);
	bind_text(st, 7, fault_mapping_name(f->mapping));
	bind_text(st, 8, f->file);
	bind_known(st, 9, f->file_offset);
	bind_known(st, 10, f->place > 0 ? trace_id_base(run_id) + (int64_t)f->place : -1);
	bind_known(st, 11, f->duration_ns);
	sqlite3_bind_int(st, 12, f->is_own);
	return step(st);
}

int trace_write_faults(sqlite3 *db, int64_t run_id, const struct fault *faults, size_t n)
{
	struct trace_writer w = {.db = db};
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(&w, "INSERT INTO fault VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
	int r = st ? 0 : -EIO;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_fault(st, run_id, &faults[i]);
	return r;
}

static int write_site_sample(sqlite3_stmt *st, int64_t run_id, const struct scan *scan,
			     const struct site_sample *s)
{
	sqlite3_bind_int64(st, 1, run_id);
	sqlite3_bind_int64(st, 2, s->site);
	sqlite3_bind_int64(st, 3, scan->t_ns);
	sqlite3_bind_int64(st, 4, s->live_bytes);
	sqlite3_bind_int64(st, 5, s->resident_bytes);
	sqlite3_bind_int64(st, 6, s->swapped_bytes);
	bind_known(st, 7, s->swapcache_bytes);
	sqlite3_bind_int64(st, 8, s->cold_bytes);
	sqlite3_bind_int64(st, 9, s->returned_bytes);
	sqlite3_bind_int64(st, 10, s->thrashing_bytes);
	bind_known(st, 11, s->major_faults);
	sqlite3_bind_int64(st, 12, scan->scan_ns);
	return step(st);
}

int trace_write_scan(sqlite3 *db, int64_t run_id, const struct scan *scan,
		     const struct site_sample *sites, size_t n)
{
	struct trace_writer w = {.db = db};
	_cleanup_statement_ sqlite3_stmt *st =
		prepare(&w, "INSERT OR IGNORE INTO scan VALUES (?,?,?,?,?,?,?,?,?)");
	_cleanup_statement_ sqlite3_stmt *row =
		prepare(&w, "INSERT OR IGNORE INTO site_sample VALUES (?,?,?,?,?,?,?,?,?,?,?,?)");
	const int64_t values[] = {scan->t_ns,         scan->period_ns, scan->scan_ns,
				  scan->processes,    scan->blocks,    scan->resident_bytes,
				  scan->swapped_bytes};
	int r;

	if (!st || !row)
		return -EIO;
	sqlite3_bind_int64(st, 1, run_id);
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		sqlite3_bind_int64(st, (int)i + 2, values[i]);
	bind_known(st, 9, scan->swapcache_bytes);
	r = step(st);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_site_sample(row, run_id, scan, &sites[i]);
	return r;
}
