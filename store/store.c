#include "store/store.h"

#include "base/clock.h"
#include "base/str.h"
#include "store/schema.h"
#include "store/statement.h"
#include "store/store_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

/* Samples of 2.5 s at the shortest period, 10 ms: two missed commits before a row is lost. */
#define QUEUE_MAX 256

enum record_kind {
	REC_SAMPLE,
	REC_DECISION,
	REC_EVENT,
	REC_LOSS,
	REC_TRACER_STAT,
	REC_FAULTS,
	REC_SCAN,
	REC_TRACE,
	REC_RUN_BEGIN,
	REC_RUN_END
};

struct note {
	int64_t t_ns, count;
	char name[48];
	char detail[512];
};

struct record {
	enum record_kind kind;
	int64_t run_id;
	union {
		struct sample sample;
		struct decision decision;
		struct note note; /* event or loss */
		struct tracer_stat tracer_stat;
		struct {
			struct fault *list; /* owned */
			size_t n;
		} faults;
		struct {
			struct scan scan;
			struct site_sample *sites; /* owned */
			size_t n;
		} scan;
		/* Borrowed: whoever queues one waits until it is written. */
		const struct trace_result *trace;
		const struct run_begin *begin;
		const struct run_end *end;
	};
};

enum statement {
	ST_SAMPLE,
	ST_EXTRA,
	ST_DECISION,
	ST_EVENT,
	ST_LOSS,
	ST_TRACER_STAT,
	ST_RUN_BEGIN,
	ST_RUN_END,
	ST_COUNT
};

struct store {
	char path[PATH_MAX]; /* of profile.db, for messages */
	sqlite3 *db;
	sqlite3_stmt *st[ST_COUNT];
	pthread_t thread;
	pthread_mutex_t lock; /* guards what follows */
	pthread_cond_t work, idle;
	struct record *queue;
	size_t head, n;
	int64_t dropped;
	bool wants_flush, is_closing, is_busy;
	struct err failure;
	int event_fd;
	int64_t last_run_id;
};

/* -- the writer thread --------------------------------------------------------------------- */

static int write_sample(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[ST_SAMPLE];
	const struct sample *v = &r->sample;
	int failed;

	sqlite3_bind_int64(st, 1, r->run_id);
	sqlite3_bind_int64(st, 2, v->seq);
	sqlite3_bind_int64(st, 3, v->t_ns);
	for (int i = 0; i < METRIC_COUNT; i++) {
		if (v->has[i])
			sqlite3_bind_int64(st, 4 + i, v->v[i]);
		else
			sqlite3_bind_null(st, 4 + i);
	}
	failed = step(st);
	st = s->st[ST_EXTRA];
	for (size_t i = 0; failed == 0 && i < v->n_extra; i++) {
		sqlite3_bind_int64(st, 1, r->run_id);
		sqlite3_bind_int64(st, 2, v->seq);
		bind_text(st, 3, v->extra[i].key);
		sqlite3_bind_int64(st, 4, v->extra[i].value);
		failed = step(st);
	}
	return failed;
}

static int write_decision(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[ST_DECISION];
	const struct decision *d = &r->decision;

	sqlite3_bind_int64(st, 1, r->run_id);
	sqlite3_bind_int64(st, 2, d->t_ns);
	bind_text(st, 3, action_name(d->action));
	bind_text(st, 4, d->reason);
	bind_real(st, 5, d->fault_rate);
	bind_real(st, 6, d->stall_some);
	bind_real(st, 7, d->stall_full);
	bind_real(st, 8, d->refault_ratio);
	bind_known(st, 9, d->usage_bytes);
	sqlite3_bind_int64(st, 10, d->limit_before);
	sqlite3_bind_int64(st, 11, d->limit_after);
	bind_text(st, 12, outcome_name(d->outcome));
	sqlite3_bind_int64(st, 13, d->took_ns);
	return step(st);
}

static int write_note(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[r->kind == REC_EVENT ? ST_EVENT : ST_LOSS];

	sqlite3_bind_int64(st, 1, r->run_id);
	if (r->kind == REC_EVENT) {
		sqlite3_bind_int64(st, 2, r->note.t_ns);
		bind_text(st, 3, r->note.name);
	} else {
		bind_text(st, 2, r->note.name);
		sqlite3_bind_int64(st, 3, r->note.count);
	}
	bind_text(st, 4, r->note.detail);
	return step(st);
}

