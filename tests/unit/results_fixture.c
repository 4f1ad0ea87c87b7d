#include "results_fixture.h"

#include "store/schema.h"

#include <dirent.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

void fixture_open(struct fixture *f, const char *name)
{
	char path[160];
	struct err err;

	memset(f, 0, sizeof(*f));
	(void)snprintf(f->top, sizeof(f->top), "/tmp/analyzer-test-XXXXXX");
	assert_non_null(mkdtemp(f->top));
	/* Others may look in: tests read as another user. */
	assert_int_equal(chmod(f->top, 0755), 0);
	(void)snprintf(f->dir, sizeof(f->dir), "%s/%s", f->top, name);
	assert_int_equal(mkdir(f->dir, 0755), 0);
	(void)snprintf(path, sizeof(path), "%s/profile.db", f->dir);
	assert_int_equal(sqlite3_open(path, &f->db), SQLITE_OK);
	if (schema_create(f->db, &err) < 0)
		fail_msg("%s", err.msg);
}

void fixture_sql(struct fixture *f, const char *sql)
{
	char *msg = NULL;

	if (sqlite3_exec(f->db, sql, NULL, NULL, &msg) != SQLITE_OK)
		fail_msg("%s: %s", msg, sql);
}

void fixture_finish(struct fixture *f)
{
	assert_int_equal(sqlite3_close(f->db), SQLITE_OK);
	f->db = NULL;
}

void fixture_reopen(struct fixture *f)
{
	char path[160];

	(void)snprintf(path, sizeof(path), "%s/profile.db", f->dir);
	assert_null(f->db);
	assert_int_equal(sqlite3_open(path, &f->db), SQLITE_OK);
}

static void remove_files(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (e->d_name[0] != '.')
			(void)unlinkat(dirfd(dir), e->d_name, 0); /* rmdir tells */
	}
	(void)closedir(dir);
	assert_int_equal(rmdir(path), 0);
}

void fixture_remove(struct fixture *f)
{
	if (f->db)
		fixture_finish(f);
	(void)chmod(f->dir, 0755); /* a test may have made it read-only */
	remove_files(f->dir);
	assert_int_equal(rmdir(f->top), 0);
}

static char *read_all(const char *path, size_t *ret_len)
{
	_cleanup_fclose_ FILE *in = fopen(path, "r");
	char *data = NULL;
	size_t len = 0;

	if (!in)
		return NULL;
	for (;;) {
		char *grown = realloc(data, len + 65536);
		size_t n;

		assert_non_null(grown);
		data = grown;
		n = fread(data + len, 1, 65535, in);
		len += n;
		if (n == 0)
			break;
	}
	data[len] = '\0';
	*ret_len = len;
	return data;
}

void assert_golden(const char *name, const char *data, size_t len)
{
	_cleanup_free_ char *expected = NULL;
	const char *update = getenv("UPDATE_GOLDEN");
	size_t expected_len = 0;
	char path[160];

	(void)snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (update && *update) {
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		assert_int_equal(fwrite(data, 1, len, f), len);
		assert_int_equal(fclose(f), 0);
		return;
	}
	expected = read_all(path, &expected_len);
	if (!expected)
		fail_msg("%s is missing (run from the top; UPDATE_GOLDEN=1 writes it)", path);
	assert_string_equal(data, expected);
	assert_int_equal(len, expected_len);
}

void fixture_load(struct report *r, const struct fixture *f)
{
	struct err err;

	if (report_load(r, f->dir, &err) < 0)
		fail_msg("%s", err.msg);
}

void assert_fig(const struct run_view *v, enum figure_id id, double expected)
{
	const struct figure *f = &v->fig[id];

	if (f->why)
		fail_msg("%s: n/a (%s), not %.12g", figure_infos[id].name, f->why, expected);
	if (!(fabs(f->v - expected) <= 1e-9 * fmax(1, fabs(expected))))
		fail_msg("%s is %.12g, not %.12g", figure_infos[id].name, f->v, expected);
}

void assert_missing(const struct run_view *v, enum figure_id id, const char *why)
{
	if (!v->fig[id].why)
		fail_msg("%s is %g, not missing", figure_infos[id].name, v->fig[id].v);
	assert_string_equal(v->fig[id].why, why);
}

