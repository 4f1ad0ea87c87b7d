/* The configuration: what is accepted, and each refusal's place and words. */
#include "squeezer/config.h"
#include "squeezer/config_keys.h"
#include "squeezer/json_scan.h"
#include "squeezer/law.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static int parse(struct squeezer_config *cfg, const char *text, struct err *err)
{
	memset(err, 0, sizeof(*err));
	return config_parse(cfg, "f", text, strlen(text), err);
}

static struct squeezer_config good(const char *text)
{
	struct squeezer_config cfg;
	struct err err;

	if (parse(&cfg, text, &err) != 0)
		fail_msg("%s\n -> %s", text, err.msg);
	assert_int_equal(err.code, 0);
	return cfg;
}

static void shipped_files(void **state)
{
	struct squeezer_config cfg;
	struct err err;

	(void)state;
	assert_int_equal(config_load(&cfg, "configs/squeezerdynamicconfig.json", &err), 0);
	assert_int_equal(cfg.mode, MODE_DYNAMIC);
	assert_string_equal(cfg.law, "step");
	assert_int_equal(cfg.knob, KNOB_MAX);
	assert_true(cfg.init_limit.bytes == 0 && cfg.min_limit.bytes == 0);
	assert_true(cfg.max_limit.bytes == NUM_MAX);
	assert_true(cfg.squeeze_max_pct == 10 && cfg.squeeze_delta_pct == 1);
	assert_true(cfg.squeeze_timeout_s == 2 && cfg.pf_rate_watermark == 10000);
	assert_true(cfg.notes_reclaimer);
	assert_false(config_needs_baseline(&cfg));

	assert_int_equal(config_load(&cfg, "configs/squeezerstaticconfig.json", &err), 0);
	assert_int_equal(cfg.mode, MODE_STATICSWEEP);
	assert_int_equal(cfg.n_range, 4);
	assert_true(cfg.range_pct[0] == 2 && cfg.range_pct[1] == 4);
	assert_true(cfg.range_pct[2] == 8 && cfg.range_pct[3] == 16);
	assert_string_equal(cfg.law, "");
	assert_true(config_needs_baseline(&cfg));
}

static void defaults(void **state)
{
	struct squeezer_config cfg = good("{\"mode\":\"dynamic\"}");

	(void)state;
	assert_int_equal(cfg.tick_ns, 100000000);
	assert_true(cfg.stall_budget == 0.05);
	assert_int_equal(cfg.max_step_bytes, 16777216);
	assert_int_equal(cfg.headroom.bytes, -1);
	assert_int_equal(cfg.limit_phase, PHASE_STEADY);
	assert_int_equal(cfg.protect_percentile, 0);
	assert_true(cfg.delay_s == 0);
	assert_false(cfg.notes_reclaimer);
}

static void every_key(void **state)
{
	struct squeezer_config cfg =
		good("\xef\xbb\xbf{\"$schema\":\"x\",\"mode\":\"dynamic\",\"law\":\"step\","
		     "\"knob\":\"memory.high\",\"init_limit\":\"1.5G\",\"min_limit\":\"64M\","
		     "\"max_limit\":\"2T\",\"delay\":2.5,\"fixed\":0,\"squeeze_max\":5e0,"
		     "\"squeeze_delta\":2,\"squeeze_timeout\":60,\"pf_rate_watermark\":1e9,"
		     "\"tick_ms\":1E2,\"stall_budget_pct\":12.5,\"max_step\":\"max\","
		     "\"headroom\":\"32M\",\"limit_phase\":\"start\",\"protect_percentile\":95,"
		     "\"reclaimer\":\"\",\"reclaimer_file\":\"\\u00e9\\ud83d\\ude00\"}\r\n");

	(void)state;
	assert_int_equal(cfg.knob, KNOB_HIGH);
	assert_int_equal(cfg.init_limit.bytes, 1610612736);
	assert_int_equal(cfg.min_limit.bytes, 67108864);
	assert_int_equal(cfg.max_limit.bytes, 2199023255552);
	assert_true(cfg.delay_s == 2.5 && cfg.squeeze_max_pct == 5);
	assert_true(cfg.squeeze_delta_pct == 2 && cfg.squeeze_timeout_s == 60);
	assert_true(cfg.pf_rate_watermark == 1e9 && cfg.stall_budget == 0.125);
	assert_int_equal(cfg.tick_ns, 100000000);
	assert_int_equal(cfg.max_step_bytes, NUM_MAX);
	assert_int_equal(cfg.headroom.bytes, 33554432);
	assert_int_equal(cfg.limit_phase, PHASE_START);
	assert_int_equal(cfg.protect_percentile, 95);
}

