/*
 * Whether this process may trace allocations here: rights, type information, probes, questions of
 * the kernel about opens, a mount namespace. Each is tried; nothing is left behind.
 */
#pragma once

#include "base/root.h"

struct can_trace {
	bool is_possible;
	bool lacks_rights; /* the kernel could, this user must not */
	char lack[96];     /* what is missing, in words; "" = nothing */
	const char *fix;   /* what to do; "" = nothing to do */
};

void can_trace_probe(struct can_trace *ret);
