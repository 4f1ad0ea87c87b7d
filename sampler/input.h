/*
 * One open file of a sample: how it is written, which of its keys go where. Internal to sampler/.
 *
 * Life: opened by the sampler → input_learn (once, may allocate) → input_read and input_take per
 * sample (never allocate) → input_close. Keys come in the same order as last time nearly always, so
 * each is compared with its expected successor first and looked up only when that fails. Keys that
 * appear later are learnt then, out of memory set aside.
 */
#pragma once

#include "base/base.h"
#include "model/sample.h"

/* Large enough for every file read: memory.stat is below 4 KiB, /proc/vmstat below 8. */
#define INPUT_TEXT_MAX (64 * 1024)
#define INPUT_NAMES_MAX (64 * 1024)

/* Where a value goes: a metric, an extra (TARGET_EXTRA + its index), or nowhere. */
#define TARGET_NONE (-1)
#define TARGET_EXTRA METRIC_COUNT

enum input_format {
	FORMAT_VALUE,  /* one number */
	FORMAT_FLAT,   /* "key value" lines */
	FORMAT_NESTED, /* "device key=value …" lines, summed over the devices */
	FORMAT_PSI,    /* "some … total=N" lines */
	FORMAT_COLUMN, /* numbers in a fixed order, summed over the files of that kind */
};

/* Names of keys and extras: memory set aside when the sampler is made, shared by its inputs. */
struct names {
	char text[INPUT_NAMES_MAX];
	size_t used;
	const char *extra[SAMPLE_EXTRA_MAX]; /* "memory.stat:some_key" */
	int extra_pos[SAMPLE_EXTRA_MAX];     /* in the sample being taken; see input.c */
	size_t n_extra;
	size_t n_lost; /* keys that found no room any more; at least that many */
};

struct input_key {
	const char *name;
	int len;
	int target;
};

struct input {
	int fd;    /* owned; -1: opened anew for each sample, see input_read */
	int dirfd; /* borrowed; where file_name is opened anew */
	const char *file_name;
	enum input_format format;
	int first, n_rows;      /* the file's rows in metrics[] */
	const char *label;      /* prefix of extras: "memory.stat", "zram0/mm_stat"; NULL = none */
	bool is_group;          /* ENODEV means that the group is gone */
	bool is_long;           /* one read may return a part only */
	bool is_reset;          /* writing to it starts a new interval (memory.peak) */
	struct input_key *keys; /* owned */
	size_t n_keys, max_keys;
	bool has_overflown; /* a key found no room */
};

/*
 * Reads the file whole into buf. Returns its length or a negative errno. A file of debugfs can be
 * read only once per descriptor: it answers pread with ESPIPE and cannot be rewound. For those fd
 * is -1, and they are opened anew in dirfd.
 */
ssize_t input_read(const struct input *in, char buf[static INPUT_TEXT_MAX]);

/* Learns the keys of a first text. -ENOMEM. */
int input_learn(struct input *in, struct names *names, const char *text, size_t len);

/* Puts the values of the text into the sample. */
void input_take(struct input *in, struct names *names, const char *text, size_t len,
		struct sample *ret);

void input_close(struct input *in);
