#include "base/memlock.h"

#include "base/base.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

static bool is_unlimited(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY)
		return true;
	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[CAP_TO_INDEX(CAP_IPC_LOCK)].effective & CAP_TO_MASK(CAP_IPC_LOCK));
}

void memlock_all(void)
{
	if (is_unlimited())
		(void)mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT);
}
