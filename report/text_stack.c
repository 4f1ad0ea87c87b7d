#include "report/text_internal.h"

#include <string.h>

/* A stack of more frames ends with the number of the others. */
#define FRAMES_SHOWN 6

#define FRAME_INDENT 4
/* Of a name within a sentence. */
#define PLACE_MAX 48

/* -- a stack ---------------------------------------------------------------------------------- */

void text_cut(struct str *out, const char *text, size_t max)
{
	size_t len = strlen(text), end = len <= max ? len : max - 3;

	while (end < len && end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--; /* not within a character of UTF-8 */
	for (size_t i = 0; i < end; i++)
		str_addn(out, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? "?" : text + i, 1);
	if (end < len)
		str_add(out, "...");
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* Where it is in the source, else in which file of code. */
static void add_place(struct str *s, const struct frame_row *f, bool is_short)
{
	if (f->file)
		str_add(s, is_short ? base_name(f->file) : f->file);
	else if (f->function && f->module)
		str_add(s, base_name(f->module));
	if (f->file && f->line > 0)
		str_addf(s, ":%lld", (long long)f->line);
}

static void add_frame_name(struct str *s, const struct frame_row *f)
{
	if (f->function)
		str_add(s, f->function);
	else
		str_addf(s, "%s%s0x%llx", f->module ? base_name(f->module) : "",
			 f->module ? "+" : "", (unsigned long long)f->offset);
	if (f->is_inline == 1)
		str_add(s, " (inlined)");
}

/* One line of a terminal: a path gives way to its last part, then the name to its beginning. */
void text_frame(struct str *out, const struct frame_row *f)
{
	const size_t width = TEXT_WIDTH - FRAME_INDENT, least = 24;
	_cleanup_str_ struct str name = {0}, place = {0};
	size_t place_len;

	add_frame_name(&name, f);
	add_place(&place, f, false);
	if (name.len + 2 + place.len > width) {
		place.len = 0;
		add_place(&place, f, true);
	}
	if (name.failed || place.failed) {
		out->failed = true;
		return;
	}
	place_len = MIN(place.len, width - MIN(name.len, least) - 2);
	str_addf(out, "%*s", FRAME_INDENT, "");
	text_cut(out, name.data, width - (place_len > 0 ? place_len + 2 : 0));
	if (place_len > 0) {
		str_add(out, "  ");
		text_cut(out, place.data, place_len);
	}
	str_add(out, "\n");
}

void text_stack(struct str *out, const struct site_view *s)
{
	size_t n = s->n_frames <= FRAMES_SHOWN ? s->n_frames : FRAMES_SHOWN - 1;

	for (size_t i = 0; i < n; i++)
		text_frame(out, &s->frames[i]);
	if (n < s->n_frames)
		str_addf(out, "%*s... and %zu more\n", FRAME_INDENT, "", s->n_frames - n);
}

/* -- a site ----------------------------------------------------------------------------------- */

const char *text_share(char buf[static CELL_MAX], int64_t part, int64_t all)
{
	const struct figure f = {.v = all > 0 ? (double)part / (double)all : 0};

	return text_value(buf, &f, UNIT_SHARE);
}

const char *text_number(char buf[static CELL_MAX], int64_t v, enum figure_unit unit)
{
	const struct figure f = {.v = (double)MAX(v, 0)};

	return text_value(buf, &f, unit);
}

bool text_known(struct text_known *k, int64_t site_id)
{
	for (size_t i = 0; i < k->n; i++) {
		if (k->ids[i] == site_id)
			return true;
	}
	if (k->n < ARRAY_SIZE(k->ids))
		k->ids[k->n++] = site_id;
	return false;
}

/* "site 3 (mmap, stack cut)": what is usual is not said. */
void text_site_name(struct str *s, const struct site_view *site)
{
	const char *kind = site->row.kind, *sep = " (";

	if (site_is_allocator(&site->row)) {
		str_add(s, "allocator (free or internal)");
		return;
	}
	str_addf(s, "site %lld", (long long)site->row.site_id);
	if (kind && strcmp(kind, "malloc") != 0) {
		str_addf(s, "%s%s", sep, kind);
		sep = ", ";
	}
	if (strcmp(site->quality, "none") == 0)
		str_addf(s, "%sno stack", sep);
	else if (strcmp(site->quality, "full") != 0)
		str_addf(s, "%sstack %s", sep, site->quality);
	else if (*sep == ' ')
		return;
	str_add(s, ")");
}

void text_place(struct str *s, const struct frame_row *f)
{
	_cleanup_str_ struct str name = {0}, place = {0};

	add_frame_name(&name, f);
	add_place(&place, f, true);
	if (name.data)
		text_cut(s, name.data, PLACE_MAX);
	if (place.len > 0) {
		str_add(s, " (");
		text_cut(s, place.data, PLACE_MAX);
		str_add(s, ")");
	}
}

void text_site_place(struct str *s, const struct pressure_site *site)
{
	if (site->n_place > 0)
		text_place(s, site->place);
	else
		text_site_name(s, &site->site);
}
