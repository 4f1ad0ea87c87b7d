/*
 * Messages to people: levels, one write(2) per line, to a terminal and to the results'
 * analyzer.log. An object, not a global: two sessions can live in one process. Libraries below
 * runner/ do not log, they return errors.
 *
 * Life: log_init → log_… from one thread → log_done. The file is added once the results
 * directory exists and keeps lines from LOG_INFO up whatever the terminal shows.
 */
#pragma once

#include "base/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_NOTE, LOG_INFO, LOG_DEBUG };

struct log {
	enum log_level level; /* the least urgent level that the terminal shows */
	int term_fd;          /* borrowed, usually 2 */
	int file_fd;          /* owned, -1 = none yet */
	/* A status line on the terminal is wiped before a message is written over it. */
	bool has_status_line;
};

void log_init(struct log *log, enum log_level level);
void log_done(struct log *log);

/* From now on lines go to take_fd too (moved in). */
void log_set_file(struct log *log, int take_fd);

/* "analyzer: <text>" (warnings and errors: "analyzer: warning: <text>"); control characters
 * become '?'. LOG_NOTE is what a run says by default, LOG_INFO needs -v. */
void log_msg(struct log *log, enum log_level level, const char *fmt, ...) _printf_(3, 4);

/* A line of its own without prefix, to the terminal only: the state of what goes on. */
void log_status(struct log *log, const char *text);

/* The error's message, and its hint on a line of its own. */
void log_err(struct log *log, enum log_level level, const struct err *err);
