/* The views of profile.db that join what a trace knows of memory pressure; part of schema.c, in
 * their own file for their size. */
#pragma once

extern const char schema_pressure_views[];