static void none_and_huge(void **state)
{
	struct squeezer_config cfg;

	(void)state;
	cfg = good("{\"mode\":\"dynamic\",\"max_limit\":1125899906842623}");
	assert_int_equal(cfg.max_limit.bytes, 1125899906842623);
	cfg = good("{\"mode\":\"dynamic\",\"max_limit\":9223372036854775807}");
	assert_int_equal(cfg.max_limit.bytes, NUM_MAX);
	cfg = good("{\"mode\":\"dynamic\",\"init_limit\":\"max\",\"min_limit\":1125899906842624}");
	assert_int_equal(cfg.init_limit.bytes, 0);
	assert_int_equal(cfg.min_limit.bytes, NUM_MAX);
	cfg = good("{\"mode\":\"dynamic\",\"min_limit\":-0,\"delay\":-0.0}");
	assert_int_equal(cfg.min_limit.bytes, 0);
	/* The largest double below the scanner's bound is still only out of range elsewhere. */
	cfg = good("{\"mode\":\"dynamic\",\"delay\":0e99999999999999999999}");
	assert_true(cfg.delay_s == 0);
}

/* {text, message behind "f", part of the hint or NULL}; places counted by hand. */
static const struct refusal {
	const char *text, *msg, *hint;
} refusals[] = {
	/* the table of keys */
	{"{\"mode\":\"dynamic\",\"squeeze_max\":400}",
	 ":1:33: key \"squeeze_max\": 400 is out of range; 0 … 50 (percent)", NULL},
	{"{\"mode\":\"dynamic\",\n\n\t\"squeeze_max\":\t-1}",
	 ":3:17: key \"squeeze_max\": -1 is out of range; 0 … 50 (percent)", NULL},
	{"{\"mode\":\"dynamic\",\"squeeze_delta\":0.5}",
	 ":1:35: key \"squeeze_delta\": 0.5 is out of range; 1 … 50 (percent)", NULL},
	{"{\"mode\":\"dynamic\",\"squeeze_timeout\":61}",
	 ":1:37: key \"squeeze_timeout\": 61 is out of range; 1 … 60 (seconds)", NULL},
	{"{\"mode\":\"dynamic\",\"pf_rate_watermark\":0}",
	 ":1:39: key \"pf_rate_watermark\": 0 is out of range; 1 … 1000000000 (major faults per "
	 "second)",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":3601}",
	 ":1:27: key \"delay\": 3601 is out of range; 0 … 3600 (seconds)", NULL},
	{"{\"mode\":\"dynamic\",\"fixed\":1}", ":1:27: key \"fixed\": 1 is out of range; only 0",
	 NULL},
	{"{\"mode\":\"dynamic\",\"tick_ms\":9}",
	 ":1:29: key \"tick_ms\": 9 is out of range; 10 … 10000 (milliseconds)", NULL},
	{"{\"mode\":\"dynamic\",\"tick_ms\":10.5}",
	 ":1:29: key \"tick_ms\": 10.5 is not a whole number", NULL},
	{"{\"mode\":\"dynamic\",\"stall_budget_pct\":100.1}",
	 ":1:38: key \"stall_budget_pct\": 100.1 is out of range; 0 … 100 (percent of the time)",
	 NULL},
	{"{\"mode\":\"dynamic\",\"protect_percentile\":0}",
	 ":1:40: key \"protect_percentile\": 0 is out of range; 1 … 100", NULL},
	{"{\"mode\":\"dynamic\",\"max_step\":262143}",
	 ":1:30: key \"max_step\": 262143 is out of range; 256.0 KiB or more, or \"max\" (bytes, "
	 "or with K, M, G, T)",
	 NULL},
	{"{\"mode\":\"dynamic\",\"max_step\":\"5%\"}",
	 ":1:30: key \"max_step\": \"5%\" is not a size: bytes, \"16M\" or \"max\"", NULL},
	{"{\"mode\":\"dynamic\",\"headroom\":\"max\"}",
	 ":1:30: key \"headroom\": \"max\" is out of range; 256.0 KiB or more, more than 0% to "
	 "1000%, or \"auto\" (bytes, with K, M, G, T, or % of the baseline's peak)",
	 NULL},
	{"{\"mode\":\"dynamic\",\"init_limit\":\"12Q\"}",
	 ":1:32: key \"init_limit\": \"12Q\" is not a size: bytes, \"512M\", \"80%\" or \"max\"",
	 NULL},
	{"{\"mode\":\"dynamic\",\"init_limit\":0.5}",
	 ":1:32: key \"init_limit\": 0.5 is not a whole number of bytes", NULL},
	{"{\"mode\":\"dynamic\",\"init_limit\":\"99999999999T\"}",
	 ":1:32: key \"init_limit\": \"99999999999T\" is too large", NULL},
	{"{\"mode\":\"dynamic\",\"init_limit\":-1}",
	 ":1:32: key \"init_limit\": -1 is out of range; 0 or more, 0% to 1000%, or \"max\" "
	 "(bytes, with K, M, G, T, or % of the baseline's peak)",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":\"3\"}", ":1:27: key \"delay\": \"3\" is not a number",
	 "without quotes"},
	{"{\"mode\":\"dynamic\",\"delay\":true}", ":1:27: key \"delay\": true is not a number",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":[1]}", ":1:27: key \"delay\": a list is not a number",
	 NULL},
	{"{\"mode\":\"dynamic\",\"reclaimer\":1}", ":1:31: key \"reclaimer\": 1 is not a string",
	 NULL},
	{"{\"mode\":\"dynamic\",\"knob\":\"memory.low\"}",
	 ":1:26: key \"knob\": \"memory.low\" is not known; use \"memory.max\", \"memory.high\" or "
	 "\"memory.reclaim\"",
	 "did you mean \"memory.max\"?"},
	{"{\"mode\":\"dynamic\",\"law\":\"adaptive\"}",
	 ":1:25: key \"law\": \"adaptive\" is not a law of this version; use \"step\"", NULL},
	{"{\"mode\":\"dynamic\",\"squeze_max\":4}", ":1:19: key \"squeze_max\" is not known",
	 "did you mean \"squeeze_max\"?"},
	{"{\"mode\":\"dynamic\",\"foo\":4}", ":1:19: key \"foo\" is not known",
	 "the keys are mode, law, knob, init_limit"},
	/* what keys demand of one another */
	{"{}", ":1:1: key \"mode\" is missing", "\"mode\": \"dynamic\""},
	{"{\"delay\":0,\"mode\":\"dynamik\"}",
	 ":1:19: key \"mode\": \"dynamik\" is not known; use \"static\", \"staticsweep\" or "
	 "\"dynamic\"",
	 "did you mean \"dynamic\"?"},
	{"{\"law\":\"step\",\"mode\":\"static\",\"init_limit\":1}",
	 ":1:2: key \"law\" has no meaning in mode static", "mode dynamic"},
	{"{\"mode\":\"dynamic\",\"params_ranges\":[]}",
	 ":1:19: key \"params_ranges\" has no meaning in mode dynamic", "mode staticsweep"},
	{"{\"mode\":\"static\"}", ":1:9: mode static needs the key \"init_limit\", its limit",
	 NULL},
	{"{\"mode\":\"static\",\"init_limit\":0}",
	 ":1:31: key \"init_limit\": 0 is no limit, and mode static needs one", NULL},
	{"{\"mode\":\"static\",\"init_limit\":1125899906842624}",
	 ":1:31: key \"init_limit\": 1125899906842624 is no limit, and mode static needs one",
	 NULL},
	{"{\"mode\":\"static\",\"init_limit\":\"0%\"}",
	 ":1:31: key \"init_limit\": \"0%\" is no limit, and mode static needs one", NULL},
	{"{\"mode\":\"static\",\"init_limit\":\"1G\",\"knob\":\"memory.reclaim\"}",
	 ":1:43: key \"knob\": memory.reclaim holds no limit, mode static needs memory.max or "
	 "memory.high",
	 NULL},
	{"{\"mode\":\"dynamic\",\"min_limit\":\"2G\",\"max_limit\":\"1G\"}",
	 ":1:31: key \"min_limit\": it is above max_limit", NULL},
	{"{\"mode\":\"dynamic\",\"min_limit\":\"51%\",\"max_limit\":\"50%\"}",
	 ":1:31: key \"min_limit\": it is above max_limit", NULL},
	{"{\"mode\":\"static\",\"init_limit\":\"2G\",\"max_limit\":\"1G\"}",
	 ":1:31: key \"init_limit\": it is above max_limit", NULL},
	{"{\"mode\":\"dynamic\",\"init_limit\":\"1G\",\"min_limit\":\"2G\"}",
	 ":1:32: key \"init_limit\": it is below min_limit", NULL},
	/* params_ranges */
	{"{\"mode\":\"staticsweep\"}",
	 ":1:9: mode staticsweep needs the key \"params_ranges\", its limits", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":{}}",
	 ":1:39: key \"params_ranges\": an object is not a list of objects", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[]}",
	 ":1:39: key \"params_ranges\": the list is empty; objects are expected", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[7]}",
	 ":1:40: key \"params_ranges\": 7 is not an object", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"range\":[2]}]}",
	 ":1:40: key \"params_ranges\": key \"param\" is missing here", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"param\":\"memory\"}]}",
	 ":1:40: key \"params_ranges\": key \"range\" is missing here", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"param\":\"cpu\",\"range\":[2]}]}",
	 ":1:49: key \"param\": \"cpu\" is not known; only \"memory\" is", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"with_baseline\":2}]}",
	 ":1:57: key \"with_baseline\": 2 is out of range; 0 or 1", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"with_baselin\":1}]}",
	 ":1:41: key \"with_baselin\" is not known in params_ranges", "\"with_baseline\"?"},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"range\":[]}]}",
	 ":1:49: key \"range\": the list is empty; numbers are expected", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"range\":[1,\n100]}]}",
	 ":2:1: key \"range\": 100 is out of range; more than 0, less than 100 (percent below the "
	 "baseline's peak)",
	 NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"range\":[0]}]}",
	 ":1:50: key \"range\": 0 is out of range; more than 0, less than 100 (percent below the "
	 "baseline's peak)",
	 NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"range\":[\"2\"]}]}",
	 ":1:50: key \"range\": \"2\" is not a number", NULL},
	{"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"param\":\"memory\","
	 "\"param\":\"memory\"}]}",
	 ":1:58: key \"param\" is given twice", NULL},
	/* JSON itself */
	{"", ": the file is empty", "{\"mode\": \"dynamic\"}"},
	{" \n\t ", ": the file is empty", NULL},
	{"\xef\xbb\xbf", ": the file is empty", NULL},
	{"[1]", ":1:1: a configuration is an object", NULL},
	{"12", ":1:1: a configuration is an object", NULL},
	{"hello", ":1:1: hello is no value of JSON", NULL},
	{"{\"mode\":\"dynamic\",\"mode\":\"dynamic\"}", ":1:19: key \"mode\" is given twice", NULL},
	{"{\"mode\":\"dynamic\",\"m\\u006fde\":1}", ":1:19: key \"mode\" is given twice", NULL},
	{"{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":1}", /* U+1F600, written twice */
	 ":1:19: key \"\xf0\x9f\x98\x80\" is given twice", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":1e999}",
	 ":1:27: key \"delay\": 1e999 is too large a number", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":1e308}",
	 ":1:27: key \"delay\": 1e308 is too large a number", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":9e307}",
	 ":1:27: key \"delay\": 9e307 is out of range; 0 … 3600 (seconds)", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":0.001e312}",
	 ":1:27: key \"delay\": 0.001e312 is too large a number", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":0.001e310}",
	 ":1:27: key \"delay\": 0.001e310 is out of range; 0 … 3600 (seconds)", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":9223372036854775808}",
	 ":1:27: key \"delay\": 9223372036854775808 is too large a number", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":NaN}", ":1:27: key \"delay\": NaN is no value of JSON",
	 "finite"},
	{"{\"mode\":\"dynamic\",\"delay\":Infinity}",
	 ":1:27: key \"delay\": Infinity is no value of JSON", "finite"},
	{"{\"mode\":\"dynamic\",\"delay\":-Infinity}",
	 ":1:27: key \"delay\": -Infinity is not a number of JSON", "finite"},
	{"{\"mode\":\"dynamic\",\"delay\":012}",
	 ":1:27: key \"delay\": 012 is not a number of JSON", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":1.}", ":1:27: key \"delay\": 1. is not a number of JSON",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":1e}", ":1:27: key \"delay\": 1e is not a number of JSON",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":0x1F}",
	 ":1:27: key \"delay\": 0x1F is not a number of JSON", NULL},
	{"{\"mode\":\"dynamic\",\"delay\":5s}", ":1:27: key \"delay\": 5s is not a number of JSON",
	 NULL},
	{"{\"mode\":\"dynamic\",\"delay\":+1}", ":1:27: key \"delay\": + is no value of JSON",
	 NULL},
	{"{'mode':1}", ":1:2: single quotes are not JSON", "double quotes"},
	{"{\"mode\":'dynamic'}", ":1:9: single quotes are not JSON", "double quotes"},
	{"{mode:1}", ":1:2: a key in double quotes is expected", NULL},
	{"{\"mode\":\"dynamic\" /* x */}", ":1:19: JSON has no comments", NULL},
	{"# x\n{}", ":1:1: JSON has no comments", NULL},
	{"{\"mode\":\"dynamic\",}", ":1:18: a comma before the closing }", NULL},
	{"{\"a\":[1,2,]}", ":1:10: a comma before the closing ]", NULL},
	{"{,}", ":1:2: a key in double quotes is expected", NULL},
	{"{\"mode\":\"dynamic\"} x", ":1:20: text behind the end of the JSON value", NULL},
	{"{\"mode\":\"dynamic\"", ":1:1: this { is never closed", NULL},
	{"{\"a\":[1", ":1:6: this [ is never closed", NULL},
	{"{\"a\":", ":1:6: the file ends where a value is expected", NULL},
	{"{\"a\"", ":1:5: a colon is expected behind the key \"a\"", NULL},
	{"{\"a\":1 \"b\":2}", ":1:8: a comma or } is expected", NULL},
	{"{\"a", ":1:2: the string is not closed", NULL},
	{"{\"a\nb\":1}", ":1:2: the string is not closed", NULL},
	{"{\"a\tb\":1}", ":1:4: a control character in a string; write \\u0009", NULL},
	{"{\"a\\x\":1}", ":1:4: not an escape that JSON knows", NULL},
	{"{\"a\\u12\":1}", ":1:4: \\u needs four hexadecimal digits", NULL},
	{"{\"a\\u0000\":1}", ":1:4: a NUL character is not accepted", NULL},
	{"{\"a\\ud800\":1}", ":1:4: half of a surrogate pair", NULL},
	{"{\"a\\udc00\\ud800\":1}", ":1:4: half of a surrogate pair", NULL},
	/* UTF-8: columns count characters; é is two bytes */
	{"{\"\xc3\xa9\":1 x}", ":1:8: a comma or } is expected", NULL},
	{"{\"\xff\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"{\"\xc0\xaf\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"{\"\xe0\x80\xaf\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"{\"\xed\xa0\x80\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"{\"\xf4\x90\x80\x80\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"{\"\xc3\":1}", ":1:3: invalid UTF-8 in a string", NULL},
	{"\x80", ":1:1: invalid UTF-8", NULL},
};

static void refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++) {
		const struct refusal *c = &refusals[i];
		struct squeezer_config cfg, before;
		struct err err;

		memset(&cfg, 0x5a, sizeof(cfg));
		before = cfg;
		if (parse(&cfg, c->text, &err) != -EINVAL || err.code != -EINVAL)
			fail_msg("accepted: %s", c->text);
		if (err.msg[0] != 'f' || strcmp(err.msg + 1, c->msg) != 0)
			fail_msg("%s\n gave f%s\n  not f%s", c->text, err.msg + 1, c->msg);
		if (c->hint && !strstr(err.hint, c->hint))
			fail_msg("%s\n hint \"%s\", not \"%s\"", c->text, err.hint, c->hint);
		/* A refused file leaves the caller's configuration alone. */
		assert_memory_equal(&cfg, &before, sizeof(cfg));
	}
}

static void nul_bytes(void **state)
{
	static const char between[] = "{\"mode\":\0\"dynamic\"}", within[] = "{\"mo\0de\":1}";
	struct squeezer_config cfg;
	struct err err;

	(void)state;
	assert_int_equal(config_parse(&cfg, "f", between, sizeof(between) - 1, &err), -EINVAL);
	assert_string_equal(err.msg, "f:1:9: a NUL byte");
	assert_non_null(strstr(err.hint, "UTF-16"));
	assert_int_equal(config_parse(&cfg, "f", within, sizeof(within) - 1, &err), -EINVAL);
	assert_string_equal(err.msg, "f:1:5: a NUL byte in a string");
	assert_int_equal(config_parse(&cfg, "f", "{\"mode\":1\0}", 11, &err), -EINVAL);
	assert_string_equal(err.msg, "f:1:10: a NUL byte");
}

/* Depth, number of values and size are bounded, each exactly at its limit. */
static void bounds(void **state)
{
	_cleanup_str_ struct str s = {0};
	struct squeezer_config cfg;
	struct json_scan scan;
	struct err err;

	(void)state;
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		str_add(&s, "[");
	for (int i = 0; i < JSON_DEPTH_MAX; i++)
		str_add(&s, "]");
	assert_int_equal(json_scan(&scan, "f", s.data, s.len, &err), 0);
	json_scan_done(&scan);
	s.data[JSON_DEPTH_MAX] = '[';
	assert_int_equal(json_scan(&scan, "f", s.data, s.len, &err), -EINVAL);
	assert_string_equal(err.msg, "f:1:17: nested more than 16 levels deep");
	json_scan_done(&scan);

	/* Lists beside one another are not nested. */
	str_done(&s);
	str_add(&s, "[[]");
	for (int i = 0; i < 2 * JSON_DEPTH_MAX; i++)
		str_add(&s, ",[]");
	str_add(&s, "]");
	assert_int_equal(json_scan(&scan, "f", s.data, s.len, &err), 0);
	json_scan_done(&scan);

	str_done(&s);
	str_add(&s, "[0");
	for (int i = 2; i < JSON_VALUES_MAX; i++)
		str_add(&s, ",0");
	assert_int_equal(json_scan(&scan, "f", s.data, s.len, &err), -EINVAL);
	assert_string_equal(err.msg, "f:1:1: this [ is never closed");
	json_scan_done(&scan);
	str_add(&s, ",0]");
	assert_int_equal(json_scan(&scan, "f", s.data, s.len, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "more than 4096 values"));
	json_scan_done(&scan);

	str_done(&s);
	str_add(&s, "{\"mode\":\"dynamic\"}");
	while (s.len < (1 << 20))
		str_add(&s, " ");
	assert_int_equal(config_parse(&cfg, "f", s.data, s.len, &err), 0);
	str_add(&s, " ");
	assert_int_equal(config_parse(&cfg, "f", s.data, s.len, &err), -EINVAL);
	assert_string_equal(err.msg, "f: larger than 1 MiB, no configuration");
}

/* However long path and key are, what is wrong stays in the message. */
static void long_names(void **state)
{
	char path[3000], text[3000];
	struct squeezer_config cfg;
	struct err err;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(path); i += 2)
		memcpy(path + i, "\xc3\xa9", 3);
	(void)snprintf(text, sizeof(text), "{\"mode\":\"dynamic\",\"%02000d\":1}", 7);
	assert_int_equal(config_parse(&cfg, path, text, strlen(text), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is not known"));
	(void)snprintf(text, sizeof(text), "{\"mode\":\"%02000d\"}", 7);
	assert_int_equal(config_parse(&cfg, path, text, strlen(text), &err), -EINVAL);
	assert_non_null(strstr(err.msg, "is not known; use \"static\""));
	assert_memory_equal(err.msg, "…\xc3\xa9", 5);
}

static void files(void **state)
{
	char path[] = "/tmp/test_config.XXXXXX";
	int fd = mkstemp(path);
	struct squeezer_config cfg;
	struct err err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 10 << 20), 0);
	assert_int_equal(config_load(&cfg, path, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "larger than 1 MiB"));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(config_load(&cfg, path, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "the file is empty"));
	assert_int_equal(write(fd, "{\"mode\":\"dynamic\"}\n", 19), 19);
	assert_int_equal(config_load(&cfg, path, &err), 0);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(config_load(&cfg, path, &err), -ENOENT);
	assert_int_equal(config_load(&cfg, "/tmp", &err), -EISDIR);
	assert_string_equal(err.msg, "cannot read /tmp: Is a directory");
}

static void percentages(void **state)
{
	struct squeezer_config cfg = good("{\"mode\":\"static\",\"init_limit\":\"80%\","
					  "\"max_limit\":\"150%\",\"min_limit\":\"12.5%\"}");

	(void)state;
	assert_true(cfg.init_limit.is_pct && cfg.init_limit.pct == 80);
	assert_true(config_needs_baseline(&cfg));
	config_resolve(&cfg, 1000);
	assert_false(config_needs_baseline(&cfg));
	assert_int_equal(cfg.init_limit.bytes, 800);
	assert_int_equal(cfg.max_limit.bytes, 1500);
	assert_int_equal(cfg.min_limit.bytes, 125);

	/* Only the peak shows that the minimum lies above the maximum. */
	cfg = good("{\"mode\":\"dynamic\",\"min_limit\":\"90%\",\"max_limit\":500}");
	config_resolve(&cfg, 1000);
	assert_int_equal(cfg.min_limit.bytes, 500);
	cfg = good("{\"mode\":\"dynamic\",\"headroom\":\"2%\"}");
	assert_true(config_needs_baseline(&cfg));
	config_resolve(&cfg, 1000);
	assert_int_equal(cfg.headroom.bytes, 20);
}

static void amounts(void **state)
{
	struct amount a = {.bytes = 7};

	(void)state;
	assert_int_equal(amount_parse("12Q", &a), -EINVAL);
	assert_int_equal(amount_parse("", &a), -EINVAL);
	assert_int_equal(amount_parse("-5%", &a), -EINVAL);
	assert_int_equal(amount_parse("99999999999999999999", &a), -ERANGE);
	assert_int_equal(a.bytes, 7);
	assert_int_equal(amount_parse("3K", &a), 0);
	assert_true(!a.is_pct && a.bytes == 3072);
	assert_int_equal(amount_parse("0.5%", &a), 0);
	assert_true(a.is_pct && a.pct == 0.5);
	assert_int_equal(amount_parse("max", &a), 0);
	assert_true(!a.is_pct && a.bytes == NUM_MAX);
}

/* What config_to_json writes is the same configuration again. */
static void round_trip(void **state)
{
	static const char *const texts[] = {
		"{\"mode\":\"dynamic\"}",
		"{\"mode\":\"static\",\"init_limit\":\"80%\",\"limit_phase\":\"start\"}",
		"{\"mode\":\"static\",\"init_limit\":1125899906842623}",
		"{\"mode\":\"dynamic\",\"min_limit\":\"max\",\"stall_budget_pct\":7,\"delay\":0.1}",
		"{\"mode\":\"dynamic\",\"headroom\":\"3.5%\",\"protect_percentile\":95,"
		"\"tick_ms\":37,\"max_step\":\"max\",\"knob\":\"memory.reclaim\"}",
		"{\"mode\":\"staticsweep\",\"params_ranges\":[{\"param\":\"memory\",\"range\":"
		"[0.1,99.9]},{\"with_baseline\":0,\"param\":\"memory\",\"range\":[50]}]}",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		_cleanup_str_ struct str a = {0}, b = {0};
		struct squeezer_config first = {0}, again = {0};
		struct err err;

		assert_int_equal(parse(&first, texts[i], &err), 0);
		config_to_json(&first, &a);
		if (parse(&again, a.data, &err) != 0)
			fail_msg("%s\n%s", a.data, err.msg);
		config_to_json(&again, &b);
		assert_string_equal(a.data, b.data);
		assert_int_equal(first.n_range, again.n_range);
		assert_memory_equal(first.range_pct, again.range_pct, sizeof(first.range_pct));
		assert_true(first.stall_budget == again.stall_budget);
		assert_true(first.delay_s == again.delay_s && first.tick_ns == again.tick_ns);
		assert_int_equal(first.protect_percentile, again.protect_percentile);
		assert_int_equal(first.min_limit.bytes, again.min_limit.bytes);
		assert_true(first.headroom.pct == again.headroom.pct);
		assert_int_equal(first.max_step_bytes, again.max_step_bytes);
	}
}

static void explained(void **state)
{
	_cleanup_str_ struct str plain = {0}, with = {0};
	struct squeezer_config cfg = good("{\"mode\":\"static\",\"init_limit\":\"80%\"}");
	char want[64];

	(void)state;
	config_explain(NULL, &plain);
	config_explain(&cfg, &with);
	for (size_t i = 0; i < config_n_keys; i++) {
		(void)snprintf(want, sizeof(want), "%s%s\n    ", i ? "\n\n" : "",
			       config_keys[i].name);
		assert_non_null(strstr(plain.data, want));
	}
	assert_non_null(strstr(plain.data, "\nsqueeze_max\n    0 … 50 (percent); default 10\n"));
	assert_non_null(strstr(plain.data, "default \"step\"; only in mode dynamic\n"));
	assert_non_null(strstr(with.data, "\ninit_limit = \"80%\"\n"));
	assert_non_null(strstr(with.data, "\nlaw\n")); /* it has none in mode static */
	for (const char *p = plain.data; *p; p = strchr(p, '\n') + 1) {
		size_t width = 0;

		for (const char *c = p; *c != '\n'; c++)
			width += (*c & 0xc0) != 0x80;
		assert_in_range(width, 0, 80);
	}
}

static void near_words(void **state)
{
	static const char *const words[] = {"delay", "law", "squeeze_max", "squeeze_delta"};

	(void)state;
	assert_string_equal(config_nearest("dealy", words, 4), "delay"); /* a swap is one slip */
	assert_string_equal(config_nearest("lwa", words, 4), "law");
	assert_null(config_nearest("yaled", words, 4));
	assert_string_equal(config_nearest("delays", words, 4), "delay");
	assert_string_equal(config_nearest("squeeze_mx", words, 4), "squeeze_max");
	assert_string_equal(config_nearest("squeeze_detla", words, 4), "squeeze_delta");
	assert_null(config_nearest("zzz", words, 4));
	assert_null(config_nearest("", words, 4));
	assert_null(config_nearest("a_word_that_is_much_longer_than_any_key", words, 4));
}

/* No cut of a valid file is accepted, and none makes the reader leave its memory. */
static void cut_anywhere(void **state)
{
	static const char text[] =
		"{\"mode\":\"staticsweep\",\"delay\":-0.5e-1,\"params_ranges\":[{\"param\":"
		"\"mem\\u006fry\",\"range\":[2,4.5],\"x\\ud83d\\ude00\":[true,null]}]}";

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		/* Of exactly this size, so that a sanitiser sees one byte more. */
		_cleanup_free_ char *exact = malloc(MAX(n, (size_t)1));
		struct squeezer_config cfg;
		struct err err = {0};

		memcpy(exact, text, n);
		assert_int_equal(config_parse(&cfg, "f", exact, n, &err), -EINVAL);
		assert_true(err.msg[0] == 'f');
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_files), cmocka_unit_test(defaults),
		cmocka_unit_test(every_key),     cmocka_unit_test(none_and_huge),
		cmocka_unit_test(refused),       cmocka_unit_test(nul_bytes),
		cmocka_unit_test(bounds),        cmocka_unit_test(long_names),
		cmocka_unit_test(files),         cmocka_unit_test(percentages),
		cmocka_unit_test(amounts),       cmocka_unit_test(round_trip),
		cmocka_unit_test(explained),     cmocka_unit_test(near_words),
		cmocka_unit_test(cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
