#include "tracer/stacks.h"

#include "tracer/check.h"
#include "base/map.h"

#include <errno.h>
#include <string.h>

/* Captures that are being received: one per CPU at a time, some more where programs interleave. */
#define PENDING_MAX 64

/* A reference that is the stack's id already. */
#define RESOLVED (1u << 31)

struct pending {
	uint64_t id; /* 0 = free */
	struct record_chain head;
	uint8_t *bytes; /* CAPTURE_CHUNK * CAPTURE_CHUNKS */
	size_t len;
};

struct stack_row {
	size_t first; /* in frames */
	uint32_t depth;
	enum stack_quality quality;
	uint64_t hash;
};

struct process {
	uint32_t pid, ppid;
	bool has_table;
	struct table table;
};

struct stacks {
	struct kernel *kernel;
	struct modules *modules;
	struct stack_row *rows; /* stack id 1 is rows[0] */
	size_t n, cap;
	struct frame_ref *frames;
	size_t n_frames, cap_frames;
	struct map by_content; /* hash → stack id; probed on collision by hash + 1 */
	struct map by_id;      /* the kernel side's id of a chain → reference */
	uint32_t *chains;      /* stack ids by reference - 1; 0 = not read yet */
	size_t n_chains, cap_chains;
	struct map taught;    /* ROW_KEY → 1 */
	struct map processes; /* pid → struct process, owned */
	struct pending pending[PENDING_MAX];
	size_t next_pending;
	size_t n_checks; /* of pending: to be compared */
	struct check *check;
	struct frame_ref *scratch; /* UNWIND_FRAMES_MAX */
	struct stacks_totals totals;
};

/* -- stacks by their content ---------------------------------------------------------------------
 */

static uint64_t content_hash(const struct frame_ref *f, uint32_t n, enum stack_quality quality)
{
	uint64_t h = 1 + (uint64_t)quality;

	for (uint32_t i = 0; i < n; i++)
		h = map_mix(h ^ (ROW_KEY(f[i].module, f[i].offset) + i));
	return h;
}

static bool is_same(const struct stacks *s, const struct stack_row *row, const struct frame_ref *f,
		    uint32_t n, enum stack_quality quality)
{
	return row->depth == n && row->quality == quality &&
	       memcmp(&s->frames[row->first], f, n * sizeof(*f)) == 0;
}

static int reserve(struct stacks *s, uint32_t depth)
{
	if (s->n == s->cap) {
		size_t cap = s->cap ? 2 * s->cap : 1024;
		struct stack_row *rows = realloc(s->rows, cap * sizeof(*rows));

		if (!rows)
			return -ENOMEM;
		s->rows = rows;
		s->cap = cap;
	}
	if (s->n_frames + depth > s->cap_frames) {
		size_t cap = 2 * s->cap_frames + depth + 4096;
		struct frame_ref *frames = realloc(s->frames, cap * sizeof(*frames));

		if (!frames)
			return -ENOMEM;
		s->frames = frames;
		s->cap_frames = cap;
	}
	return 0;
}

/* f has no undefined padding: it is compared and kept as bytes. */
static uint32_t intern(struct stacks *s, const struct frame_ref *f, uint32_t n,
		       enum stack_quality quality)
{
	uint64_t hash = content_hash(f, n, quality), known;

	while ((known = map_get(&s->by_content, hash)) != 0) {
		if (is_same(s, &s->rows[known - 1], f, n, quality))
			return (uint32_t)known;
		hash++;
	}
	if (reserve(s, n) < 0 || map_put(&s->by_content, hash, s->n + 1, NULL) < 0)
		return 0;
	memcpy(&s->frames[s->n_frames], f, n * sizeof(*f));
	s->rows[s->n++] = (struct stack_row){
		.first = s->n_frames, .depth = n, .quality = quality, .hash = hash};
	s->n_frames += n;
	return (uint32_t)s->n;
}

static void set_frame(struct frame_ref *f, uint64_t key)
{
	uint64_t module = key >> 48;

	memset(f, 0, sizeof(*f));
	f->module = module == MODULE_ANONYMOUS ? 0 : (uint32_t)module;
	f->offset = key & ((UINT64_C(1) << 48) - 1);
}

