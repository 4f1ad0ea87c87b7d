#include "store/events_columns.h"

/* -- writing --------------------------------------------------------------------------------- */

/* The index of key in a dictionary; *ret_is_new: it was given the next one, n. */
static int dictionary_index(struct map *ids, uint64_t key, uint64_t n, uint64_t *ret,
			    bool *ret_is_new)
{
	uint64_t id = map_get(ids, key);

	*ret_is_new = !id;
	*ret = id ? id - 1 : n;
	return id ? 0 : map_put(ids, key, n + 1, NULL);
}

static int shape_index(struct batch_writer *b, const struct event *ev, uint8_t fields,
		       uint64_t *ret)
{
	uint64_t key = ev->kind | (uint64_t)ev->flags << 8 | (uint64_t)ev->function << 16 |
		       (uint64_t)fields << 32;
	bool is_new;

	if (dictionary_index(&b->shape_ids, key, b->shape_ids.n, ret, &is_new) < 0)
		return -ENOMEM;
	if (!is_new)
		return 0;
	if (bytes_reserve(&b->shapes, 3 + VARINT_MAX) < 0)
		return -ENOMEM;
	put_byte(&b->shapes, ev->kind);
	put_byte(&b->shapes, ev->flags);
	put_byte(&b->shapes, fields);
	put_varint(&b->shapes, ev->function);
	return 0;
}

static int add_thread(struct batch_writer *b, const struct event *ev)
{
	if (b->n_threads == b->threads_size) {
		uint32_t size = MAX(b->threads_size * 2, 16u);
		void *grown = reallocarray(b->last_threads, size, sizeof(*b->last_threads));

		if (!grown)
			return -ENOMEM;
		b->last_threads = grown;
		b->threads_size = size;
	}
	if (bytes_reserve(&b->threads, 2 * VARINT_MAX) < 0)
		return -ENOMEM;
	put_varint(&b->threads, ev->pid);
	put_varint(&b->threads, ev->tid);
	b->last_threads[b->n_threads++] = (struct batch_thread){.pid = ev->pid, .tid = ev->tid};
	return 0;
}

/* Sets last_thread. */
static int find_thread(struct batch_writer *b, const struct event *ev)
{
	const struct batch_thread *last = b->n_threads ? &b->last_threads[b->last_thread] : NULL;
	uint64_t id;
	bool is_new;

	if (last && last->pid == ev->pid && last->tid == ev->tid)
		return 0;
	if (dictionary_index(&b->thread_ids, (uint64_t)ev->pid << 32 | ev->tid, b->n_threads, &id,
			     &is_new) < 0 ||
	    (is_new && add_thread(b, ev) < 0))
		return -ENOMEM;
	b->last_thread = (uint32_t)id;
	return 0;
}

/* Keeps the live blocks; 1: *ret_ref says which allocation the event ends. */
static int track(struct batch_writer *b, const struct event *ev, uint64_t *ret_ref)
{
	struct process_blocks *p;
	uint64_t number = 0;

	switch (ev->kind) {
	case EVENT_ALLOC:
		if (!ev->address)
			return 0;
		p = owners_get(&b->live, ev->pid);
		if (!p || map_put(&p->blocks, ev->address, p->n_allocs + 1, &number) < 0)
			return -ENOMEM;
		/* A number left behind is a block whose free was not seen: the reader has to
		 * forget it too. */
		*ret_ref = p->n_allocs++ - number;
		break;
	case EVENT_FREE:
		p = owners_find(&b->live, ev->pid);
		if (p)
			number = map_take(&p->blocks, ev->address);
		if (number)
			*ret_ref = p->n_allocs - number;
		break;
	case EVENT_EXEC:
	case EVENT_EXIT:
		owners_drop(&b->live, ev->pid);
		break;
	default:
		break;
	}
	return number != 0;
}

static uint8_t fields_of(const struct event *ev, bool has_ref)
{
	uint8_t fields = has_ref ? FIELD_REF : 0;

	if (ev->address && !(has_ref && ev->kind == EVENT_FREE))
		fields |= FIELD_ADDRESS;
	if (ev->size)
		fields |= FIELD_SIZE;
	if (ev->stack)
		fields |= FIELD_STACK;
	return fields;
}

