/* One open file of a sample: reading it, learning its keys, taking its values. */
#include "sampler/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cgroup/parse.h"

/* Room for keys that appear while we run (a controller enabled, a device added). */
#define SPARE_KEYS 64

/* extra_pos: not in this sample yet, or lost to an overflow of its sum. */
#define POS_NONE (-1)
#define POS_LOST (-2)

/* The value of a debugfs file, which always fits one read. */
static ssize_t read_once(const struct input *in, char *buf)
{
	_cleanup_close_ int fd = openat(in->dirfd, in->file_name, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, INPUT_TEXT_MAX);
	return n < 0 ? -errno : n;
}

ssize_t input_read(const struct input *in, char buf[static INPUT_TEXT_MAX])
{
	size_t n = 0;

	if (in->fd < 0)
		return read_once(in, buf);
	for (;;) {
		ssize_t got = pread(in->fd, buf + n, INPUT_TEXT_MAX - n, n);

		if (got < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		n += got;
		if (n == INPUT_TEXT_MAX) {
			/* The last line may be cut, and half a number is a wrong number. */
			const char *nl = memrchr(buf, '\n', n);

			return nl ? nl + 1 - buf : 0;
		}
		/* Most files answer whole; a second read only to hear "end" is half the cost. */
		if (got == 0 || (!in->is_long && buf[n - 1] == '\n'))
			return n;
	}
}

/* Copies "<label>:<key>" (label NULL: just the key). NULL when the memory set aside is used up. */
static const char *keep_name(struct names *names, const char *label, const char *key, size_t len)
{
	size_t label_len = label ? strlen(label) + 1 : 0;
	char *p = names->text + names->used;

	if (label_len + len + 1 > sizeof(names->text) - names->used)
		return NULL;
	if (label) {
		memcpy(p, label, label_len - 1);
		p[label_len - 1] = ':';
	}
	memcpy(p + label_len, key, len);
	p[label_len + len] = '\0';
	names->used += label_len + len + 1;
	return p;
}

static int new_extra(struct names *names, const char *label, const char *key, size_t len,
		     const char **ret_name)
{
	const char *name;

	if (names->n_extra == SAMPLE_EXTRA_MAX)
		return TARGET_NONE;
	name = keep_name(names, label, key, len);
	if (!name)
		return TARGET_NONE;
	*ret_name = name + strlen(label) + 1;
	names->extra[names->n_extra] = name;
	names->extra_pos[names->n_extra] = POS_NONE;
	return TARGET_EXTRA + (int)names->n_extra++;
}

/* The row of metrics.def for a key of this file; PSI's "some" is its row "some total". */
static int find_metric(const struct input *in, const char *key, size_t len)
{
	const char *suffix = in->format == FORMAT_PSI ? " total" : "";

	for (int i = in->first; i < in->first + in->n_rows; i++) {
		const char *k = metrics[i].key;

		if (strncmp(k, key, len) == 0 && strcmp(k + len, suffix) == 0)
			return i;
	}
	return TARGET_NONE;
}

/* A key seen for the first time: its target, remembered while there is room. */
static int learn_key(struct input *in, struct names *names, const struct field *f)
{
	bool is_full = in->n_keys == in->max_keys, is_wanted = in->label && f->ok;
	int target = find_metric(in, f->key, f->key_len);
	const char *name = NULL;

	if (target == TARGET_NONE && is_wanted && !is_full)
		target = new_extra(names, in->label, f->key, f->key_len, &name);
	/* What is not remembered comes here with every sample: counted once for the file. */
	if (target == TARGET_NONE && is_wanted && !in->has_overflown)
		names->n_lost++;
	in->has_overflown |= is_full;
	if (is_full)
		return target;
	if (!name)
		name = keep_name(names, NULL, f->key, f->key_len);
	if (name)
		in->keys[in->n_keys++] = (struct input_key){name, (int)f->key_len, target};
	return target;
}

static bool is_key(const struct input_key *k, const struct field *f)
{
	return (size_t)k->len == f->key_len && memcmp(k->name, f->key, f->key_len) == 0;
}

/* Where the field goes. *at is the expected key's place and moves on. */
static int find_target(struct input *in, struct names *names, const struct field *f, size_t *at)
{
	const struct input_key *k = &in->keys[*at];

	if (*at >= in->n_keys || !is_key(k, f)) {
		for (k = in->keys; k < in->keys + in->n_keys && !is_key(k, f); k++)
			;
		if (k == in->keys + in->n_keys) {
			int target = learn_key(in, names, f);

			*at = in->n_keys;
			return target;
		}
	}
	*at = k - in->keys + 1;
	return k->target;
}

/* Adds to a metric; a part that is no number, or a sum over 2^63 - 1, loses all of it. */
static void add_metric(struct sample *ret, int id, const struct field *f)
{
	if (ret->v[id] < 0)
		return;
	ret->has[id] = f->ok && !__builtin_add_overflow(ret->v[id], f->value, &ret->v[id]);
	if (!ret->has[id])
		ret->v[id] = -1;
}

static void drop_extra(struct names *names, int i, struct sample *ret)
{
	size_t last = --ret->n_extra;

	ret->extra[names->extra_pos[i]] = ret->extra[last];
	for (size_t j = 0; j < names->n_extra; j++) {
		if (names->extra_pos[j] == (int)last)
			names->extra_pos[j] = names->extra_pos[i];
	}
	names->extra_pos[i] = POS_LOST;
}

static void add_extra(struct names *names, int i, const struct field *f, struct sample *ret)
{
	int *pos = &names->extra_pos[i];

	if (*pos == POS_LOST || !f->ok)
		return;
	if (*pos == POS_NONE) {
		*pos = (int)ret->n_extra++;
		ret->extra[*pos] = (struct sample_extra){names->extra[i], f->value};
	} else if (__builtin_add_overflow(ret->extra[*pos].value, f->value,
					  &ret->extra[*pos].value)) {
		drop_extra(names, i, ret);
	}
}

static void put(struct names *names, int target, const struct field *f, struct sample *ret)
{
	if (target >= TARGET_EXTRA)
		add_extra(names, target - TARGET_EXTRA, f, ret);
	else if (target != TARGET_NONE)
		add_metric(ret, target, f);
}

static void take_value(const struct input *in, const char *text, size_t len, struct sample *ret)
{
	if (parse_value(text, len, &ret->v[in->first]) == 0)
		ret->has[in->first] = true;
}

/* Columns have no names: the n-th is the file's n-th row, its extra was named when learnt. */
static void take_columns(const struct input *in, struct names *names, struct scan s,
			 struct sample *ret)
{
	struct field f;

	for (int i = 0; i < in->n_rows && scan_column(&s, &f); i++) {
		add_metric(ret, in->first + i, &f);
		if ((size_t)i < in->n_keys)
			put(names, in->keys[i].target, &f, ret);
	}
}

typedef bool scan_fn(struct scan *s, struct field *ret);

static scan_fn *scanner(enum input_format format)
{
	switch (format) {
	case FORMAT_NESTED:
		return scan_nested;
	case FORMAT_PSI:
		return scan_psi;
	default:
		return scan_flat;
	}
}

/*
 * Most lines of /proc/vmstat go nowhere: while the next one is the expected key of such a line, it
 * is jumped over without being taken apart.
 */
static void skip_ignored(const struct input *in, struct scan *s, size_t *at)
{
	const struct input_key *k = in->keys + *at, *end = in->keys + in->n_keys;

	for (; k < end && k->target == TARGET_NONE && s->end - s->p > k->len; k++) {
		const char *nl;

		if (memcmp(s->p, k->name, k->len) != 0 ||
		    (s->p[k->len] != ' ' && s->p[k->len] != ':'))
			break;
		nl = memchr(s->p, '\n', s->end - s->p);
		s->p = nl ? nl + 1 : s->end;
	}
	*at = k - in->keys;
}

void input_take(struct input *in, struct names *names, const char *text, size_t len,
		struct sample *ret)
{
	struct scan s = scan_text(text, len);
	scan_fn *next = scanner(in->format);
	struct field f;
	size_t at = 0;

	if (in->format == FORMAT_VALUE) {
		take_value(in, text, len, ret);
		return;
	}
	if (in->format == FORMAT_COLUMN) {
		take_columns(in, names, s, ret);
		return;
	}
	/* io.stat names a device after its first I/O only: until then the sum is a true 0. */
	if (in->format == FORMAT_NESTED)
		memset(ret->has + in->first, true, in->n_rows);
	for (;;) {
		if (in->format == FORMAT_FLAT)
			skip_ignored(in, &s, &at);
		if (!next(&s, &f))
			break;
		put(names, find_target(in, names, &f, &at), &f, ret);
	}
}

static int learn_columns(struct input *in, struct names *names)
{
	for (int i = 0; i < in->n_rows; i++) {
		const char *key = metrics[in->first + i].key, *name = NULL;
		int target = new_extra(names, in->label, key, strlen(key), &name);

		names->n_lost += target == TARGET_NONE;
		in->keys[in->n_keys++] = (struct input_key){name, 0, target};
	}
	return 0;
}

int input_learn(struct input *in, struct names *names, const char *text, size_t len)
{
	struct scan s = scan_text(text, len);
	scan_fn *next = scanner(in->format);
	struct field f;
	size_t at = 0;

	if (in->format == FORMAT_VALUE)
		return 0;
	in->max_keys = SPARE_KEYS;
	while (next(&s, &f))
		in->max_keys++;
	in->keys = calloc(in->max_keys, sizeof(*in->keys));
	if (!in->keys)
		return -ENOMEM;
	if (in->format == FORMAT_COLUMN)
		return learn_columns(in, names);
	s = scan_text(text, len);
	while (next(&s, &f))
		(void)find_target(in, names, &f, &at);
	return 0;
}

void input_close(struct input *in)
{
	close_fd(&in->fd);
	free(in->keys);
	in->keys = NULL;
}
