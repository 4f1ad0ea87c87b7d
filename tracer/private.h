/*
 * The workload's own copies of the libraries that hold allocators.
 *
 * Probes sit on an inode: on a copy that only the workload maps nobody else pays for them, and
 * what it forks is covered from its first instruction. The copies live in a nameless tmpfs,
 * filled by analyzer and charged to it; in the workload's mount namespace each is bound over its
 * original. Nothing of this is to be seen outside, and it ends with the workload.
 *
 * Life: private_new → private_add … → private_enter in the child, which the fork has given
 * everything → private_free. Limit: the workload cannot rename or remove a file that is bound
 * over (EBUSY).
 */
#pragma once

#include "base/err.h"

struct private;

int private_new(struct private **ret, struct err *err);
void private_free(struct private *p); /* NULL allowed */

/* Copies the file at path; *ret_fd is the copy, open for reading, owned by p. */
int private_add(struct private *p, const char *path, int *ret_fd, struct err *err);

/* In the workload's process before exec, with rights to mount: a namespace of its own, copies in
 * place. Async-signal-safe. 0 or a negative errno: then the originals are used. */
int private_enter(const struct private *p);

/* Bytes copied. */
int64_t private_bytes(const struct private *p);