static int write_tracer_stat(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[ST_TRACER_STAT];
	const struct tracer_stat *t = &r->tracer_stat;
	const int64_t values[] = {r->run_id,    t->t_ns,      t->ring,      t->written,
				  t->read,      t->fill_peak, t->paused_ns, t->backlog,
				  t->encode_ns, t->write_ns,  t->rss};

	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		sqlite3_bind_int64(st, (int)i + 1, values[i]);
	return step(st);
}

static int write_run_begin(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[ST_RUN_BEGIN];
	const struct run_begin *b = r->begin;

	sqlite3_bind_int64(st, 1, r->run_id);
	bind_text(st, 2, b->name);
	bind_text(st, 3, run_kind_name(b->kind));
	bind_text(st, 4, b->policy);
	bind_text(st, 5, b->knob);
	bind_known(st, 6, b->limit_bytes);
	bind_text(st, 7, b->command_json);
	bind_text(st, 8, b->started_at);
	sqlite3_bind_int64(st, 9, b->started_mono_ns);
	bind_text(st, 10, b->compressor);
	sqlite3_bind_int64(st, 11, b->repeat_index);
	sqlite3_bind_int64(st, 12, b->run_order);
	bind_text(st, 13, b->config_json);
	bind_text(st, 14, b->environment_json);
	sqlite3_bind_int64(st, 15, b->period_ns);
	return step(st);
}

static int write_run_end(struct store *s, const struct record *r)
{
	sqlite3_stmt *st = s->st[ST_RUN_END];
	const struct run_end *e = r->end;

	bind_known(st, 1, e->exec_t_ns);
	bind_known(st, 2, e->group_empty_t_ns);
	bind_real(st, 3, e->duration_ns < 0 ? NAN : (double)e->duration_ns / NS_PER_S);
	bind_known(st, 4, e->exit_code);
	bind_known(st, 5, e->term_signal > 0 ? e->term_signal : -1);
	bind_text(st, 6, end_reason_name(e->reason));
	sqlite3_bind_double(st, 7, (double)e->tool_cpu_ns / NS_PER_S);
	sqlite3_bind_int64(st, 8, e->tool_rss_bytes);
	bind_real(st, 9, e->actuator_cpu_ns < 0 ? NAN : (double)e->actuator_cpu_ns / NS_PER_S);
	sqlite3_bind_int64(st, 10, r->run_id);
	return step(st);
}

static int write_record(struct store *s, const struct record *r)
{
	switch (r->kind) {
	case REC_SAMPLE:
		return write_sample(s, r);
	case REC_DECISION:
		return write_decision(s, r);
	case REC_EVENT:
	case REC_LOSS:
		return write_note(s, r);
	case REC_TRACER_STAT:
		return write_tracer_stat(s, r);
	case REC_FAULTS:
		return trace_write_faults(s->db, r->run_id, r->faults.list, r->faults.n);
	case REC_SCAN:
		return trace_write_scan(s->db, r->run_id, &r->scan.scan, r->scan.sites, r->scan.n);
	case REC_TRACE:
		return trace_write(s->db, r->run_id, r->trace);
	case REC_RUN_BEGIN:
		return write_run_begin(s, r);
	case REC_RUN_END:
		return write_run_end(s, r);
	}
	return -EINVAL;
}

static int exec_sql(struct store *s, const char *sql)
{
	return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? 0 : -EIO;
}

static void record_done(struct record *r)
{
	if (r->kind == REC_FAULTS)
		free(r->faults.list);
	else if (r->kind == REC_SCAN)
		free(r->scan.sites);
}

/* Called with the lock held. Everything queued so far becomes one transaction; the lock is not
 * held while SQLite works, and the records at the queue's head stay in place until it is done. */
static void write_batch(struct store *s)
{
	size_t n = s->n;
	int r;

	s->is_busy = true;
	pthread_mutex_unlock(&s->lock);
	r = exec_sql(s, "BEGIN");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = write_record(s, &s->queue[(s->head + i) % QUEUE_MAX]);
	if (r == 0)
		r = exec_sql(s, "COMMIT");
	for (size_t i = 0; i < n; i++)
		record_done(&s->queue[(s->head + i) % QUEUE_MAX]);
	pthread_mutex_lock(&s->lock);
	if (r < 0 && s->failure.code == 0) {
		int code = sqlite3_errcode(s->db);

		(void)err_set(&s->failure, code == SQLITE_FULL ? -ENOSPC : -EIO,
			      "cannot write %s: %s", s->path, sqlite3_errmsg(s->db));
		(void)err_hint(&s->failure, "what was recorded before is kept; free some space, "
					    "or use -o on another disk");
		(void)!write(s->event_fd, &(uint64_t){1}, sizeof(uint64_t));
	}
	if (r < 0)
		(void)exec_sql(s, "ROLLBACK"); /* SQLite has often done so already */
	s->head = (s->head + n) % QUEUE_MAX;
	s->n -= n;
	s->is_busy = false;
	pthread_cond_broadcast(&s->idle);
}

