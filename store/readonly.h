/*
 * Opening somebody's profile.db for reading without ever changing what is in its directory.
 *
 * A second writer could check-point and unlink a log that its recorder still writes to (locks do
 * not cross the border of a virtual machine), so the file is only opened read-only. Where SQLite
 * cannot do that - a log left by a killed recorder needs replaying but its directory may not be
 * written - a private copy is read instead.
 */
#pragma once

#include "base/err.h"

#include <sqlite3.h>

/* The private copy, if one was needed; dir "" = none. */
struct db_copy {
	char dir[256];
};

/* Opens DIR/profile.db; *copy is to be released after *ret is closed, also after a failure
 * (zero-initialise it). Errors: -ENOENT, -ENOTDIR, -EACCES, -EINVAL (no database), -EIO. */
int db_open_readonly(sqlite3 **ret, struct db_copy *copy, const char *dir, struct err *err);
void db_copy_done(struct db_copy *copy);