/* The reference of a chain, read or not; 0 = no memory. */
static uint32_t chain_get(struct stacks *s, uint64_t id)
{
	uint64_t known = map_get(&s->by_id, id);

	if (known)
		return (uint32_t)known;
	if (s->n_chains == s->cap_chains) {
		size_t cap = s->cap_chains ? 2 * s->cap_chains : 1024;
		uint32_t *grown = realloc(s->chains, cap * sizeof(*grown));

		if (!grown)
			return 0;
		s->chains = grown;
		s->cap_chains = cap;
	}
	if (map_put(&s->by_id, id, s->n_chains + 1, NULL) < 0)
		return 0;
	s->chains[s->n_chains++] = 0;
	return (uint32_t)s->n_chains;
}

void stacks_chain(struct stacks *s, const struct record_chain *c)
{
	uint32_t depth = MIN(c->depth, UNWIND_FRAMES_MAX);
	uint32_t at = chain_get(s, c->id);

	s->totals.chains++;
	for (uint32_t i = 0; i < depth; i++)
		set_frame(&s->scratch[i], c->pcs[i]);
	if (at) /* else forgotten: stack not known */
		s->chains[at - 1] = intern(s, s->scratch, depth, c->quality);
}

/* -- processes and their code --------------------------------------------------------------------
 */

static struct process *process_get(struct stacks *s, uint32_t pid)
{
	struct process *p = map_pointer(map_get(&s->processes, pid));

	if (p)
		return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->pid = pid;
	if (map_put(&s->processes, pid, (uintptr_t)p, NULL) < 0) {
		free(p);
		return NULL;
	}
	return p;
}

void stacks_exit(struct stacks *s, uint32_t pid)
{
	free(map_pointer(map_take(&s->processes, pid)));
}

void stacks_maps(struct stacks *s, const struct record_maps *m)
{
	struct process *p = process_get(s, m->pid);

	if (!p || modules_from_maps(s->modules, m, &p->table) < 0) {
		if (p)
			p->has_table = false;
		return;
	}
	s->totals.tables++;
	p->has_table = true;
	(void)kernel_set_table(s->kernel, m->pid, &p->table);
}

/* The code of a process as it is now, told to the kernel side too. */
static void refresh(struct stacks *s, struct process *p)
{
	s->totals.tables++;
	/* Before the look: a change in between makes the table one of the past. */
	p->table.generation = kernel_generation(s->kernel, p->pid);
	p->has_table = modules_read_maps(s->modules, p->pid, &p->table) == 0;
	if (p->has_table)
		(void)kernel_set_table(s->kernel, p->pid, &p->table);
}

/*
 * The process whose code a capture belongs to, looked up when it is not known yet. NULL: the
 * process is gone, or its code has changed meanwhile.
 */
static struct process *look_up(struct stacks *s, const struct record_chain *c)
{
	struct process *p = process_get(s, c->pid);

	if (!p)
		return NULL;
	if (p->has_table && p->table.exec_pages == c->exec_pages &&
	    p->table.generation == c->generation)
		return p;
	refresh(s, p);
	return p->has_table && p->table.exec_pages == c->exec_pages ? p : NULL;
}

static const struct table_range *range_at(const struct process *p, uint64_t ip)
{
	for (uint32_t i = 0; p->has_table && i < p->table.n; i++) {
		if (ip >= p->table.range[i].start && ip < p->table.range[i].end)
			return &p->table.range[i];
	}
	return NULL;
}

struct frame_ref stacks_locate(struct stacks *s, uint32_t pid, uint64_t ip)
{
	struct frame_ref ref = {.offset = ip + 1};
	struct process *p = process_get(s, pid);
	const struct table_range *r;
	uint32_t generation;

	if (!p)
		return ref;
	generation = kernel_generation(s->kernel, pid); /* 0: it is gone, only we know any more */
	if (!p->has_table || (generation && generation != p->table.generation) || !range_at(p, ip))
		refresh(s, p);
	r = range_at(p, ip);
	if (!r || r->module == MODULE_ANONYMOUS)
		return ref;
	ref.module = (uint32_t)r->module;
	ref.offset = ip - r->bias + 1;
	return ref;
}

