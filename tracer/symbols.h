/*
 * Names for places in the code: functions with what was inlined into them, source lines, by
 * libdw from the file or its separate debug file (/usr/lib/debug/.build-id, .gnu_debuglink), else
 * the nearest symbol of .symtab or .dynsym. C++ and Rust names are demangled.
 *
 * A file is opened by path and used only when its build id (or, without one, size and
 * modification time) is the one that was traced: a replaced file gives no names rather than wrong
 * ones.
 *
 * Life: symbols_new → symbols_module → symbols_lookup … → symbols_free. From one thread. Strings
 * that come out live until symbols_free.
 */
#pragma once

#include "base/err.h"
#include "model/site.h"

struct symbols;
struct symbols_module;

int symbols_new(struct symbols **ret, struct err *err);
void symbols_free(struct symbols *s); /* NULL allowed */

/* What was traced: the file's identity when it was mapped. fd ≥ 0: the file itself, borrowed for
 * the call, believed without a check; else path is opened and compared. NULL: no names for it,
 * *ret_why says why in a sentence's part ("replaced since it was traced"). */
struct symbols_module *symbols_module(struct symbols *s, const struct module *m, int fd,
				      const char **ret_why);

/* Frames of one place, innermost inlined first, at most max; their number, ≥ 1: with nothing
 * known one frame without names. offset as in struct frame_ref. */
int symbols_lookup(struct symbols *s, struct symbols_module *m, struct frame_ref ref,
		   struct frame *ret, int max);
