/* The sampler: the files that metrics.def names, opened once and read in turn. */
#include "sampler/sampler.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "cgroup/zswap.h"
#include "sampler/input.h"

/* One input per file of metrics.def, and one per zram device: more than that are not read. */
#define MAX_INPUTS 128

struct sampler {
	struct input inputs[MAX_INPUTS];
	size_t n_inputs;
	int zswap_dirfd; /* debugfs' zswap/, or a negative errno */
	struct names names;
	char text[INPUT_TEXT_MAX];
};

/* Files that hold more than one number. The label is the prefix of keys that we do not know;
 * host-wide files have hundreds of keys that we do not want, cgroup.stat one per controller. */
static const struct source {
	const char *file;
	enum input_format format;
	const char *label;
	bool is_long;
} sources[] = {
	{"memory.stat", FORMAT_FLAT, "memory.stat", false},
	{"memory.events", FORMAT_FLAT, "memory.events", false},
	{"memory.events.local", FORMAT_FLAT, "memory.events.local", false},
	{"memory.swap.events", FORMAT_FLAT, "memory.swap.events", false},
	{"cpu.stat", FORMAT_FLAT, "cpu.stat", false},
	{"cgroup.stat", FORMAT_FLAT, NULL, false},
	{"io.stat", FORMAT_NESTED, "io.stat", false},
	{"memory.pressure", FORMAT_PSI, NULL, false},
	{"io.pressure", FORMAT_PSI, NULL, false},
	{"cpu.pressure", FORMAT_PSI, NULL, false},
	{"/proc/pressure/memory", FORMAT_PSI, NULL, false},
	{"/proc/pressure/io", FORMAT_PSI, NULL, false},
	{"/proc/pressure/cpu", FORMAT_PSI, NULL, false},
	{"/proc/meminfo", FORMAT_FLAT, NULL, false},
	{"/proc/vmstat", FORMAT_FLAT, NULL, true},
};

static const struct source *find_source(const char *file)
{
	static const struct source one_value = {NULL, FORMAT_VALUE, NULL, false};

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		if (strcmp(sources[i].file, file) == 0)
			return &sources[i];
	}
	return &one_value;
}

/* The places that files are opened in while the sampler is made. */
struct places {
	const struct root *root;
	int group_dirfd;
	int zswap_dirfd;
};

/* Learns from a first read and keeps the input; a file that cannot be read is not had. */
static int add_input(struct sampler *s, struct input *in, struct err *err)
{
	ssize_t n;
	int r;

	if (s->n_inputs == MAX_INPUTS) {
		input_close(in);
		return 0;
	}
	n = input_read(in, s->text);
	if (n == -ESPIPE && in->dirfd >= 0) {
		close_fd(&in->fd);
		n = input_read(in, s->text);
	}
	/* EOPNOTSUPP: PSI is off. ENODATA, EINVAL and others: nothing there for us either. */
	if (n < 0) {
		input_close(in);
		if (n == -ENODEV && in->is_group)
			return err_set(err, -ENODEV, "the group has been removed");
		return 0;
	}
	r = input_learn(in, &s->names, s->text, n);
	if (r < 0) {
		input_close(in);
		return err_errno(err, r, "cannot prepare the sampler");
	}
	s->inputs[s->n_inputs++] = *in;
	return 0;
}

/*
 * A descriptor of memory.peak of our own: since 6.12 a write to it starts a new watermark that
 * only this descriptor sees. Older kernels refuse the write. Not tried on anything but a real
 * cgroup: a plain file of a fake tree would be overwritten.
 */
