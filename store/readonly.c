#include "store/readonly.h"

#include "base/str.h"
#include "store/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

/* The recorder commits once a second and holds no lock longer than that. */
#define BUSY_TIMEOUT_MS 3000

static const char *const log_suffixes[] = {"-wal", "-journal"};

/* Percent-encodes what an SQLite URI would take for syntax. */
static void add_uri_path(struct str *uri, const char *path)
{
	/* An empty authority, so that a path beginning with // is not taken for a host. */
	str_add(uri, path[0] == '/' ? "file://" : "file:");
	for (const char *p = path; *p; p++) {
		if (*p == '%' || *p == '?' || *p == '#')
			str_addf(uri, "%%%02X", (unsigned char)*p);
		else
			str_addn(uri, p, 1);
	}
}

/* Opens and reads a page: SQLite looks at the file only when it must. Returns SQLite's code; *ret
 * is set in either case, for its message. */
static int try_open(sqlite3 **ret, const char *name, int flags)
{
	int rc = sqlite3_open_v2(name, ret, flags, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_timeout(*ret, BUSY_TIMEOUT_MS);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(*ret, "SELECT count(*) FROM sqlite_schema", NULL, NULL, NULL);
	return rc;
}

static int sqlite_error(sqlite3 *db, int rc, const char *path, struct err *err)
{
	const char *text = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);

	if (rc == SQLITE_NOTADB)
		return err_set(err, -EINVAL, "%s is not a database: it is damaged or not ours",
			       path);
	return err_set(err, rc == SQLITE_NOMEM ? -ENOMEM : -EIO, "cannot read %s: %s", path, text);
}

static bool has_log(const char *db_path)
{
	for (size_t i = 0; i < ARRAY_SIZE(log_suffixes); i++) {
		_cleanup_str_ struct str path = {0};
		struct stat st;

		str_addf(&path, "%s%s", db_path, log_suffixes[i]);
		if (!path.failed && stat(path.data, &st) == 0 && st.st_size > 0)
			return true;
	}
	return false;
}

static int copy_bytes(int from, int to)
{
	char buf[65536];
	ssize_t n;

	while ((n = read(from, buf, sizeof(buf))) > 0) {
		for (ssize_t done = 0, w; done < n; done += w) {
			w = write(to, buf + done, (size_t)(n - done));
			if (w < 0)
				return -errno;
		}
	}
	return n < 0 ? -errno : 0;
}

/* A missing source is no error: of the two logs there is at most one. */
static int copy_file(const char *from_path, const char *to_path)
{
	_cleanup_close_ int from = open(from_path, O_RDONLY | O_CLOEXEC);
	_cleanup_close_ int to = -1;

	if (from < 0)
		return errno == ENOENT ? 0 : -errno;
	to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (to < 0)
		return -errno;
	return copy_bytes(from, to);
}

static int copy_database(struct db_copy *copy, const char *db_path, struct str *to_path,
			 struct err *err)
{
	const char *tmp = getenv("TMPDIR");
	char dir[sizeof(copy->dir)];
	int r = 0;

	if (snprintf(dir, sizeof(dir), "%s/analyzer-read-XXXXXX", tmp && *tmp ? tmp : "/tmp") >=
		    (int)sizeof(dir) ||
	    !mkdtemp(dir))
		return err_errno(err, -errno, "cannot make a directory for a copy of %s", db_path);
	memcpy(copy->dir, dir, sizeof(dir));
	str_addf(to_path, "%s/profile.db", dir);
	/* The log after the database: whatever is check-pointed in between is in both. */
	if (!to_path->failed)
		r = copy_file(db_path, to_path->data);
	for (size_t i = 0; r == 0 && i < ARRAY_SIZE(log_suffixes); i++) {
		_cleanup_str_ struct str from = {0}, to = {0};

		str_addf(&from, "%s%s", db_path, log_suffixes[i]);
		str_addf(&to, "%s%s", to_path->data, log_suffixes[i]);
		r = from.failed || to.failed ? -ENOMEM : copy_file(from.data, to.data);
	}
	if (to_path->failed)
		r = -ENOMEM;
	return r < 0 ? err_errno(err, r, "cannot copy %s to %s", db_path, dir) : 0;
}

void db_copy_done(struct db_copy *copy)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};

	if (!copy->dir[0])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		_cleanup_str_ struct str path = {0};

		str_addf(&path, "%s/profile.db%s", copy->dir, suffixes[i]);
		if (!path.failed)
			(void)unlink(path.data); /* most of them never existed */
	}
	(void)rmdir(copy->dir); /* a leftover in the temporary directory harms nobody */
	copy->dir[0] = '\0';
}

static int open_in_place(sqlite3 **ret, struct db_copy *copy, const char *path, struct err *err)
{
	_cleanup_str_ struct str other = {0};
	int rc = try_open(ret, path, SQLITE_OPEN_READONLY);
	int r;

	if (rc == SQLITE_OK)
		return 0;
	/* What a read-only directory answers: the log's index cannot be made, or a log that
	 * must be replayed was found; some network file systems cannot map the index. Everything
	 * else is a fault of the file itself. */
	if (rc != SQLITE_CANTOPEN && rc != SQLITE_READONLY && rc != SQLITE_IOERR)
		return sqlite_error(*ret, rc, path, err);
	(void)sqlite3_close(*ret);
	*ret = NULL;
	if (has_log(path)) {
		r = copy_database(copy, path, &other, err);
		if (r < 0)
			return r;
		rc = try_open(ret, other.data, SQLITE_OPEN_READWRITE);
	} else {
		add_uri_path(&other, path);
		str_add(&other, "?immutable=1");
		if (other.failed)
			return err_set(err, -ENOMEM, "no memory to open %s", path);
		rc = try_open(ret, other.data, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI);
	}
	return rc == SQLITE_OK ? 0 : sqlite_error(*ret, rc, path, err);
}

static int check_dir(const char *dir, const char *path, struct err *err)
{
	struct stat st;

	if (stat(dir, &st) < 0)
		return err_errno(err, -errno, "cannot open results directory '%s'", dir);
	if (!S_ISDIR(st.st_mode))
		return err_set(err, -ENOTDIR, "'%s' is not a results directory", dir);
	if (stat(path, &st) < 0 && errno == ENOENT)
		return err_set(err, -ENOENT,
			       "'%s' is not a results directory: it has no profile.db", dir);
	if (access(path, R_OK) < 0)
		return err_errno(err, -errno, "cannot read %s", path);
	return 0;
}

int db_open_readonly(sqlite3 **ret, struct db_copy *copy, const char *dir, struct err *err)
{
	_cleanup_str_ struct str path = {0};
	sqlite3 *db = NULL;
	int r;

	str_addf(&path, "%s/profile.db", dir);
	if (path.failed)
		return err_set(err, -ENOMEM, "no memory to open %s", dir);
	r = check_dir(dir, path.data, err);
	if (r == 0)
		r = open_in_place(&db, copy, path.data, err);
	if (r < 0) {
		(void)sqlite3_close(db); /* nothing was written */
		return r;
	}
	*ret = db;
	return 0;
}

bool reader_is_results_dir(const char *dir)
{
	_cleanup_str_ struct str path = {0};

	str_addf(&path, "%s/profile.db", dir);
	return !path.failed && access(path.data, F_OK) == 0;
}
