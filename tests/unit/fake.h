/*
 * A fake system root in a temporary directory: plain files where the kernel's would be.
 *
 * fake_new → fake_file … → use fake_root() → fake_free, which removes it all. Any failure ends
 * the test program: a test without its fixture proves nothing.
 */
#pragma once

#include "base/root.h"

struct fake;

struct fake *fake_new(void);
void fake_free(struct fake *f);

/* The root handle; borrowed. */
const struct root *fake_root(const struct fake *f);

/* The temporary directory's path; borrowed. */
const char *fake_path(const struct fake *f);

/* Writes the file whole ("/proc/vmstat"), its directories made as needed; again = replaced. */
void fake_file(struct fake *f, const char *path, const char *text);
void fake_remove(struct fake *f, const char *path);
void fake_dir(struct fake *f, const char *path);

/* Opens a directory in it; the caller closes. */
int fake_opendir(struct fake *f, const char *path);
