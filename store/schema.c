#include "store/schema.h"

#include "base/str.h"
#include "model/sample.h"
#include "store/schema_views.h"

#include <errno.h>

/*
 * Conventions of every table: NULL where nothing is known, never 0; sizes in bytes, `max` is
 * 9223372036854775807; times in ns since the run's first sample; fractions 0 ... 1; rates per
 * second; JSON is TEXT.
 */
static const char fixed_tables[] =
	"CREATE TABLE run ("
	" run_id INTEGER PRIMARY KEY,"
	" name TEXT NOT NULL,"
	" kind TEXT NOT NULL,"      /* baseline, static, dynamic, observe */
	" policy TEXT,"             /* none, static, or the law */
	" knob TEXT,"               /* memory.max, memory.high, memory.reclaim */
	" limit_bytes INTEGER,"     /* of a static run */
	" command TEXT,"            /* JSON array */
	" started_at TEXT,"         /* ISO 8601, UTC */
	" started_mono_ns INTEGER," /* CLOCK_MONOTONIC of t_ns 0 */
	" exec_t_ns INTEGER,"       /* gate opened */
	" group_empty_t_ns INTEGER,"
	" duration_s REAL,"   /* gate opened -> main process ended */
	" exit_code INTEGER," /* NULL if term_signal */
	" term_signal INTEGER,"
	" end_reason TEXT," /* NULL: still running, or the recorder died */
	" compressor TEXT,"
	" allocator TEXT,"
	" repeat_index INTEGER,"
	" run_order INTEGER,"
	" kpi REAL,"
	" tool_cpu_s REAL,"
	" tool_rss_bytes INTEGER,"
	" actuator_cpu_s REAL,"
	" config TEXT,"       /* JSON */
	" environment TEXT,"  /* JSON */
	" period_ns INTEGER," /* sampling period asked for */
	" trace TEXT"         /* JSON: figures of the trace as a whole; NULL = not traced */
	") STRICT;"

	"CREATE TABLE metric ("
	" name TEXT PRIMARY KEY,"
	" file TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" kind TEXT NOT NULL," /* gauge, counter, limit */
	" unit TEXT NOT NULL,"
	" scope TEXT NOT NULL," /* group, host */
	" help TEXT NOT NULL"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE sample_extra ("
	" run_id INTEGER NOT NULL,"
	" seq INTEGER NOT NULL,"
	" key TEXT NOT NULL,"
	" value INTEGER,"
	" PRIMARY KEY (run_id, seq, key)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE decision ("
	" run_id INTEGER NOT NULL,"
	" t_ns INTEGER NOT NULL,"
	" action TEXT NOT NULL," /* hold, tighten, relax, release */
	" reason TEXT,"
	" fault_rate REAL,"
	" stall_some REAL,"
	" stall_full REAL,"
	" refault_ratio REAL,"
	" usage_bytes INTEGER,"
	" limit_before INTEGER,"
	" limit_after INTEGER,"
	" outcome TEXT," /* ok, partial, timeout, error, skipped */
	" took_ns INTEGER"
	") STRICT;"
	"CREATE INDEX decision_by_run ON decision (run_id, t_ns);"

	"CREATE TABLE process ("
	" run_id INTEGER NOT NULL,"
	" pid INTEGER NOT NULL,"
	" start_t_ns INTEGER NOT NULL,"
	" ppid INTEGER,"
	" exe TEXT,"
	" comm TEXT,"
	" end_t_ns INTEGER,"
	" exit_code INTEGER,"
	" PRIMARY KEY (run_id, pid, start_t_ns)"
	") STRICT;"

	"CREATE TABLE event ("
	" run_id INTEGER NOT NULL,"
	" t_ns INTEGER,"
	" kind TEXT NOT NULL," /* oom_kill, warning, compressor_changed, ... */
	" detail TEXT"
	") STRICT;"

	"CREATE TABLE loss ("
	" run_id INTEGER NOT NULL,"
	" source TEXT NOT NULL,"
	" count INTEGER,"
	" detail TEXT"
	") STRICT;";

/*
 * What a traced run leaves. Ids of frames and stacks are unique in the file, those of modules and
 * sites within their run.
 */
static const char trace_tables[] =
	"CREATE TABLE module ("
	" run_id INTEGER NOT NULL,"
	" module_id INTEGER NOT NULL,"
	" path TEXT,"
	" build_id TEXT," /* hexadecimal */
	" PRIMARY KEY (run_id, module_id)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE frame ("
	" frame_id INTEGER PRIMARY KEY,"
	" module TEXT,"             /* path; NULL: code of no file */
	" build_id TEXT,"           /* of the module */
	" offset INTEGER NOT NULL," /* ELF virtual address of the return address, names are those
				     * of offset - 1; the absolute address without a module */
	" function TEXT,"
	" file TEXT," /* of source */
	" line INTEGER,"
	" is_inline INTEGER NOT NULL" /* 1: inlined into the next frame */
	") STRICT;"

	"CREATE TABLE stack ("
	" stack_id INTEGER PRIMARY KEY,"
	" depth INTEGER NOT NULL,"
	" quality TEXT NOT NULL" /* full, cut, guessed, none */
	") STRICT;"

	"CREATE TABLE stack_frame ("
	" stack_id INTEGER NOT NULL,"
	" level INTEGER NOT NULL," /* 0 = the allocator's caller */
	" frame_id INTEGER NOT NULL,"
	" PRIMARY KEY (stack_id, level)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE site ("
	" run_id INTEGER NOT NULL,"
	" site_id INTEGER NOT NULL,"
	" stack_id INTEGER,"
	" kind TEXT NOT NULL," /* malloc, mmap, brk, other */
	" alloc_count INTEGER,"
	" free_count INTEGER,"
	" alloc_bytes INTEGER,"     /* as requested */
	" peak_live_bytes INTEGER," /* the site's own peak */
	" at_peak_bytes INTEGER,"   /* live when the whole workload had most */
	" end_live_bytes INTEGER,"  /* not freed when its process or the run ended */
	" end_live_count INTEGER,"
	" temporary_count INTEGER," /* freed by the next event of the thread */
	" failed_count INTEGER,"
	" major_faults INTEGER,"
	" fault_ns INTEGER," /* that they took; NULL where that cannot be measured */
	" max_swapped_bytes INTEGER,"
	" PRIMARY KEY (run_id, site_id)"
	") STRICT, WITHOUT ROWID;"

	/* A scan of the page tables; a row of `site_sample` where a site's figures have changed
	 * since its last row. */
	"CREATE TABLE scan ("
	" run_id INTEGER NOT NULL,"
	" t_ns INTEGER NOT NULL,"
	" period_ns INTEGER," /* until the next one: what keeps scanning within its budget */
	" scan_ns INTEGER,"   /* CPU time that it took */
	" processes INTEGER,"
	" blocks INTEGER,"         /* live ones that were laid over the pages */
	" resident_bytes INTEGER," /* of all sites */
	" swapped_bytes INTEGER,"
	" swapcache_bytes INTEGER," /* NULL where the kernel does not show it */
	" PRIMARY KEY (run_id, t_ns)"
	") STRICT, WITHOUT ROWID;"

	/* Bytes of pages: each is divided among the live blocks on it in proportion to their bytes
	 * on it. resident + swapped is also hot + cold + returned + thrashing; hot, what never left
	 * memory, has no column. */
	"CREATE TABLE site_sample ("
	" run_id INTEGER NOT NULL,"
	" site_id INTEGER NOT NULL,"
	" t_ns INTEGER NOT NULL,"
	" live_bytes INTEGER," /* requested and not freed */
	" resident_bytes INTEGER,"
	" swapped_bytes INTEGER,"   /* the page's entry is a swap entry */
	" swapcache_bytes INTEGER," /* of them still in memory too; NULL = not known */
	" cold_bytes INTEGER,"      /* swapped, and never came back */
	" returned_bytes INTEGER,"  /* came back once, wherever they are now */
	" thrashing_bytes INTEGER," /* came back more often */
	" major_faults INTEGER,"    /* so far */
	" scan_ns INTEGER,"         /* CPU time of the scan */
	" PRIMARY KEY (run_id, site_id, t_ns)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE fault ("
	" run_id INTEGER NOT NULL,"
	" t_ns INTEGER NOT NULL," /* when it had been served */
	" pid INTEGER NOT NULL,"
	" tid INTEGER NOT NULL,"
	" address INTEGER NOT NULL,"
	" site_id INTEGER,"       /* NULL: not the heap */
	" mapping TEXT NOT NULL," /* file, anon, stack, brk, vdso, unknown */
	" file TEXT,"
	" file_offset INTEGER,"
	" ip_frame INTEGER,"       /* frame_id of the instruction that met it */
	" duration_ns INTEGER,"    /* NULL where that cannot be measured */
	" is_own INTEGER NOT NULL" /* 1: the tracer's reading of a stack */
	") STRICT;"
	"CREATE INDEX fault_by_run ON fault (run_id, t_ns);"

	"CREATE TABLE site_histogram ("
	" run_id INTEGER NOT NULL,"
	" site_id INTEGER NOT NULL,"
	" kind TEXT NOT NULL,"    /* size (bytes), lifetime (ns) */
	" log2 INTEGER NOT NULL," /* 2^log2 ... 2^(log2 + 1) - 1; 0 is in 0 */
	" count INTEGER NOT NULL,"
	" PRIMARY KEY (run_id, site_id, kind, log2)"
	") STRICT, WITHOUT ROWID;"

	"CREATE TABLE coverage ("
	" run_id INTEGER NOT NULL,"
	" path TEXT,"
	" families TEXT," /* the allocators in it; '' = none */
	" probes INTEGER,"
	" is_private INTEGER," /* 0: probed where every user of the file pays */
	" problem TEXT"
	") STRICT;"

	"CREATE TABLE tracer_stat ("
	" run_id INTEGER NOT NULL,"
	" t_ns INTEGER NOT NULL,"
	" ring INTEGER NOT NULL,"
	" written INTEGER," /* events so far */
	" read INTEGER,"
	" fill_peak INTEGER," /* bytes, since the last row */
	" paused_ns INTEGER," /* so far */
	" backlog INTEGER,"   /* events read and not yet in order */
	" encode_ns INTEGER,"
	" write_ns INTEGER,"
	" rss INTEGER"
	") STRICT;"

	/* Stacks to read: ORDER BY run_id, site_id, level. */
	"CREATE VIEW site_stack AS SELECT s.run_id AS run_id, s.site_id AS site_id,"
	" l.level AS level, f.function AS function, f.file AS file, f.line AS line,"
	" f.module AS module FROM site AS s JOIN stack_frame AS l ON l.stack_id = s.stack_id"
	" JOIN frame AS f ON f.frame_id = l.frame_id;";

static int exec_sql(sqlite3 *db, const char *sql, struct err *err)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return err_set(err, -EIO, "cannot create the tables of profile.db: %s", sqlite3_errmsg(db));
}

