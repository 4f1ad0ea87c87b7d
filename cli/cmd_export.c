/* `analyzer export FORMAT [DIR]`: what was recorded, for other programs. */
#include "cli/cli.h"
#include "cli/opt.h"
#include "squeezer/json_string.h"
#include "store/events.h"
#include "store/read.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define FORMATS "ndjson --events"

enum { OPT_EVENTS = 256 };

static const struct opt options[] = {
	{0, NULL, NULL, "Options"},
	{OPT_EVENTS, "events", NULL, "the allocation events"},
	{'o', "output", "FILE", "write into FILE, not to stdout"},
	{'h', "help", NULL, "this text"},
};

static int help(struct cli *cli)
{
	(void)fputs(
		"usage: analyzer export ndjson --events [DIR] [-o FILE]\n"
		"\n"
		"Writes the allocation events of the results directory DIR as JSON, an object\n"
		"a line; docs/formats.md describes the keys. Without DIR profile.latest or the\n"
		"newest profile.* in the current directory. It may still be being recorded.\n",
		stdout);
	opt_help(options, ARRAY_SIZE(options), stdout);
	return cli_print(cli, "");
}

struct exporter {
	FILE *out;
	char **names; /* of functions, by id; owned */
	size_t n_names;
};

static void export_done(struct exporter *x)
{
	for (size_t i = 0; i < x->n_names; i++)
		free(x->names[i]);
	free(x->names);
}

/* -- JSON ------------------------------------------------------------------------------------ */

/* A path may hold any byte, JSON only UTF-8. */
static void put_string(FILE *out, const char *s)
{
	const char *end = s + strlen(s);

	(void)putc('"', out);
	while (s < end) {
		size_t n = utf8_length(s, end);

		if (n == 0)
			(void)fputs("\xef\xbf\xbd", out);
		else if (n == 1 && (*s == '"' || *s == '\\'))
			(void)fprintf(out, "\\%c", *s);
		else if (n == 1 && (unsigned char)*s < 0x20)
			(void)fprintf(out, "\\u%04x", (unsigned char)*s);
		else
			(void)fwrite(s, 1, n, out);
		s += MAX(n, (size_t)1);
	}
	(void)putc('"', out);
}

static void put_module(FILE *out, const struct module *m)
{
	(void)fprintf(out, "{\"type\":\"module\",\"id\":%" PRIu32 ",\"path\":", m->id);
	put_string(out, m->path);
	(void)fprintf(out, ",\"build_id\":%s", m->build_id_len ? "\"" : "null");
	for (int i = 0; i < m->build_id_len; i++)
		(void)fprintf(out, "%02x", m->build_id[i]);
	(void)fputs(m->build_id_len ? "\"}\n" : "}\n", out);
}

static void put_stack(FILE *out, const struct events_record *rec)
{
	(void)fprintf(out, "{\"type\":\"stack\",\"id\":%" PRIu32 ",\"quality\":\"%s\",\"frames\":[",
		      rec->stack.id, stack_quality_name(rec->stack.quality));
	for (uint32_t i = 0; i < rec->stack.depth; i++)
		(void)fprintf(out, "%s[%" PRIu32 ",%" PRIu64 "]", i ? "," : "",
			      rec->stack.frames[i].module, rec->stack.frames[i].offset);
	(void)fputs("]}\n", out);
}

/* Addresses are strings: they may need more than the 53 bits that many readers keep of a number. */
static void put_address(FILE *out, const struct event *ev)
{
	(void)fprintf(out, ",\"address\":\"0x%" PRIx64 "\"", ev->address);
}

static void put_size(FILE *out, const struct event *ev)
{
	if (ev->kind == EVENT_BRK)
		(void)fprintf(out, ",\"size\":%" PRId64, (int64_t)ev->size);
	else
		(void)fprintf(out, ",\"size\":%" PRIu64, ev->size);
}

static void put_stack_id(FILE *out, const struct event *ev)
{
	if (ev->stack)
		(void)fprintf(out, ",\"stack\":%" PRIu32, ev->stack);
	else
		(void)fputs(",\"stack\":null", out);
}

