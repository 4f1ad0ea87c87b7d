/* zswap's settings, counters and compressors; see zswap.h. */
#include "cgroup/zswap.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/str.h"
#include "cgroup/debugfs.h"

static void parameter_path(char *buf, size_t size, const char *name)
{
	(void)snprintf(buf, size, ZSWAP_PARAMETERS "/%s", name);
}

bool zswap_exists(const struct root *root)
{
	_cleanup_close_ int fd = root_openat(root, ZSWAP_PARAMETERS, O_PATH | O_DIRECTORY);

	return fd >= 0;
}

ssize_t zswap_get(const struct root *root, const char *name, char buf[static ZSWAP_VALUE_MAX])
{
	char path[256];

	parameter_path(path, sizeof(path), name);
	return root_read(root, path, buf, ZSWAP_VALUE_MAX);
}

int zswap_is_enabled(const struct root *root)
{
	char value[ZSWAP_VALUE_MAX];
	ssize_t r = zswap_get(root, "enabled", value);

	return r < 0 ? (int)r : value[0] == 'Y' || value[0] == '1';
}

int zswap_debugfs_open(const struct root *root)
{
	return debugfs_openat(root, "zswap", O_RDONLY | O_DIRECTORY);
}

static int find_compressor(const struct zswap_compressor *list, int n, const char *name)
{
	for (int i = 0; i < n; i++) {
		if (strcmp(list[i].name, name) == 0)
			return i;
	}
	return -1;
}

static int add_compressor(struct zswap_compressor *list, int n, const char *name, bool is_loaded)
{
	if (n == ZSWAP_COMPRESSORS_MAX || !*name || find_compressor(list, n, name) >= 0)
		return n;
	(void)snprintf(list[n].name, sizeof(list[n].name), "%s", name);
	list[n].is_loaded = is_loaded;
	return n + 1;
}

/* "name         : lzo-rle\n" → "lzo-rle", if the line is of that key; else NULL. */
static char *crypto_value(char *line, const char *key)
{
	size_t n = strlen(key);
	char *v;

	if (strncmp(line, key, n) != 0 || (line[n] != ' ' && line[n] != ':'))
		return NULL;
	v = strchr(line, ':');
	if (!v)
		return NULL;
	v += 1 + strspn(v + 1, " ");
	v[strcspn(v, "\n")] = '\0';
	return v;
}

/* /proc/crypto: blocks of "key : value" lines; "name" comes before "type". */
static int read_crypto(const struct root *root, struct zswap_compressor *ret, struct err *err)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	char name[ZSWAP_VALUE_MAX] = "";
	size_t size = 0;
	int n = 0, fd = root_openat(root, "/proc/crypto", O_RDONLY);

	if (fd < 0)
		return err_errno(err, fd, "cannot read %s/proc/crypto", root->prefix);
	f = fdopen(fd, "r");
	if (!f) {
		close_fd(&fd);
		return err_errno(err, -ENOMEM, "cannot read %s/proc/crypto", root->prefix);
	}
	while (getline(&line, &size, f) > 0) {
		static const char null[] = "compress_null"; /* copies; there to test the table */
		const char *v;

		if ((v = crypto_value(line, "name")))
			(void)snprintf(name, sizeof(name), "%s", v);
		v = crypto_value(line, "type");
		/* The three kinds that compressors have had: plain, synchronous, asynchronous. */
		if (v &&
		    (strcmp(v, "compression") == 0 || strcmp(v, "scomp") == 0 ||
		     strcmp(v, "acomp") == 0) &&
		    strcmp(name, null) != 0)
			n = add_compressor(ret, n, name, true);
	}
	return n;
}

int zswap_compressors(const struct root *root,
		      struct zswap_compressor ret[static ZSWAP_COMPRESSORS_MAX], struct err *err)
{
	static const char *const known[] = {"lzo",  "lzo-rle", "lz4", "lz4hc",
					    "zstd", "deflate", "842"};
	int n = read_crypto(root, ret, err);

	for (size_t i = 0; n >= 0 && i < ARRAY_SIZE(known); i++)
		n = add_compressor(ret, n, known[i], false);
	return n;
}

/* "no compressor 'x'; there are: …", as an error. */
static int no_compressor(const struct root *root, const char *name, int code, bool only_loaded,
			 struct err *err)
{
	struct zswap_compressor list[ZSWAP_COMPRESSORS_MAX];
	_cleanup_str_ struct str s = {0};
	struct err ignored;
	int n = zswap_compressors(root, list, &ignored);

	for (int i = 0; i < n; i++) {
		if (only_loaded && !list[i].is_loaded)
			continue;
		str_addf(&s, "%s%s%s", s.len ? ", " : "", list[i].name,
			 list[i].is_loaded ? "" : " (not loaded)");
	}
	return err_set(err, code, "zswap cannot use the compressor '%s'; there are: %s", name,
		       s.data ? s.data : "none");
}

static int check_name_while_off(const struct root *root, const char *name, struct err *err)
{
	struct zswap_compressor list[ZSWAP_COMPRESSORS_MAX];
	int n = zswap_compressors(root, list, err), i;

	if (n < 0)
		return n;
	i = find_compressor(list, n, name);
	if (i >= 0 && list[i].is_loaded)
		return 0;
	(void)no_compressor(root, name, -ENOENT, true, err);
	return err_hint(err, "zswap is off, and the kernel checks a name only when it is on; fix: "
			     "echo Y > " ZSWAP_PARAMETERS "/enabled");
}

int zswap_write_compressor(const struct root *root, const char *name, struct err *err)
{
	char path[256], now[ZSWAP_VALUE_MAX];
	ssize_t r = zswap_get(root, "compressor", now);

	parameter_path(path, sizeof(path), "compressor");
	if (r < 0)
		return err_errno(err, r, "cannot read %s%s", root->prefix, path);
	if (strcmp(now, name) == 0)
		return 0;
	r = root_write(root, path, name);
	if (r == -ENOENT || r == -EINVAL)
		return no_compressor(root, name, r, false, err);
	if (r < 0) {
		err_errno(err, r, "cannot write '%s' to %s%s", name, root->prefix, path);
		return r == -EACCES || r == -EPERM ? err_hint(err, "run it as root") : r;
	}
	r = zswap_get(root, "compressor", now);
	if (r < 0)
		return err_errno(err, r, "cannot read %s%s back", root->prefix, path);
	if (strcmp(now, name) != 0) {
		(void)no_compressor(root, name, -EINVAL, false, err);
		return err_wrap(err, "the kernel kept '%s'", now);
	}
	return 0;
}

int zswap_set_compressor(const struct root *root, const char *name, struct err *err)
{
	int r;

	if (!zswap_exists(root))
		return err_set(err, -ENOENT, "this kernel has no zswap (CONFIG_ZSWAP)");
	if (!*name || strlen(name) >= ZSWAP_VALUE_MAX || strpbrk(name, " \t\n/"))
		return no_compressor(root, name, -ENOENT, false, err);
	if (zswap_is_enabled(root) != 1) {
		r = check_name_while_off(root, name, err);
		if (r < 0)
			return r;
	}
	return zswap_write_compressor(root, name, err);
}
