/*
 * zswap's settings (/sys/module/zswap/parameters), its counters (debugfs) and the compressors
 * that it could use. They belong to the whole host.
 *
 * The kernel checks a compressor's name only once zswap has been on: before, any string is
 * accepted and falls back to the default later. A setting is therefore read back, and while zswap
 * is off only names that the kernel's crypto table has are accepted.
 */
#pragma once

#include "base/root.h"

#define ZSWAP_PARAMETERS "/sys/module/zswap/parameters"
#define ZSWAP_DEBUGFS "/sys/kernel/debug/zswap"
#define ZSWAP_VALUE_MAX 64
#define ZSWAP_COMPRESSORS_MAX 32

/* The kernel has zswap. */
bool zswap_exists(const struct root *root);

/* Reads a parameter ("enabled" → "N"). Returns its length or a negative errno, no message. */
ssize_t zswap_get(const struct root *root, const char *name, char buf[static ZSWAP_VALUE_MAX]);

/* Whether it takes new pages: 1, 0, or a negative errno. */
int zswap_is_enabled(const struct root *root);

/* The directory of the counters, or a negative errno. -ENOENT also until zswap is first on. */
int zswap_debugfs_open(const struct root *root);

struct zswap_compressor {
	char name[ZSWAP_VALUE_MAX];
	bool is_loaded; /* in the kernel's crypto table now; else a module may bring it on demand */
};

/* Those loaded, then the well-known others. Returns their number or a negative errno. */
int zswap_compressors(const struct root *root,
		      struct zswap_compressor ret[static ZSWAP_COMPRESSORS_MAX], struct err *err);

/*
 * Checks the name, writes the compressor and reads it back; writes nothing when it is set already.
 * -ENOENT: no zswap, or no such compressor (the message lists those there are); -EACCES, -EPERM:
 * not permitted; -EINVAL: another value took.
 */
int zswap_set_compressor(const struct root *root, const char *name, struct err *err);

/* The same without a check of the name while zswap is off: to put back what was there. */
int zswap_write_compressor(const struct root *root, const char *name, struct err *err);