static void put_by_kind(FILE *out, const struct event *ev)
{
	switch ((enum event_kind)ev->kind) {
	case EVENT_ALLOC:
	case EVENT_MMAP:
	case EVENT_BRK:
		put_address(out, ev);
		put_size(out, ev);
		put_stack_id(out, ev);
		break;
	case EVENT_FREE:
		put_address(out, ev);
		break;
	case EVENT_MUNMAP:
		put_address(out, ev);
		put_size(out, ev);
		break;
	case EVENT_FAILED:
		put_size(out, ev);
		put_stack_id(out, ev);
		break;
	case EVENT_FORK:
		(void)fprintf(out, ",\"child\":%" PRIu64, ev->address);
		if (ev->flags & EVENT_SHARED_MM)
			(void)fputs(",\"shared_mm\":true", out);
		break;
	case EVENT_EXIT:
		(void)fprintf(out, ",\"status\":%" PRIu64, ev->size);
		break;
	case EVENT_FAULT:
		put_address(out, ev);
		if (ev->size)
			(void)fprintf(out, ",\"duration_ns\":%" PRIu64, ev->size);
		put_stack_id(out, ev);
		break;
	case EVENT_RESTORE:
	case EVENT_EXEC:
	case EVENT_KINDS:
		break;
	}
}

static void put_event(const struct exporter *x, const struct event *ev)
{
	FILE *out = x->out;

	(void)fprintf(out,
		      "{\"type\":\"event\",\"t_ns\":%" PRId64 ",\"kind\":\"%s\",\"pid\":%" PRIu32
		      ",\"tid\":%" PRIu32,
		      ev->t_ns, event_kind_name(ev->kind), ev->pid, ev->tid);
	put_by_kind(out, ev);
	if (ev->function < x->n_names && x->names[ev->function]) {
		(void)fputs(",\"function\":", out);
		put_string(out, x->names[ev->function]);
	}
	if (ev->flags & EVENT_REALLOC)
		(void)fputs(",\"realloc\":true", out);
	(void)fputs("}\n", out);
}

/* Events name their function by its id. */
static int keep_name(struct exporter *x, uint16_t id, const char *name)
{
	if (id >= x->n_names) {
		char **grown = reallocarray(x->names, (size_t)id + 1, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + x->n_names, 0, (id + 1 - x->n_names) * sizeof(*grown));
		x->names = grown;
		x->n_names = (size_t)id + 1;
	}
	free(x->names[id]);
	x->names[id] = strdup(name);
	return x->names[id] ? 0 : -ENOMEM;
}

static int put_record(struct exporter *x, const struct events_record *rec)
{
	FILE *out = x->out;

	switch (rec->type) {
	case EVENTS_RUN:
		(void)fprintf(out,
			      "{\"type\":\"run\",\"run_id\":%" PRId64
			      ",\"started_mono_ns\":%" PRId64 "}\n",
			      rec->run.run_id, rec->run.started_mono_ns);
		break;
	case EVENTS_FUNCTION:
		(void)fprintf(out, "{\"type\":\"function\",\"id\":%d,\"name\":", rec->function.id);
		put_string(out, rec->function.name);
		(void)fputs("}\n", out);
		return keep_name(x, rec->function.id, rec->function.name);
	case EVENTS_MODULE:
		put_module(out, &rec->module);
		break;
	case EVENTS_STACK:
		put_stack(out, rec);
		break;
	case EVENTS_EVENT:
		put_event(x, &rec->event);
		break;
	case EVENTS_LOSS:
		(void)fprintf(out,
			      "{\"type\":\"loss\",\"ring\":%d,\"from_ns\":%" PRId64
			      ",\"to_ns\":%" PRId64 ",\"count\":%" PRId64 "}\n",
			      rec->loss.ring, rec->loss.from_ns, rec->loss.to_ns, rec->loss.count);
		break;
	}
	return 0;
}

/* -- the verb -------------------------------------------------------------------------------- */

struct request {
	const char *format, *dir, *file;
	bool events;
};

static int open_events(struct events_reader **ret, const char *dir, struct err *err)
{
	_cleanup_str_ struct str path = {0};

	str_addf(&path, "%s/events.zst", dir);
	if (path.failed)
		return err_errno(err, -ENOMEM, "cannot open the events of %s", dir);
	return events_reader_open(ret, path.data, err);
}

