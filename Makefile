# One Makefile for everything; nothing is generated outside build/. `make help` lists targets.

O := build
prefix ?= /usr/local
bindir ?= $(prefix)/bin
datadir ?= $(prefix)/share
CC ?= cc

VERSION := 0.1.0

# -- flags: the user's CFLAGS, CPPFLAGS, LDFLAGS are appended to, never replaced
PKGS := json-c sqlite3 libzstd libbpf libelf libdw
ALL_CPPFLAGS := -D_GNU_SOURCE -DANALYZER_VERSION='"$(VERSION)"' -I. -I$(O) $(CPPFLAGS)
ALL_CFLAGS := -std=gnu11 -pthread -g -Wall -Wextra -Wshadow -Wstrict-prototypes \
	-Wmissing-prototypes -Wvla -Wformat=2 -Wno-format-nonliteral -Wundef -Wimplicit-fallthrough -Werror
LDLIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -liberty -lm
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
MODULES := cli report runner tracer squeezer sampler store cgroup model base
src = $(filter-out cli/main.c,$(wildcard $(1)/*.c))
obj = $(patsubst %.c,$(O)/%.o,$(call src,$(1)))
LIB_OBJS := $(foreach m,$(MODULES),$(call obj,$(m)))
LIB := $(O)/libanalyzer.a
UNIT := $(patsubst tests/unit/%.c,$(O)/tests/%,$(wildcard tests/unit/test_*.c))
UNIT_LIB := $(patsubst %.c,$(O)/%.o,$(filter-out $(wildcard tests/unit/test_*.c),$(wildcard tests/unit/*.c)))
C_FILES := $(foreach m,$(MODULES) bpf tests/unit tests/fuzz tests/example bench tools/vm.d,$(wildcard $(m)/*.[ch]))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all deps demo check check-unit check-san check-cli check-live check-vm check-vm-long check-bare fuzz \
	bench fmt lint install uninstall clean help

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

# -- the kernel side: every bpf/*.bpf.c into one object, embedded in the analyzer by its skeleton;
# the swap cache's apart, since not every kernel takes it
BPF_OBJS := $(patsubst %.c,$(O)/%.o,$(filter-out bpf/swapcache.bpf.c,$(wildcard bpf/*.bpf.c)))
BPF_CC ?= clang

$(O)/bpf/%.bpf.o: bpf/%.bpf.c Makefile
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(BPF_CC) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -I. -MMD -MP -c -o $@ $<

$(O)/bpf/tracer.skel.h: $(BPF_OBJS)
	$(say) SKEL $@
	$(Q)bpftool gen object $(O)/bpf/tracer.o $(BPF_OBJS)
	$(Q)bpftool gen skeleton $(O)/bpf/tracer.o name tracer_bpf >$@

$(O)/bpf/swapcache.skel.h: $(O)/bpf/swapcache.bpf.o
	$(say) SKEL $@
	$(Q)bpftool gen skeleton $< name swapcache_bpf >$@

$(O)/tracer/kernel.o: $(O)/bpf/tracer.skel.h
$(O)/tracer/swapcache.o: $(O)/bpf/swapcache.skel.h

# The example stands alone: what a user would compile by hand. Its path is the one the
# documentation uses, so a link is left beside the source.
$(O)/workload: $(wildcard tests/example/*.c) $(wildcard tests/example/*.h)
	$(say) CC $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ tests/example/*.c
	$(Q)ln -sf ../../$@ tests/example/workload

$(O)/tests/%: $(O)/tests/unit/%.o $(UNIT_LIB) $(LIB) $(O)/tests/example/pages.o
	$(say) LINK $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

$(O)/bench/%: $(O)/bench/%.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

# -- what the tracer's live tests run: programs that do known things, and the oracle
TRACE_O := build/trace
TRACE_CFLAGS := -std=gnu11 -D_GNU_SOURCE -O2 -g -fno-builtin -pthread -Wall -Wextra -Werror -Wno-unused-but-set-variable
TRACE_CXXFLAGS := -std=gnu++17 -O2 -g -fomit-frame-pointer -pthread -Wall -Wextra -Werror -Wno-unused-but-set-variable
TRACE_OWN := 22-lib own 23-several 30-ia32 oracle
TRACE_C := $(filter-out $(TRACE_OWN),$(patsubst tests/trace/%.c,%,$(wildcard tests/trace/*.c)))
TRACE_CXX := $(patsubst tests/trace/%.cpp,%,$(wildcard tests/trace/*.cpp))
TRACE_PROGRAMS := $(TRACE_C) $(TRACE_CXX) oracle.so 22-one.so 22-two.so 22-je.so 22-mi.so \
	23-several 23-stripped 24-static 30-ia32 pairs-static pairs-jemalloc pairs-tcmalloc
C_FILES += $(wildcard tests/trace/*.[ch])
trace_cc = $(say) CC $@; mkdir -p $(@D); $(CC) $(TRACE_CFLAGS)

.PHONY: trace-programs
trace-programs: $(addprefix $(TRACE_O)/,$(TRACE_PROGRAMS))
check-live: trace-programs

$(TRACE_O)/30-mallocx: TRACE_LIBS := -ljemalloc
$(TRACE_O)/%: tests/trace/%.c tests/trace/trace.h Makefile
	$(trace_cc) -o $@ $< $(TRACE_LIBS)
$(TRACE_O)/%: tests/trace/%.cpp Makefile
	$(say) CXX $@
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(TRACE_CXXFLAGS) -o $@ $<
# Its own unwinder, so that it neither loads nor calls the program's; no tail calls: it counts its
# frames.
$(TRACE_O)/oracle.so: tests/trace/oracle.c Makefile
	$(trace_cc) -fexceptions -fno-optimize-sibling-calls -shared -fPIC -static-libgcc \
		-Wl,--exclude-libs,ALL -o $@ $< -lgcc_eh
$(TRACE_O)/22-one.so: TRACE_LIB := -DFUNCTION=one -DSIZE=1289
$(TRACE_O)/22-two.so: TRACE_LIB := -DFUNCTION=two -DSIZE=1291
$(TRACE_O)/22-one.so $(TRACE_O)/22-two.so: tests/trace/22-lib.c tests/trace/trace.h Makefile
	$(trace_cc) $(TRACE_LIB) -shared -fPIC -o $@ $<
$(TRACE_O)/22-%.so: tests/trace/own.c Makefile
	$(trace_cc) -DPREFIX=$*_ -shared -fPIC -o $@ $<
$(TRACE_O)/own-%.o: tests/trace/own.c Makefile
	$(trace_cc) -DPREFIX=$*_ -c -o $@ $<
$(TRACE_O)/23-several: tests/trace/23-several.c $(TRACE_O)/own-je.o $(TRACE_O)/own-mi.o Makefile
	$(trace_cc) -static -o $@ $(filter %.c %.o,$^)
$(TRACE_O)/23-stripped: $(TRACE_O)/23-several
	$(Q)strip -o $@ $<
$(TRACE_O)/24-static: tests/trace/24-deleted.c tests/trace/trace.h Makefile
	$(trace_cc) -static -o $@ $<
$(TRACE_O)/30-ia32: tests/trace/30-ia32.c Makefile
	$(trace_cc) -m32 -nostdlib -static -no-pie -fno-pic -o $@ $<
$(TRACE_O)/pairs-static: tests/trace/pairs.c tests/trace/trace.h Makefile
	$(trace_cc) -static -o $@ $<
# The archives first, so that theirs is the malloc that libc.a does not bring.
$(TRACE_O)/pairs-jemalloc: tests/trace/pairs.c tests/trace/trace.h Makefile
	$(trace_cc) -static -o $@ $< -ljemalloc -lm
$(TRACE_O)/pairs-tcmalloc: tests/trace/pairs.c tests/trace/trace.h Makefile
	$(trace_cc) -static -o $@ $< -ltcmalloc_minimal -lstdc++ -lm
# A fuzz target and what makes its first inputs, both with clang; objects apart, see `fuzz`.
$(O)/tests/fuzz_%: $(O)/tests/fuzz/fuzz_%.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

$(O)/tests/seed_%: $(O)/tests/fuzz/seed_%.o $(LIB)
	$(say) LINK $@
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) -o $@ $^ $(LDLIBS)

deps:  ## install the Debian packages that are missing (not as root: list them)
	$(Q)tools/deps

demo: ensure-deps  ## build, then squeeze the example workload: here, else in a virtual machine
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tools/demo

check: ensure-deps  ## all tests: unit, command line, this kernel, virtual machines
	$(Q)$(MAKE) --no-print-directory all unit-programs san-programs
	$(Q)tests/run unit san cli live vm

check-unit: unit-programs san-programs  ## unit tests, plain and sanitised
	$(Q)tests/run unit san

check-cli: all  ## black-box tests of the command line
	$(Q)tests/run cli

check-live: all  ## tests on this machine's kernel (root)
	$(Q)tests/run live

check-vm: all  ## the whole product on real cgroup v2 memory, kernels 6.1 and 6.12
	$(Q)tests/run vm

check-vm-long: all  ## a traced server, and more, on both of these kernels
	$(Q)TOP=$(CURDIR) bash tests/vm/long.sh

check-bare:  ## deps, build, unit and command-line tests in a fresh minimal Debian 12
	$(Q)tools/check-bare

FUZZ_SECONDS ?= 60
FUZZ := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_SEEDS := $(patsubst tests/fuzz/seed_%.c,%,$(wildcard tests/fuzz/seed_*.c))

fuzz:  ## readers and parsers on random input (clang), FUZZ_SECONDS each
	$(Q)$(MAKE) --no-print-directory O=build/fuzz CC=clang SAN=fuzzer-no-link,address,undefined \
		$(FUZZ:%=build/fuzz/tests/fuzz_%) $(FUZZ_SEEDS:%=build/fuzz/tests/seed_%)
	$(Q)tests/fuzz/run $(FUZZ_SECONDS) $(FUZZ)

BENCH := $(patsubst bench/%.c,$(O)/bench/%,$(filter-out %.bpf.c,$(wildcard bench/*.c)))

$(O)/bench/%.bpf.o: bench/%.bpf.c Makefile
	$(say) BPF $<
	$(Q)mkdir -p $(@D)
	$(Q)$(BPF_CC) -target bpf -mcpu=v3 -O2 -g -Wall -Wextra -Werror -I. -MMD -MP -c -o $@ $<

$(O)/bench/%.skel.h: $(O)/bench/%.bpf.o
	$(say) SKEL $@
	$(Q)bpftool gen skeleton $< name $* >$@

$(O)/bench/trace_pairs.o: $(O)/bench/memtrack.skel.h

bench: all trace-programs $(BENCH)  ## speed, as ratios
	$(Q)for b in $(BENCH); do echo "# $$b"; $$b || exit; done
	$(Q)bench/trace.sh fixed programs scan storm

.PHONY: soak
soak: all trace-programs  ## the tracer under 21 million events at full speed; 200 kills
	$(Q)bench/trace.sh soak
	$(Q)RUNS=200 TOP=$(CURDIR) ANALYZER=$(CURDIR)/$(O)/analyzer bash tests/cli/60-kill.sh

fmt:  ## format the C files
	$(Q)clang-format -i $(C_FILES)

lint: ## format, layering of includes, sizes of files and functions
	$(Q)tests/lint/lint $(C_FILES)

install: all  ## install under DESTDIR and prefix
	install -d $(DESTDIR)$(bindir) $(DESTDIR)$(datadir)/analyzer/configs
	install -m 755 $(O)/analyzer $(DESTDIR)$(bindir)/analyzer
	install -m 644 configs/* $(DESTDIR)$(datadir)/analyzer/configs

uninstall:  ## remove what install put there
	rm -f $(DESTDIR)$(bindir)/analyzer
	rm -rf $(DESTDIR)$(datadir)/analyzer

clean:  ## remove what was built (the kernels' cache stays: rm -r build)
	rm -rf $(filter-out build/vm build/bare,$(wildcard build/*)) tests/example/workload

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

.PHONY: ensure-deps unit-programs san-programs
ensure-deps:
	$(Q)tools/deps --check >/dev/null 2>&1 || tools/deps

unit-programs: $(UNIT)

san-programs:
	$(Q)$(MAKE) --no-print-directory SAN=address,undefined unit-programs

-include $(wildcard $(foreach m,$(MODULES) bpf tests/unit tests/fuzz tests/example bench,$(O)/$(m)/*.d))
