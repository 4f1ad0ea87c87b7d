#include "cli/progress.h"

#include "base/clock.h"
#include "base/fmt.h"

#include <errno.h>
#include <math.h>
#include <string.h>

int progress_init(struct progress_view *v, struct log *log, const char *when)
{
	*v = (struct progress_view){.log = log, .last_run = -1};
	if (strcmp(when, "line") == 0)
		v->mode = PROGRESS_LINE;
	else if (strcmp(when, "log") == 0)
		v->mode = PROGRESS_LOG;
	else if (strcmp(when, "none") == 0)
		v->mode = PROGRESS_NONE;
	else if (strcmp(when, "auto") != 0)
		return -EINVAL;
	else if (!isatty(STDERR_FILENO))
		v->mode = PROGRESS_PHASES;
	else
		v->mode = isatty(STDOUT_FILENO) ? PROGRESS_LOG : PROGRESS_LINE;
	if (log->level < LOG_NOTE)
		v->mode = PROGRESS_NONE;
	return 0;
}

/* "[00:42] squeezing   712M of 1.0G  limit 700M  majflt 120/s  psi full 0.4%", ≤ 79 columns. */
static void format(char *buf, size_t size, const struct progress *p)
{
	char clock[FMT_MAX], usage[FMT_MAX], peak[FMT_MAX], limit[FMT_MAX],
		rate[FMT_MAX] = "-", stall[FMT_MAX] = "-", which[48] = "";

	if (p->run_count > 1)
		(void)snprintf(which, sizeof(which), " %d/%d", p->run_index + 1, p->run_count);
	if (!isnan(p->done)) {
		(void)snprintf(buf, size, "[%s]%s %-10s %3.0f %% of the stacks",
			       fmt_clock(clock, p->elapsed_ns), which, p->phase, 100 * p->done);
		return;
	}
	if (!isnan(p->fault_rate))
		(void)snprintf(rate, sizeof(rate), "%.0f/s", p->fault_rate);
	if (!isnan(p->stall_full))
		(void)snprintf(stall, sizeof(stall), "%.1f%%", p->stall_full * 100);
	(void)snprintf(buf, size, "[%s]%s %-10s %5s of %5s  limit %4s  majflt %s  psi full %s",
		       fmt_clock(clock, p->elapsed_ns), which, p->phase,
		       p->usage_bytes < 0 ? "-" : fmt_bytes_short(usage, p->usage_bytes),
		       p->peak_bytes < 0 ? "-" : fmt_bytes_short(peak, p->peak_bytes),
		       fmt_bytes_short(limit, p->limit_bytes), rate, stall);
}

static bool is_due(struct progress_view *v, const struct progress *p, int64_t now)
{
	bool is_new = v->last_run != p->run_index || strcmp(v->last_phase, p->phase) != 0;
	int64_t gap = v->mode == PROGRESS_LINE ? NS_PER_S / 5 : 10 * NS_PER_S;

	if (v->mode == PROGRESS_NONE)
		return false;
	return is_new || (v->mode != PROGRESS_PHASES && now - v->last_ns >= gap);
}

void progress_show(void *ctx, const struct progress *p)
{
	struct progress_view *v = ctx;
	int64_t now = clock_mono_ns();
	char text[128], line[160];

	if (!is_due(v, p, now))
		return;
	v->last_ns = now;
	v->last_run = p->run_index;
	(void)snprintf(v->last_phase, sizeof(v->last_phase), "%s", p->phase);
	format(text, sizeof(text), p);
	if (v->mode != PROGRESS_LINE) {
		log_status(v->log, text);
		return;
	}
	(void)snprintf(line, sizeof(line), "\r\033[K%.79s", text);
	(void)!write(STDERR_FILENO, line, strlen(line));
	v->log->has_status_line = true;
}