/* Each record as it is read: memory does not grow with the file. */
static int export_events(struct cli *cli, struct events_reader *r, FILE *out)
{
	_cleanup_(export_done) struct exporter x = {.out = out};
	struct events_record rec;
	struct err err;
	int n;

	while ((n = events_next(r, &rec, &err)) > 0 && !ferror(out)) {
		if (put_record(&x, &rec) < 0) {
			(void)err_errno(&err, -ENOMEM, "cannot export");
			return cli_fail(cli, STATUS_FAILED, &err);
		}
	}
	if (ferror(out) || fflush(out) != 0) {
		(void)err_errno(&err, -errno, "cannot write the output");
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	if (n < 0)
		return cli_fail(cli, STATUS_FAILED, &err);
	if (events_reader_is_truncated(r))
		log_msg(cli->log, LOG_WARN,
			"events.zst ends within a frame: it is still being written, or its "
			"recorder died; all before is exported");
	return 0;
}

static int export_to(struct cli *cli, struct events_reader *r, const char *file)
{
	FILE *out = file ? fopen(file, "we") : stdout;
	struct err err;
	int status;

	if (!out) {
		(void)err_errno(&err, -errno, "cannot create %s", file);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	status = export_events(cli, r, out);
	if (file && fclose(out) != 0 && status == 0) {
		(void)err_errno(&err, -errno, "cannot write %s", file);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	return status;
}

/* There is no events.zst in dir: is it one of ours at all? */
static int no_events(struct cli *cli, const char *dir)
{
	struct reader *db;
	struct err err;

	if (reader_open(&db, dir, &err) < 0)
		return cli_fail(cli, cli_results_status(&err), &err);
	reader_close(db);
	(void)err_set(&err, -ENOENT, "%s has no events.zst: no events were recorded", dir);
	return cli_fail(cli, STATUS_FAILED, &err);
}

static int run_export(struct cli *cli, const char *dir, const char *file)
{
	struct events_reader *r;
	struct err err;
	int status;

	if (open_events(&r, dir, &err) < 0) {
		if (err.code == -ENOENT || err.code == -ENOTDIR)
			return no_events(cli, dir);
		return cli_fail(cli, STATUS_FAILED, &err);
	}
	status = export_to(cli, r, file);
	events_reader_close(r);
	return status;
}

static int take_word(struct cli *cli, struct request *q, const char *word)
{
	if (!q->format)
		q->format = word;
	else if (!q->dir)
		q->dir = word;
	else
		return -cli_usage(cli, "export", "export: one DIR, not also \"%.200s\"", word);
	return 0;
}

/* Options may stand anywhere: 0 = go on, 1 = help was printed, negative = told. */
static int parse(struct cli *cli, int argc, char **argv, struct request *q, int *ret_status)
{
	struct opt_parser parser;
	int r = 0;

	opt_parser_init(&parser, options, ARRAY_SIZE(options));
	for (optind = 0; r == 0;) {
		int c = getopt_long(argc, argv, parser.shorts, parser.longs, NULL);

		if (c == 'h')
			return *ret_status = help(cli), 1;
		if (c == OPT_EVENTS)
			q->events = true;
		else if (c == 'o')
			q->file = optarg;
		else if (c == ':')
			r = -cli_usage(cli, "export", "%.200s needs a value", argv[optind - 1]);
		else if (c != -1)
			r = -cli_usage(cli, "export", "unknown option %.200s", argv[optind - 1]);
		else if (optind >= argc)
			break;
		else
			r = take_word(cli, q, argv[optind++]);
	}
	*ret_status = -r;
	return r;
}

int cmd_export(struct cli *cli, int argc, char **argv)
{
	char newest[NAME_MAX + 1];
	struct request q = {0};
	struct err err;
	int status;

	if (parse(cli, argc, argv, &q, &status) != 0)
		return status;
	if (!q.format)
		return cli_usage(cli, "export",
				 "export: the format is missing; there is: " FORMATS);
	if (strcmp(q.format, "ndjson") != 0)
		return cli_usage(
			cli, "export",
			"export: \"%.200s\" is not a format of this version; there is: " FORMATS,
			q.format);
	if (!q.events)
		return cli_usage(cli, "export",
				 "export ndjson: exports events only; there is: " FORMATS);
	if (!q.dir) {
		if (cli_find_results(cli, "export", newest, &err) < 0)
			return cli_fail(cli, cli_results_status(&err), &err);
		q.dir = newest;
	}
	return run_export(cli, q.dir, q.file);
}