int batch_add(struct batch_writer *b, const struct event *ev)
{
	uint64_t ref = 0, shape, time, *last;
	uint8_t fields;
	int r = track(b, ev, &ref);

	for (int i = 0; i < COLS && r >= 0; i++)
		r = bytes_reserve(&b->cols[i], VARINT_MAX) < 0 ? -ENOMEM : r;
	if (r < 0)
		return r;
	fields = fields_of(ev, r > 0);
	if (shape_index(b, ev, fields, &shape) < 0 || find_thread(b, ev) < 0)
		return -ENOMEM;
	if (b->n_events++ == 0)
		b->first_ns = b->last_ns = ev->t_ns;
	time = zigzag((uint64_t)ev->t_ns - (uint64_t)b->last_ns);
	b->last_ns = ev->t_ns;
	put_byte(&b->cols[COL_TIME_LOW], (uint8_t)time);
	put_byte(&b->cols[COL_TIME_MID], (uint8_t)(time >> 8));
	put_varint(&b->cols[COL_TIME_HIGH], time >> 16);
	put_varint(&b->cols[COL_SHAPE], shape);
	put_varint(&b->cols[COL_THREAD], b->last_thread);
	last = &b->last_threads[b->last_thread].last[ev->kind];
	if (fields & FIELD_ADDRESS) {
		put_varint(&b->cols[COL_ADDRESS], zigzag(ev->address - *last));
		*last = ev->address;
	}
	if (fields & FIELD_REF)
		put_varint(&b->cols[COL_REF], ref);
	if (fields & FIELD_SIZE)
		put_varint(&b->cols[COL_SIZE], ev->size);
	if (fields & FIELD_STACK)
		put_varint(&b->cols[COL_STACK], ev->stack);
	return 0;
}

size_t batch_size(const struct batch_writer *b)
{
	size_t size = b->shapes.len + b->threads.len;

	for (int i = 0; i < COLS; i++)
		size += b->cols[i].len;
	return size;
}

static void put_bytes(struct bytes *out, const struct bytes *b)
{
	if (b->len)
		memcpy(out->data + out->len, b->data, b->len);
	out->len += b->len;
}

int batch_put_head(const struct batch_writer *b, struct bytes *out)
{
	size_t at = out->len, cols = 0;

	if (bytes_reserve(out, RECORD_HEAD + (4 + COLS) * VARINT_MAX + b->shapes.len +
				       b->threads.len) < 0)
		return -ENOMEM;
	put_byte(out, RECORD_BATCH);
	out->len += 4;
	put_varint(out, (uint64_t)b->n_events);
	put_varint(out, zigzag((uint64_t)b->first_ns));
	put_varint(out, b->shape_ids.n);
	put_bytes(out, &b->shapes);
	put_varint(out, b->n_threads);
	put_bytes(out, &b->threads);
	for (int i = 0; i < COLS; i++) {
		put_varint(out, b->cols[i].len);
		cols += b->cols[i].len;
	}
	store_le(out->data + at + 1, out->len - at - RECORD_HEAD + cols, 4);
	return 0;
}

void batch_reset(struct batch_writer *b)
{
	map_clear(&b->shape_ids);
	map_clear(&b->thread_ids);
	b->shapes.len = b->threads.len = 0;
	for (int i = 0; i < COLS; i++)
		b->cols[i].len = 0;
	b->last_thread = b->n_threads = 0;
	b->n_events = 0;
}

void batch_writer_done(struct batch_writer *b)
{
	owners_done(&b->live);
	map_done(&b->shape_ids);
	map_done(&b->thread_ids);
	bytes_done(&b->shapes);
	bytes_done(&b->threads);
	for (int i = 0; i < COLS; i++)
		bytes_done(&b->cols[i]);
	free(b->last_threads);
}

/* -- reading --------------------------------------------------------------------------------- */

static int read_shapes(struct batch_reader *b, struct cursor *c)
{
	free(b->shapes);
	/* A shape takes four bytes or more: no claim can make us allocate more than the input. */
	b->n_shapes = get_max(c, cursor_left(c) / 4);
	b->shapes = calloc(MAX(b->n_shapes, (size_t)1), sizeof(*b->shapes));
	if (!b->shapes)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_shapes; i++) {
		struct batch_shape *s = &b->shapes[i];

		s->kind = get_byte(c);
		s->flags = get_byte(c);
		s->fields = get_byte(c);
		s->function = (uint16_t)get_max(c, UINT16_MAX);
		if (s->kind >= EVENT_KINDS || s->fields > FIELDS_ALL)
			return -EBADMSG;
		if ((s->fields & FIELD_REF) && s->kind != EVENT_FREE &&
		    !(s->kind == EVENT_ALLOC && s->fields & FIELD_ADDRESS))
			return -EBADMSG;
	}
	return 0;
}