static void *writer(void *arg)
{
	struct store *s = arg;
	struct timespec until;

	pthread_mutex_lock(&s->lock);
	clock_gettime(CLOCK_MONOTONIC, &until);
	while (!s->is_closing) {
		int r = 0;

		until.tv_sec++;
		while (!s->is_closing && !s->wants_flush && r != ETIMEDOUT)
			r = pthread_cond_timedwait(&s->work, &s->lock, &until);
		s->wants_flush = false;
		if (s->n > 0)
			write_batch(s);
		pthread_cond_broadcast(&s->idle);
		clock_gettime(CLOCK_MONOTONIC, &until);
	}
	if (s->n > 0)
		write_batch(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* -- opening --------------------------------------------------------------------------------- */

static int prepare(struct store *s, struct err *err)
{
	_cleanup_str_ struct str sample = {0};
	const char *sql[ST_COUNT] = {
		[ST_EXTRA] = "INSERT OR IGNORE INTO sample_extra VALUES (?,?,?,?)",
		[ST_DECISION] = "INSERT INTO decision VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
		[ST_EVENT] = "INSERT INTO event (run_id, t_ns, kind, detail) VALUES (?,?,?,?)",
		[ST_LOSS] = "INSERT INTO loss (run_id, source, count, detail) VALUES (?,?,?,?)",
		[ST_TRACER_STAT] = "INSERT INTO tracer_stat VALUES (?,?,?,?,?,?,?,?,?,?,?)",
		[ST_RUN_BEGIN] =
			"INSERT INTO run (run_id, name, kind, policy, knob, limit_bytes, command,"
			" started_at, started_mono_ns, compressor, repeat_index, run_order,"
			" config, environment, period_ns)"
			" VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
		[ST_RUN_END] = "UPDATE run SET exec_t_ns = ?, group_empty_t_ns = ?, duration_s = ?,"
			       " exit_code = ?, term_signal = ?, end_reason = ?, tool_cpu_s = ?,"
			       " tool_rss_bytes = ?, actuator_cpu_s = ? WHERE run_id = ?",
	};

	str_add(&sample, "INSERT INTO sample VALUES (?,?,?");
	for (int i = 0; i < METRIC_COUNT; i++)
		str_add(&sample, ",?");
	str_add(&sample, ")");
	if (sample.failed)
		return err_errno(err, -ENOMEM, "cannot prepare %s", s->path);
	sql[ST_SAMPLE] = sample.data;
	for (int i = 0; i < ST_COUNT; i++) {
		if (sqlite3_prepare_v3(s->db, sql[i], -1, SQLITE_PREPARE_PERSISTENT, &s->st[i],
				       NULL) != SQLITE_OK)
			return err_set(err, -EIO, "cannot prepare %s: %s", s->path,
				       sqlite3_errmsg(s->db));
	}
	return 0;
}

/* The file exists before SQLite opens it, with its final owner: SQLite gives -wal and -shm the
 * same, so that the user behind sudo can read while we write. */
static int create_file(struct store *s, int dirfd, uid_t uid, gid_t gid, struct err *err)
{
	_cleanup_close_ int fd =
		openat(dirfd, "profile.db", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0 || (uid != (uid_t)-1 && fchown(fd, uid, gid) < 0))
		return err_errno(err, -errno, "cannot create %s", s->path);
	return 0;
}

static int open_db(struct store *s, const char *journal_mode, struct err *err)
{
	char sql[64], name[sizeof(s->path) + 2]; /* "./": "file:x" would be taken for a URI */
	int r;

	/* Used by the opener first, then by the writer thread only. */
	(void)snprintf(name, sizeof(name), "%s%s", s->path[0] == '/' ? "" : "./", s->path);
	r = sqlite3_open_v2(name, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (r != SQLITE_OK)
		return err_set(err, -EIO, "cannot open %s: %s", s->path, sqlite3_errmsg(s->db));
	(void)sqlite3_busy_timeout(s->db, 2000);
	(void)snprintf(sql, sizeof(sql), "PRAGMA journal_mode=%s", journal_mode);
	if (exec_sql(s, sql) < 0 || exec_sql(s, "PRAGMA synchronous=NORMAL") < 0)
		return err_set(err, -EIO, "cannot set up %s: %s", s->path, sqlite3_errmsg(s->db));
	return schema_create(s->db, err);
}

/* Some file systems accept WAL and fail at the first write (9p): so the first one proves it. */
static int open_proved(struct store *s, int dirfd, uid_t uid, gid_t gid, struct err *err)
{
	int r = create_file(s, dirfd, uid, gid, err);

	if (r < 0)
		return r;
	r = open_db(s, "WAL", err);
	if (r == 0)
		return 0;
	(void)sqlite3_close(s->db);
	s->db = NULL;
	(void)unlinkat(dirfd, "profile.db-wal", 0);
	(void)unlinkat(dirfd, "profile.db-shm", 0);
	(void)unlinkat(dirfd, "profile.db", 0);
	r = create_file(s, dirfd, uid, gid, err);
	return r < 0 ? r : open_db(s, "TRUNCATE", err);
}

static void init_locks(struct store *s)
{
	pthread_condattr_t attr;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->work, &attr);
	pthread_cond_init(&s->idle, &attr);
	pthread_condattr_destroy(&attr);
}

static void release(struct store *s)
{
	for (int i = 0; i < ST_COUNT; i++)
		(void)sqlite3_finalize(s->st[i]);
	(void)sqlite3_close(s->db);
	close_fd(&s->event_fd);
	pthread_cond_destroy(&s->work);
	pthread_cond_destroy(&s->idle);
	pthread_mutex_destroy(&s->lock);
	free(s->queue);
	free(s);
}

int store_open(struct store **ret, int dirfd, const char *path, uid_t uid, gid_t gid,
	       struct err *err)
{
	struct store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_errno(err, -ENOMEM, "cannot open the results");
	init_locks(s);
	s->queue = calloc(QUEUE_MAX, sizeof(*s->queue));
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)snprintf(s->path, sizeof(s->path), "%s/profile.db", path);
	if (!s->queue || s->event_fd < 0)
		r = err_errno(err, -ENOMEM, "cannot open %s", s->path);
	else
		r = open_proved(s, dirfd, uid, gid, err);
	if (r == 0)
		r = prepare(s, err);
	if (r == 0 && pthread_create(&s->thread, NULL, writer, s) != 0)
		r = err_errno(err, -EAGAIN, "cannot start the writer of %s", s->path);
	if (r < 0) {
		release(s);
		return r;
	}
	*ret = s;
	return 0;
}

/* -- the caller's side ------------------------------------------------------------------------ */

int store_event_fd(const struct store *s)
{
	return s->event_fd;
}

int store_failure(struct store *s, struct err *err)
{
	int code;

	pthread_mutex_lock(&s->lock);
	code = s->failure.code;
	if (code < 0)
		*err = s->failure;
	pthread_mutex_unlock(&s->lock);
	return code;
}

/* The slot to fill, with the lock held; NULL: recording is over or the queue is full. */
static struct record *claim(struct store *s, enum record_kind kind, int64_t run_id)
{
	struct record *r;

	pthread_mutex_lock(&s->lock);
	if (s->failure.code < 0 || s->n == QUEUE_MAX) {
		s->dropped += s->n == QUEUE_MAX;
		pthread_mutex_unlock(&s->lock);
		return NULL;
	}
	r = &s->queue[(s->head + s->n) % QUEUE_MAX];
	r->kind = kind;
	r->run_id = run_id;
	return r;
}

static void commit_slot(struct store *s)
{
	s->n++;
	pthread_mutex_unlock(&s->lock);
}

void store_put_sample(struct store *s, int64_t run_id, const struct sample *sample)
{
	struct record *r = claim(s, REC_SAMPLE, run_id);

	if (!r)
		return;
	r->sample = *sample;
	commit_slot(s);
}

void store_put_decision(struct store *s, int64_t run_id, const struct decision *d)
{
	struct record *r = claim(s, REC_DECISION, run_id);

	if (!r)
		return;
	r->decision = *d;
	commit_slot(s);
}

void store_put_tracer_stat(struct store *s, int64_t run_id, const struct tracer_stat *stat)
{
	struct record *r = claim(s, REC_TRACER_STAT, run_id);

	if (!r)
		return;
	r->tracer_stat = *stat;
	commit_slot(s);
}

/* *ret: a copy, or NULL: no memory, which is a row lost like any other. */
static bool copy_rows(struct store *s, void *ret, const void *rows, size_t n, size_t size)
{
	void *copy = malloc(n * size + 1);

	if (copy)
		memcpy(copy, rows, n * size);
	*(void **)ret = copy;
	if (copy)
		return true;
	pthread_mutex_lock(&s->lock);
	s->dropped++;
	pthread_mutex_unlock(&s->lock);
	return false;
}

void store_put_faults(struct store *s, int64_t run_id, const struct fault *faults, size_t n)
{
	struct fault *list;
	struct record *r;

	if (!copy_rows(s, &list, faults, n, sizeof(*faults)))
		return;
	r = claim(s, REC_FAULTS, run_id);
	if (!r) {
		free(list);
		return;
	}
	r->faults.list = list;
	r->faults.n = n;
	commit_slot(s);
}

void store_put_scan(struct store *s, int64_t run_id, const struct scan *scan,
		    const struct site_sample *sites, size_t n)
{
	struct site_sample *list;
	struct record *r;

	if (!copy_rows(s, &list, sites, n, sizeof(*sites)))
		return;
	r = claim(s, REC_SCAN, run_id);
	if (!r) {
		free(list);
		return;
	}
	r->scan.scan = *scan;
	r->scan.sites = list;
	r->scan.n = n;
	commit_slot(s);
}

static void put_note(struct store *s, enum record_kind kind, int64_t run_id, int64_t number,
		     const char *name, const char *detail)
{
	struct record *r = claim(s, kind, run_id);

	if (!r)
		return;
	r->note.t_ns = number;
	r->note.count = number;
	(void)snprintf(r->note.name, sizeof(r->note.name), "%s", name);
	(void)snprintf(r->note.detail, sizeof(r->note.detail), "%s", detail);
	commit_slot(s);
}

void store_put_event(struct store *s, int64_t run_id, int64_t t_ns, const char *kind,
		     const char *detail)
{
	put_note(s, REC_EVENT, run_id, t_ns, kind, detail);
}

void store_put_loss(struct store *s, int64_t run_id, const char *source, int64_t count,
		    const char *detail)
{
	put_note(s, REC_LOSS, run_id, count, source, detail);
}

/* Until all that is queued is committed or has failed. */
static int flush(struct store *s, struct err *err)
{
	int code;

	pthread_mutex_lock(&s->lock);
	while (s->n > 0) {
		s->wants_flush = true;
		pthread_cond_signal(&s->work);
		pthread_cond_wait(&s->idle, &s->lock);
	}
	code = s->failure.code;
	if (code < 0)
		*err = s->failure;
	pthread_mutex_unlock(&s->lock);
	return code;
}

int store_run_begin(struct store *s, const struct run_begin *run, int64_t *ret_run_id,
		    struct err *err)
{
	struct record *r = claim(s, REC_RUN_BEGIN, ++s->last_run_id);

	if (r) {
		r->begin = run;
		commit_slot(s);
	}
	*ret_run_id = s->last_run_id;
	return flush(s, err);
}

int store_write_trace(struct store *s, int64_t run_id, const struct trace_result *t,
		      struct err *err)
{
	struct record *r;
	int failed = flush(s, err); /* so that there is room in the queue */

	r = claim(s, REC_TRACE, run_id);
	if (r) {
		r->trace = t;
		commit_slot(s);
	}
	return failed < 0 ? failed : flush(s, err);
}

static void tell_dropped(struct store *s, int64_t run_id)
{
	int64_t dropped;

	pthread_mutex_lock(&s->lock);
	dropped = s->dropped;
	s->dropped = 0;
	pthread_mutex_unlock(&s->lock);
	if (dropped > 0)
		store_put_loss(s, run_id, "store", dropped,
			       "rows not recorded: the disk did not keep up");
}

int store_run_end(struct store *s, int64_t run_id, const struct run_end *end, struct err *err)
{
	struct record *r;
	int failed = flush(s, err); /* so that the last rows find room in the queue */

	tell_dropped(s, run_id);
	r = claim(s, REC_RUN_END, run_id);
	if (r) {
		r->end = end;
		commit_slot(s);
	}
	return failed < 0 ? failed : flush(s, err);
}

int store_close(struct store *s, struct err *err)
{
	int code;

	if (!s)
		return 0;
	pthread_mutex_lock(&s->lock);
	s->is_closing = true;
	pthread_cond_signal(&s->work);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	code = store_failure(s, err);
	for (int i = 0; i < ST_COUNT; i++) {
		(void)sqlite3_finalize(s->st[i]);
		s->st[i] = NULL;
	}
	/* On a full disk this fails too; the -wal file then keeps the rows for the reader. */
	if (exec_sql(s, "PRAGMA wal_checkpoint(TRUNCATE)") < 0 ||
	    exec_sql(s, "PRAGMA journal_mode=DELETE") < 0) {
		if (code == 0)
			code = err_set(err, -EIO, "cannot finish %s: %s", s->path,
				       sqlite3_errmsg(s->db));
	}
	release(s);
	return code;
}
