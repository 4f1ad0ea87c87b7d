#include "report/report.h"

#include "store/resdir.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

int report_save(const char *dir, const struct str *text, const struct str *json, struct err *err)
{
	_cleanup_close_ int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct resdir d = {.dirfd = fd};
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot open results directory '%s'", dir);
	(void)snprintf(d.path, sizeof(d.path), "%s", dir); /* for messages only */
	d.uid = st.st_uid;
	d.gid = st.st_gid;
	r = resdir_write_file(&d, "report.txt", text->data ? text->data : "", text->len, err);
	if (r == 0)
		r = resdir_write_file(&d, "summary.json", json->data ? json->data : "", json->len,
				      err);
	return r;
}
