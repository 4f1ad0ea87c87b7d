/* What the tests of laws share: a quiet workload, and a law with its last verdict. */
#pragma once

#include "squeezer/law.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MIB INT64_C(1048576)
#define S INT64_C(1000000000)

static inline struct squeezer_config config(void)
{
	struct squeezer_config cfg;

	config_init_default(&cfg, MODE_DYNAMIC);
	return cfg;
}

/* A quiet second of a steady workload of 1000 MiB without a limit; headroom 20 MiB (2 %). */
static inline struct observation quiet(void)
{
	return (struct observation){
		.t_ns = 100 * S,
		.dt_s = 1,
		.usage_bytes = 1000 * MIB,
		.limit_bytes = NUM_MAX,
		.floor_bytes = 10 * MIB,
		.headroom_bytes = 20 * MIB,
		.stall_some = 0,
		.stall_full = 0,
		.refault_ratio = NAN,
		.is_steady = true,
	};
}

/* A law and its last verdict. */
struct ctx {
	struct squeezer_config cfg;
	struct law_state st;
	struct verdict v;
};

static inline struct ctx begin(void)
{
	struct ctx c = {.cfg = config()};

	law_step.init(&c.st, &c.cfg);
	return c;
}

static inline enum action see(struct ctx *c, const struct observation *obs)
{
	memset(&c->v, 0x5a, sizeof(c->v));
	law_step.step(&c->st, &c->cfg, obs, &c->v);
	return c->v.action;
}