static int open_peak_interval(int group_dirfd)
{
	_cleanup_close_ int fd = -1;
	struct statfs fs;

	fd = openat(group_dirfd, "memory.peak", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstatfs(fd, &fs) < 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
		return -EOPNOTSUPP;
	if (pwrite(fd, "reset\n", 6, 0) < 0)
		return -errno;
	return TAKE_FD(fd);
}

/* Opens the file of a metric into in->fd; a negative errno: not had. */
static int open_file(const struct places *at, const struct metric *m, struct input *in)
{
	static const char zswap[] = ZSWAP_DEBUGFS "/";

	in->dirfd = -1;
	if (m->scope == METRIC_HOST && strncmp(m->file, zswap, sizeof(zswap) - 1) == 0) {
		if (at->zswap_dirfd < 0)
			return at->zswap_dirfd;
		in->dirfd = at->zswap_dirfd;
		in->file_name = m->file + sizeof(zswap) - 1;
		in->fd = openat(in->dirfd, in->file_name, O_RDONLY | O_CLOEXEC);
		return in->fd < 0 ? -errno : 0;
	}
	if (m->scope == METRIC_HOST)
		in->fd = root_openat(at->root, m->file, O_RDONLY);
	else if (at->group_dirfd < 0)
		in->fd = -ENOENT;
	else if (strcmp(m->key, "interval") == 0)
		in->fd = open_peak_interval(at->group_dirfd);
	else
		in->fd = openat(at->group_dirfd, m->file, O_RDONLY | O_CLOEXEC);
	return MIN(in->fd, 0);
}

static bool is_zram_name(const char *name)
{
	if (strncmp(name, "zram", 4) != 0 || !name[4])
		return false;
	for (name += 4; *name; name++) {
		if (!isdigit((unsigned char)*name))
			return false;
	}
	return true;
}

/* Every device's mm_stat; devices made later are not seen. */
static int add_zram(struct sampler *s, const struct root *root, int first, int n_rows,
		    struct err *err)
{
	int fd = root_openat(root, "/sys/block", O_RDONLY | O_DIRECTORY), r = 0;
	const struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return 0;
	dir = fdopendir(fd);
	if (!dir) {
		close_fd(&fd);
		return 0;
	}
	while (r == 0 && (e = readdir(dir))) {
		struct input in = {
			.dirfd = -1, .format = FORMAT_COLUMN, .first = first, .n_rows = n_rows};
		char file[sizeof(e->d_name) + sizeof("/mm_stat")];
		size_t len;

		if (!is_zram_name(e->d_name))
			continue;
		len = snprintf(file, sizeof(file), "%s/mm_stat", e->d_name);
		in.fd = openat(dirfd(dir), file, O_RDONLY | O_CLOEXEC);
		if (in.fd < 0)
			continue;
		if (len + 1 <= sizeof(s->names.text) - s->names.used) {
			in.label = memcpy(s->names.text + s->names.used, file, len + 1);
			s->names.used += len + 1;
		}
		r = in.label ? add_input(s, &in, err) : 0;
	}
	(void)closedir(dir); /* only read from */
	return r;
}

/* The number of rows from i on that one input serves. */
static int count_rows(int i)
{
	int n = 1;

	if (find_source(metrics[i].file)->format == FORMAT_VALUE && !strchr(metrics[i].file, '*'))
		return 1;
	while (i + n < METRIC_COUNT && strcmp(metrics[i + n].file, metrics[i].file) == 0)
		n++;
	return n;
}

static int open_inputs(struct sampler *s, const struct places *at, struct err *err)
{
	int n, r = 0;

	for (int i = 0; i < METRIC_COUNT && r == 0; i += n) {
		const struct metric *m = &metrics[i];
		const struct source *source = find_source(m->file);
		struct input in = {
			.format = source->format,
			.first = i,
			.label = source->label,
			.is_group = m->scope == METRIC_GROUP,
			.is_long = source->is_long,
			.is_reset = strcmp(m->key, "interval") == 0,
		};

		n = in.n_rows = count_rows(i);
		if (strchr(m->file, '*')) {
			r = add_zram(s, at->root, i, n, err);
			continue;
		}
		if (open_file(at, m, &in) == 0)
			r = add_input(s, &in, err);
	}
	return r;
}

int sampler_new(struct sampler **ret, const struct root *root, int group_dirfd, struct err *err)
{
	struct sampler *s = calloc(1, sizeof(*s));
	struct places at = {root, group_dirfd, -1};
	int r;

	if (!s)
		return err_errno(err, -ENOMEM, "cannot prepare the sampler");
	s->zswap_dirfd = at.zswap_dirfd = zswap_debugfs_open(root);
	r = open_inputs(s, &at, err);
	if (r < 0) {
		sampler_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

void sampler_free(struct sampler *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_inputs; i++)
		input_close(&s->inputs[i]);
	close_fd(&s->zswap_dirfd);
	free(s);
}

int sampler_take(struct sampler *s, struct sample *ret, struct err *err)
{
	bool is_gone = false;

	memset(ret->v, 0, sizeof(ret->v));
	memset(ret->has, 0, sizeof(ret->has));
	ret->n_extra = 0;
	for (size_t i = 0; i < s->names.n_extra; i++)
		s->names.extra_pos[i] = -1;
	for (size_t i = 0; i < s->n_inputs; i++) {
		struct input *in = &s->inputs[i];
		ssize_t n = input_read(in, s->text);

		if (n < 0) {
			is_gone |= n == -ENODEV && in->is_group;
			continue;
		}
		input_take(in, &s->names, s->text, n, ret);
		if (in->is_reset)
			(void)!pwrite(in->fd, "reset\n", 6, 0); /* fails: a longer interval */
	}
	return is_gone ? err_set(err, -ENODEV, "the group has been removed") : 0;
}

size_t sampler_file_count(const struct sampler *s)
{
	return s->n_inputs;
}

size_t sampler_lost_keys(const struct sampler *s)
{
	return s->names.n_lost;
}
