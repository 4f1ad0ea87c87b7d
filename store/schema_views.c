#include "store/schema_views.h"

/*
 * Functions that only pass an allocation on: nobody looks for them. By name, as nothing else tells
 * them from the code that wants the memory. An unnamed function is none.
 */
#define IS_WRAPPER(f)                                                                        \
	"coalesce(lower(" f ") GLOB '*malloc*' OR lower(" f ") GLOB '*calloc*'"              \
	" OR lower(" f ") GLOB '*realloc*' OR lower(" f ") GLOB '*memalign*'"                \
	" OR lower(" f ") GLOB '*[_a-z]alloc' OR lower(" f ") GLOB '*_allocate' OR lower(" f \
	") GLOB '*strdup'"                                                                   \
	" OR lower(" f ") GLOB '*strndup' OR " f " GLOB 'operator new*'"                     \
	" OR " f " GLOB 'std::allocator*' OR " f " GLOB 'std::*::_M_allocate*'"              \
	" OR " f " GLOB 'std::__*::allocate*' OR " f " GLOB '__gnu_cxx::*allocator*'"        \
	" OR " f " GLOB '*__rust_alloc*' OR " f " GLOB 'alloc::*', 0)"

/* Joins the frame by which the site s is known, as f: the innermost that is no wrapper, else the
 * innermost. */
#define JOIN_PLACE(join)                                                                        \
	join " JOIN stack_frame AS p ON p.stack_id = s.stack_id AND p.level = coalesce("        \
	     "(SELECT l.level FROM stack_frame AS l JOIN frame AS w ON w.frame_id = l.frame_id" \
	     " WHERE l.stack_id = s.stack_id AND NOT " IS_WRAPPER(                              \
		     "w.function") " ORDER BY l.level LIMIT 1), 0)" join                        \
				   " JOIN frame AS f ON f.frame_id = p.frame_id"

const char schema_pressure_views[] =
	/* The place in the code by which a site is known; no row without a stack. */
	"CREATE VIEW site_place AS SELECT s.run_id AS run_id, s.site_id AS site_id,"
	" f.function AS function, f.file AS file, f.line AS line, f.module AS module,"
	" f.offset AS offset, f.is_inline AS is_inline FROM site AS s" JOIN_PLACE(
		"") ";"

		    /* Sites by what pressure did to them: rank 1 has most faults, then most swapped
		     * bytes. fault_share: of all of the run's faults but the tracer's own. Bytes
		     * are those of the site's last row in site_sample, except max_swapped_bytes. */
		    "CREATE VIEW site_pressure AS"
		    " WITH run_faults AS MATERIALIZED (SELECT run_id, sum(is_own = 0) AS faults FROM fault"
		    " GROUP BY run_id)"
		    " SELECT s.run_id AS run_id, s.rank AS rank, s.site_id AS site_id, s.kind AS kind,"
		    " s.major_faults AS major_faults,"
		    " s.major_faults * 1.0 / nullif(n.faults, 0) AS fault_share,"
		    " s.fault_ns AS fault_ns, s.max_swapped_bytes AS max_swapped_bytes,"
		    " l.t_ns AS scan_t_ns, l.live_bytes AS live_bytes, l.resident_bytes AS resident_bytes,"
		    " l.swapped_bytes AS swapped_bytes, l.cold_bytes AS cold_bytes,"
		    " l.returned_bytes AS returned_bytes, l.thrashing_bytes AS thrashing_bytes,"
		    " f.function AS function, f.file AS file, f.line AS line, f.module AS module"
		    " FROM (SELECT run_id, site_id, stack_id, kind, major_faults, fault_ns,"
		    " max_swapped_bytes, row_number() OVER (PARTITION BY run_id ORDER BY major_faults DESC,"
		    " max_swapped_bytes DESC, site_id) AS rank FROM site) AS s"
		    " LEFT JOIN run_faults AS n ON n.run_id = s.run_id"
		    " LEFT JOIN site_sample AS l ON l.run_id = s.run_id AND l.site_id = s.site_id"
		    " AND l.t_ns = (SELECT max(m.t_ns) FROM site_sample AS m WHERE m.run_id = s.run_id"
		    " AND m.site_id = s.site_id)" JOIN_PLACE(" LEFT") ";";