/* A line wider than a terminal is a defect of every text. */
void assert_layout(const struct str *text)
{
	size_t width = 0;

	for (size_t i = 0; i < text->len; i++) {
		unsigned char c = (unsigned char)text->data[i];

		width = c == '\n' ? 0 : width + 1;
		if (width > 79 || (c < 0x20 && c != '\n') || c >= 0x7f)
			fail_msg("at byte %zu: %.80s", i, text->data + (i > 60 ? i - 60 : 0));
		if (c == '\n' && i > 0 && text->data[i - 1] == ' ')
			fail_msg("blank at the end of a line at byte %zu", i);
	}
}

static void assert_json_keys(const struct str *json)
{
	static const char *const keys[] = {"schema",   "session", "runs",
					   "findings", "losses",  "warnings"};
	struct json_object *o = json_tokener_parse(json->data);
	size_t n = 0;

	assert_non_null(o);
	json_object_object_foreach(o, key, v)
	{
		assert_non_null(v);
		assert_true(n < ARRAY_SIZE(keys));
		assert_string_equal(key, keys[n++]);
	}
	assert_int_equal(n, ARRAY_SIZE(keys));
	(void)json_object_put(o);
}

/* With the directory named as a user in its parent would: the name of the parent is random. */
void fixture_report(const struct fixture *f, struct str *text, struct str *json)
{
	_cleanup_close_ int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct err err;

	assert_true(here >= 0);
	assert_int_equal(chdir(f->top), 0);
	if (report_build(strrchr(f->dir, '/') + 1, text, json, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(fchdir(here), 0);
	assert_layout(text);
	assert_json_keys(json);
}

size_t count_lines(const struct str *text)
{
	size_t n = 0;

	for (size_t i = 0; i < text->len; i++)
		n += text->data[i] == '\n';
	return n;
}

/* Wherever lines were wrapped. */
static bool has(const struct str *text, const char *part)
{
	for (const char *p = text->data; *p; p++) {
		const char *a = p, *b = part;

		/* Any blanks are a blank; a newline in `part` is one in the text. */
		while (*b && (*a == *b || (*b == ' ' && *a == '\n'))) {
			a += *b == ' ' ? strspn(a, " \n") : 1;
			b++;
			if (b[-1] == '\n' && *b != ' ')
				a += strspn(a, " ");
		}
		if (!*b)
			return true;
	}
	return false;
}

void assert_has(const struct str *text, const char *part)
{
	if (!has(text, part))
		fail_msg("\"%s\" is not in:\n%s", part, text->data);
}

void assert_has_not(const struct str *text, const char *part)
{
	if (has(text, part))
		fail_msg("\"%s\" is in:\n%s", part, text->data);
}

/* Both forms against tests/golden/NAME.txt and NAME.json; nobody reads a long text. */
void assert_report(const struct fixture *f, const char *name, size_t max_lines)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	char file[64];

	fixture_report(f, &text, &json);
	if (count_lines(&text) > max_lines)
		fail_msg("%s.txt: %zu lines, at most %zu are read", name, count_lines(&text),
			 max_lines);
	(void)snprintf(file, sizeof(file), "%s.txt", name);
	assert_golden(file, text.data, text.len);
	(void)snprintf(file, sizeof(file), "%s.json", name);
	assert_golden(file, json.data, json.len);
}

struct json_object *json_at(struct json_object *o, const char *key)
{
	struct json_object *v = NULL;

	if (!json_object_object_get_ex(o, key, &v))
		fail_msg("no key %s", key);
	return v;
}

struct json_object *json_nth(struct json_object *o, size_t i)
{
	assert_true(i < json_object_array_length(o));
	return json_object_array_get_idx(o, i);
}

void assert_json_int(struct json_object *o, const char *key, int64_t expected)
{
	struct json_object *v = json_at(o, key);

	assert_non_null(v);
	if (json_object_get_int64(v) != expected)
		fail_msg("%s is %s", key, json_object_get_string(v));
}

void assert_json_text(struct json_object *o, const char *key, const char *expected)
{
	assert_non_null(json_at(o, key));
	assert_string_equal(json_object_get_string(json_at(o, key)), expected);
}

struct json_object *fixture_json(const struct fixture *f)
{
	_cleanup_str_ struct str text = {0}, json = {0};
	struct json_object *o;

	fixture_report(f, &text, &json);
	o = json_tokener_parse(json.data);
	assert_non_null(o);
	return o;
}

void assert_json_plain(struct json_object *o, const char *expected)
{
	assert_string_equal(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN), expected);
}