static int exec_str(sqlite3 *db, const struct str *sql, struct err *err)
{
	if (sql->failed)
		return err_set(err, -ENOMEM, "cannot create the tables of profile.db: no memory");
	return exec_sql(db, sql->data, err);
}

/*
 * A table with rowid although it has a primary key: its rows exceed what SQLite keeps in one
 * cell of an index b-tree, WITHOUT ROWID would send the rest of each row to overflow pages.
 */
static int create_sample(sqlite3 *db, struct err *err)
{
	_cleanup_str_ struct str sql = {0};

	str_add(&sql, "CREATE TABLE sample (run_id INTEGER NOT NULL, seq INTEGER NOT NULL,"
		      " t_ns INTEGER NOT NULL");
	for (int i = 0; i < METRIC_COUNT; i++)
		str_addf(&sql, ", %s INTEGER", metrics[i].name);
	str_add(&sql, ", PRIMARY KEY (run_id, seq)) STRICT");
	return exec_str(db, &sql, err);
}

/*
 * Per-second differences of every counter. A self-join on seq, not lag(): over 250 columns the
 * window function was 100 times slower. The first sample's row, holes and counters that went
 * backwards give NULL.
 */
static int create_rate(sqlite3 *db, struct err *err)
{
	_cleanup_str_ struct str sql = {0};

	str_add(&sql, "CREATE VIEW rate AS SELECT b.run_id AS run_id, b.seq AS seq,"
		      " b.t_ns AS t_ns, b.t_ns - a.t_ns AS dt_ns");
	for (int i = 0; i < METRIC_COUNT; i++) {
		const char *name = metrics[i].name;

		if (metrics[i].kind == METRIC_COUNTER)
			str_addf(&sql,
				 ", CASE WHEN b.%s >= a.%s"
				 " THEN (b.%s - a.%s) * 1e9 / (b.t_ns - a.t_ns) END AS %s",
				 name, name, name, name, name);
	}
	str_addf(&sql,
		 " FROM sample AS b JOIN run AS r ON r.run_id = b.run_id"
		 " LEFT JOIN sample AS a ON a.run_id = b.run_id AND a.seq = b.seq - 1"
		 " AND b.t_ns > a.t_ns"
		 " AND (r.period_ns IS NULL OR b.t_ns - a.t_ns <= %d * r.period_ns)",
		 SCHEMA_HOLE_PERIODS);
	return exec_str(db, &sql, err);
}

