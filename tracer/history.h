/*
 * What happened to pages of processes: swapped when last seen, came back when. A page comes back
 * by a major fault, which history_fault is told of, or without one, by readahead or out of the
 * swap cache: then it was swapped at one scan and is in memory at the next.
 *
 * Pure but for its lock: faults come from the reader's thread, the rest from the one that scans.
 * Bounded: beyond `max` pages, new ones are forgotten and counted. A page that a scan finds
 * neither swapped nor in memory, or not at all, has no history any more.
 *
 * Life: history_new → history_begin, history_pages …, history_end per scan → history_free.
 */
#pragma once

#include "tracer/pagemap.h"

struct history;

int history_new(struct history **ret, size_t max);
void history_free(struct history *h); /* NULL allowed */

/* A major fault at that address was served. */
void history_fault(struct history *h, uint32_t pid, uint64_t address, int64_t t_ns);

void history_begin(struct history *h, int64_t t_ns);

/* What a scan sees, at t_ns or before; sets the pages' returned_ns and returned_before_ns. */
void history_pages(struct history *h, uint32_t pid, struct page *pages, size_t n, int64_t t_ns);

void history_end(struct history *h);

/* Events that there was no room for. */
int64_t history_forgotten(struct history *h);