void stacks_process(struct stacks *s, uint32_t pid, uint32_t ppid)
{
	struct process *p = process_get(s, pid), *parent = ppid ? process_get(s, ppid) : NULL;

	if (!p)
		return;
	/* A child may end before anybody can look at it; its code is where its parent has it. */
	if (parent && !parent->has_table)
		refresh(s, parent);
	p->ppid = ppid;
	p->has_table = parent && parent->has_table;
	if (p->has_table)
		p->table = parent->table;
}

/* -- captures ------------------------------------------------------------------------------------
 */

void stacks_capture(struct stacks *s, const struct record_chain *c)
{
	struct pending *p = &s->pending[s->next_pending++ % PENDING_MAX];

	if (p->id && p->head.checks)
		s->n_checks--; /* its event never came */
	s->totals.captures += c->checks == 0;
	s->n_checks += c->checks != 0;
	if (!p->bytes)
		p->bytes = malloc(CAPTURE_CHUNK * CAPTURE_CHUNKS);
	p->id = p->bytes ? c->id : 0;
	p->len = 0;
	memcpy(&p->head, c, CHAIN_HEAD + 8 * MIN((size_t)c->depth, CHAIN_FRAMES_MAX));
	/* Looked up at once: the process may not live long. */
	(void)look_up(s, c);
}

static struct pending *find_pending(struct stacks *s, uint64_t id)
{
	for (size_t i = 0; i < PENDING_MAX; i++) {
		if (s->pending[i].id == id)
			return &s->pending[i];
	}
	return NULL;
}

void stacks_bytes(struct stacks *s, const struct record_bytes *b)
{
	struct pending *p = find_pending(s, b->id);

	if (!p || b->address != p->head.sp + p->len || b->len > sizeof(b->bytes) ||
	    p->len + b->len > CAPTURE_CHUNK * CAPTURE_CHUNKS)
		return;
	memcpy(p->bytes + p->len, b->bytes, b->len);
	p->len += b->len;
}

static void apply_fixes(struct pending *p)
{
	for (uint32_t i = 0; i < MIN(p->head.n_fixes, CHAIN_FIXES); i++) {
		uint64_t at = p->head.fix[i].slot - p->head.sp;

		if (p->head.fix[i].address && at + 8 <= p->len && at < p->len)
			memcpy(p->bytes + at, &p->head.fix[i].address, 8);
	}
}

static void teach(void *ctx, struct frame_ref at, const struct row *row)
{
	struct stacks *s = ctx;
	uint64_t key = ROW_KEY(at.module, at.offset);

	if (at.module == 0 || map_get(&s->taught, key))
		return;
	if (kernel_teach(s->kernel, key, row) == 0 && map_put(&s->taught, key, 1, NULL) == 0)
		s->totals.taught++;
}

static struct cfi *get_cfi(void *ctx, uint32_t module)
{
	return modules_cfi(((struct stacks *)ctx)->modules, module);
}

static struct capture capture_of(const struct pending *p)
{
	return (struct capture){
		.ip = p->head.ip,
		.rsp = p->head.sp,
		.rbp = p->head.bp,
		.has_registers = p->head.depth == 0,
		.rbx = p->head.rbx,
		.r12 = p->head.r12,
		.r13 = p->head.r13,
		.r14 = p->head.r14,
		.r15 = p->head.r15,
		.base = p->head.sp,
		.bytes = p->bytes,
		.len = p->len,
	};
}

static uint32_t unwind_pending(struct stacks *s, struct pending *p)
{
	struct process *proc = look_up(s, &p->head);
	struct range ranges[TABLE_RANGES];
	struct unwind_env env = {.ranges = ranges, .get_cfi = get_cfi, .on_row = teach, .ctx = s};
	struct capture c = capture_of(p);
	_cleanup_free_ struct frame_ref *found = calloc(UNWIND_FRAMES_MAX, sizeof(*found));
	enum stack_quality quality = STACK_NONE;
	uint32_t depth = MIN(p->head.depth, UNWIND_FRAMES_MAX), n = 0;

	if (!proc || !found) {
		s->totals.unresolved++;
		return 0;
	}
	env.n_ranges = modules_ranges(&proc->table, ranges);
	apply_fixes(p);
	n = (uint32_t)unwind(&env, &c, found, &quality);
	for (uint32_t i = 0; i < depth; i++)
		set_frame(&s->scratch[i], p->head.pcs[i]);
	n = MIN(n, UNWIND_FRAMES_MAX - depth);
	for (uint32_t i = 0; i < n; i++)
		set_frame(&s->scratch[depth + i], ROW_KEY(found[i].module, found[i].offset));
	if (quality == STACK_FULL && p->head.quality == STACK_GUESSED)
		quality = STACK_GUESSED;
	return intern(s, s->scratch, depth + n, quality);
}