/* The difference between a counter's last and first value; the first sample precedes exec. */
static void add_total(struct str *sql, const char *metric, const char *expr, const char *as)
{
	if (metric_find(metric) >= 0)
		str_addf(sql,
			 ", (SELECT (max(%s) - min(%s))%s FROM sample AS s"
			 " WHERE s.run_id = r.run_id) AS %s",
			 metric, metric, expr, as);
}

static int create_run_summary(sqlite3 *db, struct err *err)
{
	_cleanup_str_ struct str sql = {0};

	str_add(&sql, "CREATE VIEW run_summary AS SELECT r.run_id AS run_id, r.name AS name,"
		      " r.kind AS kind, r.policy AS policy, r.limit_bytes AS limit_bytes,"
		      " r.repeat_index AS repeat_index, r.duration_s AS duration_s,"
		      " r.exit_code AS exit_code, r.term_signal AS term_signal,"
		      " r.end_reason AS end_reason,"
		      " (SELECT count(*) FROM sample AS s WHERE s.run_id = r.run_id) AS samples,"
		      " (SELECT coalesce(max(memory_peak), max(memory_current))"
		      " FROM sample AS s WHERE s.run_id = r.run_id) AS peak_bytes");
	add_total(&sql, "memory_stat_pgmajfault", "", "major_faults");
	add_total(&sql, "memory_pressure_some_total", " / 1e6", "stalled_some_s");
	add_total(&sql, "memory_pressure_full_total", " / 1e6", "stalled_full_s");
	add_total(&sql, "memory_events_oom_kill", "", "oom_kills");
	str_add(&sql, ", (SELECT count(*) FROM decision AS d WHERE d.run_id = r.run_id)"
		      " AS decisions,"
		      " (SELECT coalesce(sum(count), 0) FROM loss AS l WHERE l.run_id = r.run_id)"
		      " AS losses,"
		      /* At the last scan; NULL where nothing was scanned. */
		      " (SELECT c.swapped_bytes FROM scan AS c WHERE c.run_id = r.run_id"
		      " ORDER BY c.t_ns DESC LIMIT 1) AS swapped_bytes,"
		      " (SELECT sum(l.cold_bytes) FROM site AS s JOIN site_sample AS l"
		      " ON l.run_id = s.run_id AND l.site_id = s.site_id AND l.t_ns ="
		      " (SELECT max(m.t_ns) FROM site_sample AS m WHERE m.run_id = s.run_id"
		      " AND m.site_id = s.site_id) WHERE s.run_id = r.run_id) AS cold_bytes,"
		      /* Of the workload's, those of a site; NULL where none was recorded. */
		      " (SELECT sum(f.is_own = 0 AND f.site_id IS NOT NULL) FROM fault AS f"
		      " WHERE f.run_id = r.run_id) AS faults_attributed FROM run AS r");
	return exec_str(db, &sql, err);
}

