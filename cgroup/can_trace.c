#include "cgroup/can_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/str.h"

/* -- rights ----------------------------------------------------------------------------------- */

/* What each is for; the kernel takes CAP_SYS_ADMIN for the first two as well. */
static const struct {
	int cap;
	const char *name;
} rights[] = {
	{CAP_BPF, "CAP_BPF"},
	{CAP_PERFMON, "CAP_PERFMON"},
	{CAP_SYS_ADMIN, "CAP_SYS_ADMIN"},   /* fanotify, mounts */
	{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}, /* maps of processes, for stacks */
	{CAP_CHOWN, "CAP_CHOWN"},           /* copies of libraries look like the originals */
};

/* The effective set, 64 bits; none where it cannot be read. */
static uint64_t effective_set(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {0};

	if (syscall(SYS_capget, &head, data) < 0)
		return 0;
	return (uint64_t)data[1].effective << 32 | data[0].effective;
}

/* "no CAP_BPF, CAP_SYS_ADMIN" */
static bool has_rights(struct can_trace *ret)
{
	uint64_t set = effective_set();
	size_t len = 0;

	if (set >> CAP_SYS_ADMIN & 1)
		set |= 1ULL << CAP_BPF | 1ULL << CAP_PERFMON;
	for (size_t i = 0; i < ARRAY_SIZE(rights); i++) {
		if (!(set >> rights[i].cap & 1))
			len += (size_t)snprintf(ret->lack + len, sizeof(ret->lack) - len, "%s%s",
						len ? ", " : "no ", rights[i].name);
	}
	if (len == 0)
		return true;
	ret->lacks_rights = true;
	ret->fix = "run as root, or with CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN, CAP_SYS_PTRACE and "
		   "CAP_CHOWN";
	return false;
}

/* -- what the kernel does when asked: 0 or a negative errno ------------------------------------ */

/* The least program: return 0. */
static int try_bpf(void)
{
	struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
				   {.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.insns = (uintptr_t)insns,
		.insn_cnt = ARRAY_SIZE(insns),
		.license = (uintptr_t) "GPL",
	};
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));

	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static int try_btf(void)
{
	return access("/sys/kernel/btf/vmlinux", R_OK) < 0 ? -errno : 0;
}

static int try_uprobes(void)
{
	return access("/sys/bus/event_source/devices/uprobe/type", R_OK) < 0 ? -errno : 0;
}

/* A mark as the tracer sets them, on a file that nobody can open. */
static int try_fanotify(void)
{
	_cleanup_close_ int fan = -1, file = -1;

	fan = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
	if (fan < 0)
		return -errno;
	file = memfd_create("analyzer-check", MFD_CLOEXEC);
	if (file < 0 ||
	    fanotify_mark(fan, FAN_MARK_ADD, FAN_OPEN_PERM | FAN_OPEN_EXEC_PERM, file, NULL) < 0)
		return -errno;
	return 0;
}

static int enter_namespace(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
		return errno;
	return 0;
}

/* In a process that ends with it. No signal at its end: whoever runs us handles SIGCHLD. */
static int try_namespace(void)
{
	struct clone_args args = {0};
	long pid = syscall(SYS_clone3, &args, sizeof(args));
	int status;

	if (pid == 0)
		_exit(enter_namespace());
	if (pid < 0 || waitpid((pid_t)pid, &status, __WALL) < 0 || !WIFEXITED(status))
		return -errno;
	return -WEXITSTATUS(status);
}

/* -- all of it --------------------------------------------------------------------------------- */

static const struct {
	int (*try)(void);
	const char *lack, *fix;
} needs[] = {
	{try_bpf, "BPF programs cannot be loaded",
	 "in a container: one that lets bpf() through (--privileged); else a kernel with "
	 "CONFIG_BPF_SYSCALL and CONFIG_BPF_EVENTS"},
	{try_btf, "no type information (BTF) in /sys/kernel/btf",
	 "mount /sys if it is not; else a kernel with CONFIG_DEBUG_INFO_BTF"},
	{try_uprobes, "no uprobes", "mount /sys if it is not; else a kernel with CONFIG_UPROBES"},
	{try_fanotify, "opens cannot be watched",
	 "in a container: --privileged; else a kernel with CONFIG_FANOTIFY_ACCESS_PERMISSIONS"},
	{try_namespace, "no mount namespace of its own",
	 "in a container: one that lets mount() through (--privileged)"},
};

void can_trace_probe(struct can_trace *ret)
{
	*ret = (struct can_trace){.fix = ""};
	if (!has_rights(ret))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(needs); i++) {
		int r = needs[i].try();

		if (r == 0)
			continue;
		(void)snprintf(ret->lack, sizeof(ret->lack), "%s: %s", needs[i].lack, strerror(-r));
		ret->fix = needs[i].fix;
		return;
	}
	ret->is_possible = true;
}
