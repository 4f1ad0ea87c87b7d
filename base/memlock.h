/* Keeping this process in memory while it puts the machine under pressure. */
#pragma once

/*
 * Locks all pages, present and future, as they are touched. Best effort, and not at all where
 * RLIMIT_MEMLOCK counts (no CAP_IPC_LOCK): there every later allocation beyond the limit would
 * fail, which is worse than being paged out.
 */
void memlock_all(void);