static int insert_metric(sqlite3_stmt *st, const struct metric *m)
{
	const char *const text[] = {m->name, m->file,
				    m->key,  metric_kind_name(m->kind),
				    m->unit, metric_scope_name(m->scope),
				    m->help};

	for (size_t i = 0; i < ARRAY_SIZE(text); i++) {
		if (sqlite3_bind_text(st, (int)i + 1, text[i], -1, SQLITE_STATIC) != SQLITE_OK)
			return -EIO;
	}
	if (sqlite3_step(st) != SQLITE_DONE || sqlite3_reset(st) != SQLITE_OK)
		return -EIO;
	return 0;
}

static int fill_metric(sqlite3 *db, struct err *err)
{
	sqlite3_stmt *st = NULL;
	int r = 0;

	if (sqlite3_prepare_v2(db, "INSERT INTO metric VALUES (?, ?, ?, ?, ?, ?, ?)", -1, &st,
			       NULL) != SQLITE_OK)
		r = -EIO;
	for (int i = 0; r == 0 && i < METRIC_COUNT; i++)
		r = insert_metric(st, &metrics[i]);
	if (r < 0)
		r = err_set(err, r, "cannot fill table 'metric': %s", sqlite3_errmsg(db));
	(void)sqlite3_finalize(st); /* repeats the error of the last step */
	return r;
}

static int create_all(sqlite3 *db, struct err *err)
{
	char pragmas[96];
	int r = exec_sql(db, fixed_tables, err);

	if (r == 0)
		r = exec_sql(db, trace_tables, err);
	if (r == 0)
		r = create_sample(db, err);
	if (r == 0)
		r = create_rate(db, err);
	if (r == 0)
		r = create_run_summary(db, err);
	if (r == 0)
		r = exec_sql(db, schema_pressure_views, err);
	if (r == 0)
		r = fill_metric(db, err);
	if (r < 0)
		return r;
	(void)snprintf(pragmas, sizeof(pragmas),
		       "PRAGMA application_id = %d; PRAGMA user_version = %d",
		       SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	return exec_sql(db, pragmas, err);
}

int schema_create(sqlite3 *db, struct err *err)
{
	int r = exec_sql(db, "BEGIN IMMEDIATE", err);

	if (r < 0)
		return r;
	r = create_all(db, err);
	if (r == 0)
		r = exec_sql(db, "COMMIT", err);
	if (r < 0 && !sqlite3_get_autocommit(db))
		(void)sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL); /* the first error counts */
	return r;
}
