/*
 * What this machine can do, found by trying: files read, rights asked for, never a kernel version
 * compared. Nothing is changed, except that root may make and at once remove one empty group when
 * no other group shows the memory controller's files.
 *
 * features_probe fills a value with no resources behind it, works without rights (and says what
 * root would add), and takes a few milliseconds. The strings are English sentences for `analyzer
 * check` and for the results' environment.
 */
#pragma once

#include "base/root.h"
#include "base/str.h"

enum feature_state {
	FEATURE_NO,
	FEATURE_YES,
	FEATURE_WARN,    /* absent or off, and a run goes on with less */
	FEATURE_UNKNOWN, /* could not be tried; detail says why */
};

/* What it is for. Without a needed one nothing can be squeezed. */
enum feature_group { FEATURE_NEEDED, FEATURE_SQUEEZING, FEATURE_OBSERVING };

enum feature_id {
	FEATURE_CGROUP2,
	FEATURE_MEMORY,
	FEATURE_CREATE,
	FEATURE_MEMORY_MAX,
	FEATURE_MEMORY_HIGH,
	FEATURE_MEMORY_RECLAIM,
	FEATURE_SWAP,
	FEATURE_ZSWAP,
	FEATURE_MEMORY_PEAK,
	FEATURE_PSI,
	FEATURE_ZSWAP_COUNTERS,
	FEATURE_CLONE3,
	FEATURE_TRACER,
	FEATURE_COUNT
};

struct feature {
	const char *name;  /* for --feature and JSON: "memory.reclaim" */
	const char *title; /* for people */
	enum feature_group group;
	enum feature_state state;
	char detail[128];
	char why[128]; /* what is lost without it; "" = nothing to say */
	char fix[256]; /* what to type or do; "" = nothing to do */
};

struct features {
	struct feature f[FEATURE_COUNT];
};

/* cgpath: where cgroup v2 is mounted, NULL = from the mount table. */
void features_probe(struct features *ret, const struct root *root, const char *cgpath);

const char *feature_state_name(enum feature_state state); /* no, yes, warn, unknown */
const char *feature_group_name(enum feature_group group); /* needed, squeezing, observing */

/* The machine, for headings and for the environment. */
struct machine {
	char kernel[128]; /* release */
	int cpus;
	int64_t memory_bytes; /* -1 = not known */
};

void machine_probe(struct machine *ret, const struct root *root);

/*
 * The environment of a run, as one JSON object: kernel, page_size, cpus, memory_bytes, zswap
 * (parameters read back), swap_devices, thp, swappiness, page_cluster, features (name →
 * {ok, state, detail, why}). What the kernel does not tell is left out. Failure to allocate is
 * remembered in out->failed.
 */
void features_to_json(const struct root *root, struct str *out);
