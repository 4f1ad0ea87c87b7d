#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <string.h>

static const char *const level_names[] = {"error", "warning", "note", "info", "debug"};

void log_init(struct log *log, enum log_level level)
{
	*log = (struct log){.level = level, .term_fd = STDERR_FILENO, .file_fd = -1};
}

void log_done(struct log *log)
{
	close_fd(&log->file_fd);
}

void log_set_file(struct log *log, int take_fd)
{
	close_fd(&log->file_fd);
	log->file_fd = take_fd;
}

/* What a workload's name or a kernel file carries must not move the cursor of a terminal. */
static void sanitise(char *s)
{
	for (; *s; s++) {
		if ((unsigned char)*s < ' ' || *s == 0x7f)
			*s = '?';
	}
}

static void write_line(int fd, const char *head, const char *text)
{
	char line[1200];
	int n = snprintf(line, sizeof(line), "%s%s\n", head, text);

	if (n >= (int)sizeof(line)) {
		n = sizeof(line) - 1;
		line[n - 1] = '\n';
	}
	/* A closed terminal or a full disk must not stop a run: there is nobody left to tell. */
	if (write(fd, line, n) < 0)
		return;
}

static void emit(struct log *log, enum log_level level, const char *lead, char *text)
{
	char head[96], stamp[CLOCK_ISO_MAX];

	sanitise(text);
	if (level <= log->level) {
		(void)snprintf(head, sizeof(head), "%s%s", log->has_status_line ? "\r\033[K" : "",
			       lead);
		write_line(log->term_fd, head, text);
		log->has_status_line = false;
	}
	if (log->file_fd >= 0 && level <= MAX(log->level, LOG_INFO)) {
		clock_iso_utc(stamp);
		(void)snprintf(head, sizeof(head), "%s %s: ", stamp, level_names[level]);
		write_line(log->file_fd, head, text);
	}
}

void log_msg(struct log *log, enum log_level level, const char *fmt, ...)
{
	char text[1024];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	emit(log, level, level == LOG_WARN ? "analyzer: warning: " : "analyzer: ", text);
}

void log_status(struct log *log, const char *text)
{
	write_line(log->term_fd, log->has_status_line ? "\r\033[K" : "", text);
	log->has_status_line = false;
}

void log_err(struct log *log, enum log_level level, const struct err *err)
{
	char text[sizeof(err->msg)];

	memcpy(text, err->msg, sizeof(text));
	emit(log, level, level == LOG_WARN ? "analyzer: warning: " : "analyzer: ", text);
	if (err->hint[0]) {
		memcpy(text, err->hint, sizeof(text));
		emit(log, level, "  ", text);
	}
}
