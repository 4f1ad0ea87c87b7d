# One Makefile for everything; nothing is generated outside build/. `make help` lists targets.

O := build
prefix ?= /usr/local
bindir ?= $(prefix)/bin
datadir ?= $(prefix)/share
CC ?= cc

VERSION := 0.1.0

# -- flags: the user's CFLAGS, CPPFLAGS, LDFLAGS are appended to, never replaced
PKGS := json-c sqlite3 libzstd
ALL_CPPFLAGS := -D_GNU_SOURCE -DANALYZER_VERSION='"$(VERSION)"' -I. -I$(O) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 -pthread -g -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wundef -Wimplicit-fallthrough -Werror
LDLIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lcgroup -lm
ifdef DEBUG
ALL_CFLAGS += -O0
else
ALL_CFLAGS += -O2
endif
ifdef SAN
ALL_CFLAGS += -fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all
ALL_LDFLAGS += -fsanitize=$(SAN)
# Sanitised objects live apart: switching back and forth must not mix them.
O := build/san
endif
ALL_CFLAGS += $(CFLAGS)
ALL_LDFLAGS += -pthread $(LDFLAGS)

ifdef V
Q :=
say := @true
else
Q := @
say := @printf '  %-7s %s\n'
endif

# -- sources: one static archive per layer's modules, linked downwards only
MODULES := cli report runner squeezer sampler store cgroup model base
src = $(filter-out cli/main.c,$(wildcard $(1)/*.c))
obj = $(patsubst %.c,$(O)/%.o,$(call src,$(1)))
LIB_OBJS := $(foreach m,$(MODULES),$(call obj,$(m)))
LIB := $(O)/libanalyzer.a
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c))
UNIT_LIB := $(patsubst %.c,$(O)/%.o,$(filter-out $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c)))
C_FILES := $(foreach m,$(MODULES) tests/unit tests/example bench tools/vm.d,$(wildcard $(m)/*.[ch]))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all deps demo check check-unit check-san check-cli check-live check-vm check-bare bench \
	fmt lint install uninstall clean help

all: $(O)/analyzer $(O)/workload  ## build the analyzer and the example workload

$(O)/analyzer: $(O)/cli/main.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

$(LIB): $(LIB_OBJS)
	$(say) AR $@
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(O)/%.o: %.c Makefile
	$(say) CC $<
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<