static int read_threads(struct batch_reader *b, struct cursor *c)
{
	free(b->threads);
	b->n_threads = get_max(c, cursor_left(c) / 2);
	b->threads = calloc(MAX(b->n_threads, (size_t)1), sizeof(*b->threads));
	if (!b->threads)
		return -ENOMEM;
	for (size_t i = 0; i < b->n_threads; i++) {
		b->threads[i].pid = (uint32_t)get_max(c, UINT32_MAX);
		b->threads[i].tid = (uint32_t)get_max(c, UINT32_MAX);
	}
	return 0;
}

int batch_begin(struct batch_reader *b, struct cursor content)
{
	struct cursor *c = &content;
	uint64_t n = get_varint(c), lengths[COLS];
	int r;

	b->n_left = 0;
	b->last_ns = get_signed(c);
	r = read_shapes(b, c);
	if (r == 0)
		r = read_threads(b, c);
	if (r < 0)
		return r;
	for (int i = 0; i < COLS; i++)
		lengths[i] = get_varint(c);
	for (int i = 0; i < COLS; i++)
		b->cols[i] = get_part(c, lengths[i]);
	if (c->failed || n > cursor_left(&b->cols[COL_TIME_LOW]))
		return -EBADMSG;
	b->n_left = n;
	return 0;
}

/* Keeps the live blocks; an event that refers to one gets its address. */
static int follow(struct batch_reader *b, const struct batch_shape *s, struct event *ev)
{
	struct process_blocks *p;
	uint64_t number, address = 0;

	if (s->fields & FIELD_REF) {
		p = owners_find(&b->live, ev->pid);
		number = get_varint(&b->cols[COL_REF]);
		if (p && number < p->n_allocs)
			address = map_take(&p->blocks, p->n_allocs - number);
		if (!address)
			return -EBADMSG;
		if (s->kind == EVENT_FREE)
			ev->address = address;
	}
	if (s->kind == EVENT_ALLOC && ev->address) {
		p = owners_get(&b->live, ev->pid);
		if (!p || map_put(&p->blocks, ++p->n_allocs, ev->address, NULL) < 0)
			return -ENOMEM;
	} else if (s->kind == EVENT_EXEC || s->kind == EVENT_EXIT) {
		owners_drop(&b->live, ev->pid);
	}
	return 0;
}

int batch_next(struct batch_reader *b, struct event *ret)
{
	struct cursor *cols = b->cols;
	uint64_t low = get_byte(&cols[COL_TIME_LOW]), mid = get_byte(&cols[COL_TIME_MID]);
	uint64_t high = get_varint(&cols[COL_TIME_HIGH]);
	uint64_t shape = get_varint(&cols[COL_SHAPE]), thread = get_varint(&cols[COL_THREAD]);
	const struct batch_shape *s;
	struct batch_thread *t;
	int r;

	if (shape >= b->n_shapes || thread >= b->n_threads)
		return -EBADMSG;
	s = &b->shapes[shape];
	t = &b->threads[thread];
	b->last_ns = (int64_t)((uint64_t)b->last_ns + unzigzag(high << 16 | mid << 8 | low));
	*ret = (struct event){
		.t_ns = b->last_ns,
		.pid = t->pid,
		.tid = t->tid,
		.function = s->function,
		.kind = s->kind,
		.flags = s->flags,
	};
	if (s->fields & FIELD_ADDRESS) {
		t->last[s->kind] += unzigzag(get_varint(&cols[COL_ADDRESS]));
		ret->address = t->last[s->kind];
	}
	if (s->fields & FIELD_SIZE)
		ret->size = get_varint(&cols[COL_SIZE]);
	if (s->fields & FIELD_STACK)
		ret->stack = (uint32_t)get_max(&cols[COL_STACK], UINT32_MAX);
	r = follow(b, s, ret);
	for (int i = 0; i < COLS && r == 0; i++)
		r = cols[i].failed ? -EBADMSG : 0;
	b->n_left--;
	return r;
}

void batch_reader_done(struct batch_reader *b)
{
	owners_done(&b->live);
	free(b->threads);
	free(b->shapes);
}
