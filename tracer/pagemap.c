#include "tracer/pagemap.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/* Of the kernel's interface, newer than the headers that Debian 12 has. */
struct page_region {
	uint64_t start, end, categories;
};

struct pm_scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define PAGEMAP_SCAN _IOWR('f', 16, struct pm_scan_arg)
#define CATEGORY_PRESENT (1 << 3)
#define CATEGORY_SWAPPED (1 << 4)

#define ENTRY_PRESENT (UINT64_C(1) << 63)
#define ENTRY_SWAPPED (UINT64_C(1) << 62)
#define ENTRY_EXCLUSIVE (UINT64_C(1) << 56)
#define ENTRY_NUMBER ((UINT64_C(1) << 55) - 1) /* of the page, or the swap entry */
/* Types above are no swap areas but pages that are being moved, markers and the like. */
#define SWAP_AREAS 23
#define SWAP_AREA_MASK 31

#define HUGE_BYTES (UINT64_C(2) << 20)
#define HUGE_PAGES (HUGE_BYTES / PAGE_BYTES)

/* Finds the first page that is not empty; *at becomes end where there is none. */
static int skip_empty(int fd, uint64_t *at, uint64_t end)
{
	struct page_region found;
	struct pm_scan_arg arg = {
		.size = sizeof(arg),
		.start = *at,
		.end = end,
		.vec = (uintptr_t)&found,
		.vec_len = 1,
		.max_pages = 1,
		.category_anyof_mask = CATEGORY_PRESENT | CATEGORY_SWAPPED,
		.return_mask = CATEGORY_PRESENT,
	};
	int n = ioctl(fd, PAGEMAP_SCAN, &arg);

	if (n < 0)
		return -errno;
	*at = n > 0 ? found.start : end;
	return 0;
}

static uint64_t entry_at(int fd, const void *p)
{
	uint64_t entry = 0;

	if (pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)p / PAGE_BYTES * sizeof(entry))) !=
	    sizeof(entry))
		return 0;
	return entry;
}

static void *map_ours(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* The number of the page that is there after reading; 0 = it is memory of our own: some kernels
 * have no zero page to give. */
static uint64_t read_page(int fd, const void *p)
{
	uint64_t entry;

	(void)*(const volatile char *)p;
	entry = entry_at(fd, p);
	return entry & ENTRY_EXCLUSIVE ? 0 : entry & ENTRY_NUMBER;
}

/* Whoever reads memory never written has the zero page there; aligned and with huge pages on, the
 * huge one, which stays where it is as long as we have it too. */
static void find_zero_pages(struct pagemaps *p, int fd)
{
	const char *aligned;

	p->zero = map_ours(PAGE_BYTES);
	p->huge = map_ours(2 * HUGE_BYTES);
	if (p->zero)
		p->zero_pfn = read_page(fd, p->zero);
	if (!p->huge || madvise(p->huge, 2 * HUGE_BYTES, MADV_HUGEPAGE) < 0)
		return;
	aligned = (const char *)p->huge + (-(uintptr_t)p->huge & (HUGE_BYTES - 1));
	p->huge_pfn = read_page(fd, aligned);
	if (p->huge_pfn % HUGE_PAGES != 0 || p->huge_pfn == p->zero_pfn)
		p->huge_pfn = 0; /* the small one again */
}

int pagemaps_open(struct pagemaps *ret, struct err *err)
{
	_cleanup_close_ int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	struct pagemaps p = {0};
	uint64_t at = 0;

	if (fd < 0)
		return err_errno(err, -errno, "cannot read /proc/self/pagemap");
	find_zero_pages(&p, fd);
	p.has_scan = skip_empty(fd, &at, PAGE_BYTES) == 0;
	*ret = p;
	return 0;
}

void pagemaps_close(struct pagemaps *p)
{
	if (p->zero)
		munmap(p->zero, PAGE_BYTES);
	if (p->huge)
		munmap(p->huge, 2 * HUGE_BYTES);
	*p = (struct pagemaps){0};
}

int pagemap_open(struct pagemap *ret, const struct pagemaps *all, pid_t pid)
{
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/pagemap", pid);
	*ret = (struct pagemap){.all = all, .fd = open(path, O_RDONLY | O_CLOEXEC)};
	return ret->fd < 0 ? -errno : 0;
}

void pagemap_close(struct pagemap *m)
{
	close_fd(&m->fd);
}

ssize_t pagemap_read(const struct pagemap *m, uint64_t *at, uint64_t end, uint64_t *entries,
		     size_t max)
{
	size_t n;
	ssize_t r;

	if (m->all->has_scan && *at < end) {
		int ret = skip_empty(m->fd, at, end);

		if (ret < 0)
			return ret;
	}
	if (*at >= end)
		return 0;
	n = MIN((size_t)((end - *at) / PAGE_BYTES), max);
	r = pread(m->fd, entries, n * sizeof(*entries),
		  (off_t)(*at / PAGE_BYTES * sizeof(*entries)));
	return r < 0 ? -errno : r / (ssize_t)sizeof(*entries);
}

enum page_state pagemap_state(const struct pagemaps *all, uint64_t entry)
{
	uint64_t number = entry & ENTRY_NUMBER;

	if (entry & ENTRY_PRESENT) {
		bool is_zero = number && number == all->zero_pfn;

		if (all->huge_pfn && number - all->huge_pfn < HUGE_PAGES)
			is_zero = true;
		return is_zero ? PAGE_NONE : PAGE_PRESENT;
	}
	if (entry & ENTRY_SWAPPED)
		return (entry & SWAP_AREA_MASK) < SWAP_AREAS ? PAGE_SWAPPED : PAGE_NONE;
	return PAGE_NONE;
}

uint64_t pagemap_identity(uint64_t entry)
{
	if (entry & ENTRY_PRESENT)
		return entry & ENTRY_EXCLUSIVE ? 0 : entry & ENTRY_NUMBER;
	return pagemap_swap_entry(entry) | ENTRY_SWAPPED;
}

uint64_t pagemap_swap_entry(uint64_t entry)
{
	return entry & ENTRY_NUMBER;
}