/* -- the own check -------------------------------------------------------------------------------
 */

static void check_pending(struct stacks *s, struct pending *p, uint32_t stack)
{
	struct process *proc = look_up(s, &p->head);
	struct range ranges[TABLE_RANGES];
	struct capture c = capture_of(p);
	const struct stack_row *row = &s->rows[stack - 1];
	enum check_verdict verdict;

	if (!proc)
		return;
	apply_fixes(p);
	verdict = check_stack(s->check, ranges, modules_ranges(&proc->table, ranges), &c,
			      &s->frames[row->first], row->depth, row->quality);
	s->totals.checked += verdict != CHECK_UNDECIDED;
	s->totals.mismatched += verdict == CHECK_DIFFERENT;
}

/* A chain that was sent with its bytes as well: the event that refers to it comes right after. */
static void check_chain(struct stacks *s, uint64_t id, uint32_t stack)
{
	for (size_t i = 0; i < PENDING_MAX; i++) {
		struct pending *p = &s->pending[i];

		if (!p->id || p->head.checks != id)
			continue;
		if (stack)
			check_pending(s, p, stack);
		p->id = 0;
		s->n_checks--;
	}
}

uint32_t stacks_refer(struct stacks *s, uint64_t id)
{
	struct pending *p;
	uint32_t ret;

	if (!id)
		return 0;
	p = find_pending(s, id);
	if (!p) {
		ret = chain_get(s, id);
		if (s->n_checks > 0 && ret)
			check_chain(s, id, s->chains[ret - 1]);
		return ret;
	}
	ret = unwind_pending(s, p);
	p->id = 0;
	return ret ? ret | RESOLVED : 0;
}

uint32_t stacks_resolve(struct stacks *s, uint32_t reference)
{
	if (reference & RESOLVED)
		return reference & ~RESOLVED;
	return reference ? s->chains[reference - 1] : 0;
}

/* -- the object ----------------------------------------------------------------------------------
 */

int stacks_new(struct stacks **ret, struct kernel *k, struct modules *ms, struct err *err)
{
	struct stacks *s = calloc(1, sizeof(*s));

	if (s)
		s->scratch = calloc(UNWIND_FRAMES_MAX, sizeof(*s->scratch));
	if (!s || !s->scratch) {
		free(s);
		return err_errno(err, -ENOMEM, "cannot start the tracer");
	}
	s->kernel = k;
	s->modules = ms;
	if (check_new(&s->check, ms, err) < 0) {
		stacks_free(s);
		return err->code;
	}
	*ret = s;
	return 0;
}

void stacks_free(struct stacks *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->processes.cap; i++)
		free(map_pointer(s->processes.slots[i].value));
	for (size_t i = 0; i < PENDING_MAX; i++)
		free(s->pending[i].bytes);
	check_free(s->check);
	map_done(&s->by_content);
	map_done(&s->by_id);
	map_done(&s->taught);
	map_done(&s->processes);
	free(s->chains);
	free(s->scratch);
	free(s->frames);
	free(s->rows);
	free(s);
}

size_t stacks_count(const struct stacks *s)
{
	return s->n;
}

const struct frame_ref *stacks_frames(const struct stacks *s, uint32_t id, uint32_t *ret_depth,
				      enum stack_quality *ret_quality)
{
	const struct stack_row *row = &s->rows[id - 1];

	*ret_depth = row->depth;
	*ret_quality = row->quality;
	return &s->frames[row->first];
}

struct stacks_totals stacks_totals(const struct stacks *s)
{
	return s->totals;
}
