# drafthorse
#
#   make -j            build all tools for this machine
#   make -j pipeline   train and evaluate the demo drafter (recipes/demo.env)
#   make test          all tests, no GPU needed; TEST=name runs one
#   make bench         speed                      make fuzz        fuzz targets, FUZZ_TIME=60
#   make test-faults   every write of every stage fails once       make lint  make format
#   make test-pack     10,000 random data sets against a model in Python
#   make install       PREFIX=/usr/local DESTDIR=   make help      these lines
#
#   MODE=release|debug  SAN=address,undefined|thread  CUDA=0|1  V=1  CC=gcc|clang
#   Variants build side by side in build/; no clean is needed to switch.

.DELETE_ON_ERROR:
include config.mk
-include config.local.mk

MODE ?= release
SAN  ?=
CUDA ?= 0
V    ?= 0
Q     = $(if $(filter 0,$(V)),@printf '%-5s %s\n' $(1) $@;,)

comma := ,
BUILD ?= build
tag   := $(notdir $(CC))-$(MODE)$(if $(SAN),-$(subst $(comma),-,$(SAN)))-$(if $(filter 1,$(CUDA)),cuda,cpu)
B     := $(BUILD)/$(tag)

# -iquote, not -I: <check.h> and <err.h> stay the system's.  (nvcc knows -I only.)
FOLDERS  = . lib kernels model tools tests
CPPFLAGS = $(addprefix -iquote ,$(FOLDERS)) -D_GNU_SOURCE -MMD -MP
CFLAGS   = -std=c11 -g -march=x86-64-v3 -ffp-contract=off -Wall -Wextra -Wpedantic \
           -Wshadow -Wvla -Wstrict-prototypes $(WERROR) \
           $(if $(filter debug,$(MODE)),-O0,-O3) \
           $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all -fno-omit-frame-pointer)
LDFLAGS  = $(if $(SAN),-fsanitize=$(SAN))
LDLIBS   = -ljansson -lzstd -llz4 -lxxhash -lm -pthread
CHECK    = -lcheck -lsubunit -lrt
# Of the tools only draft-fetch speaks to the network, and only draft-pack opens
# archives; a test does if it pulls that in.
NET      = -Wl,--as-needed -lcurl -lexpat -lssl -lcrypto
ARCHIVE  = -Wl,--as-needed -larchive

# lib.a: all that is below the tools; parts.a: the tools' modules without their mains,
# for the tests; f64.a: the CPU kernels in double precision, for gradient tests.
names = $(notdir $(patsubst %/,%,$(wildcard $(1)/*/)))
TOOLS := $(call names,tools)
MAINS := $(foreach t,$(TOOLS),tools/$t/$t.c)
PARTS := $(filter-out $(MAINS),$(wildcard tools/*/*.c))
LIB   := $(wildcard lib/*.c kernels/*.c kernels/cpu/*.c model/*.c tools/*.c)
F64   := $(wildcard kernels/*.c kernels/cpu/*.c)
ifeq ($(CUDA),1)
ifeq ($(shell command -v $(NVCC)),)
$(error CUDA=1 needs nvcc, and there is no $(NVCC): scripts/deps.sh cuda, or set NVCC)
endif
LIB   := $(filter-out kernels/nocuda.c,$(LIB)) $(wildcard kernels/cuda/*.c kernels/cuda/*.cu)
CPPFLAGS += -isystem $(CUDA_INC)
# A program for a GPU runs on another machine with libc, the driver and cuBLASLt.
LDLIBS := -Wl,-Bstatic $(filter-out -lm -pthread,$(LDLIBS)) -lcudart_static -lstdc++ \
          -Wl,-Bdynamic -l:libcublasLt.so.13 -L$(CUDA_LIB) -Wl,-rpath,$(CUDA_LIB) \
          -ldl -lrt -lm -pthread
CHECK  := -Wl,-Bstatic $(CHECK)
NVFLAGS = $(addprefix -I,$(FOLDERS)) -D_GNU_SOURCE -MMD -MP -std=c++20 -O3 -lineinfo \
          --threads 2 -Xptxas -v \
          $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$a,code=sm_$a)
endif
# Without CUDA these are left out.  test_gpu, _model and _rig then run the kernels on the
# CPU (tests/emu); sanitizers do not follow its stacks.
GPU   := $(if $(filter 1,$(CUDA)),,bench_attn bench_step $(if $(SAN),test_gpu test_gpu_model test_gpu_rig))
ifneq ($(CUDA),1)
EMU   := $(wildcard tests/emu/*.c kernels/cuda/*.c kernels/cuda/*.cu)
EMUFLAGS = -x c++ -include tests/emu/device.h -I tests/emu $(CPPFLAGS) -std=c++20 -g -O2 \
           -march=x86-64-v3 -Wall $(WERROR) -ftrivial-auto-var-init=pattern \
           -mllvm -pragma-unroll-threshold=256 -Wno-pass-failed
endif
TESTS := $(filter-out $(GPU),$(basename $(notdir $(wildcard tests/test_*.c))))
KIT   := $(wildcard tests/kit*.c)
BENCH := $(filter-out $(GPU),$(basename $(notdir $(wildcard bench/bench_*.c))))
FUZZ  := $(basename $(notdir $(wildcard tests/fuzz_*.c)))

all: $(TOOLS:%=$B/bin/draft-%)

archive = $(call Q,AR)mkdir -p $(@D); rm -f $@; $(AR) rcs $@ $^
$B/lib.a: $(LIB:%=$B/%.o);            $(archive)
$B/parts.a: $(PARTS:%=$B/%.o);        $(archive)
$B/kit.a: $(KIT:%=$B/%.o);            $(archive)
$B/f64.a: $(F64:%=$B/f64/%.o);        $(archive)
$B/emu.a: $(EMU:%=$B/emu/%.o);        $(archive)

link = $(call Q,LINK)mkdir -p $(@D); $(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
.SECONDEXPANSION:
$B/bin/draft-%: $$(addprefix $B/,$$(addsuffix .o,$$(wildcard tools/$$*/*.c))) $B/lib.a
	$(link)
$B/tests/% $B/bench/%: LDLIBS := $(CHECK) $(LDLIBS)
$B/bin/draft-fetch $B/tests/% $B/bench/% $B/fuzz/%: LDLIBS += $(NET)
$B/bin/draft-pack $B/tests/% $B/bench/% $B/fuzz/%: LDLIBS += $(ARCHIVE)
$B/tests/test_grad%: $B/f64/tests/test_grad%.c.o $B/kit.a $B/f64.a $B/lib.a
	$(link)
ifneq ($(CUDA),1)
emulated := $(addprefix $B/tests/,test_gpu test_gpu_model test_gpu_rig)
$(emulated): LDFLAGS += -Wl,-u,cuda_backend
$(emulated): $B/tests/%: $B/tests/%.c.o $B/emu.a $B/kit.a $B/parts.a $B/lib.a
	$(link)
endif
$B/tests/%: $B/tests/%.c.o $B/kit.a $B/parts.a $B/lib.a
	$(link)
$B/bench/%: $B/bench/%.c.o $B/kit.a $B/parts.a $B/lib.a
	$(link)
$B/fuzz/%: LDFLAGS += $(if $(filter %seeds,$@),,-fsanitize=fuzzer)
$B/fuzz/%: $B/tests/%.c.o $B/parts.a $B/lib.a
	$(link)
# The tiles are unrolled to registers: sanitized in full they take a minute to compile.
%/kernels/cpu/tile_avx2.c.o %/kernels/cpu/tile_avx512.c.o: \
    CFLAGS += $(if $(SAN),-O1 -fno-sanitize=undefined)
# These goals first install what a bare machine lacks; a plain `make` only builds.
deps := $(if $(filter test pipeline,$(MAKECMDGOALS)),deps)
deps:
	@scripts/deps.sh build $(filter test,$(MAKECMDGOALS))
$B/f64/%.c.o: %.c Makefile config.mk | $(deps)
	$(call Q,CC)mkdir -p $(@D); $(CC) $(CPPFLAGS) -DREAL=double $(CFLAGS) -c -o $@ $<
$B/emu/%.c.o: %.c Makefile config.mk | $(deps)
	$(call Q,CC)mkdir -p $(@D); $(CC) -I tests/emu $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$B/emu/%.cu.o: %.cu Makefile config.mk | $(deps)
	$(call Q,EMU)mkdir -p $(@D); clang++ $(EMUFLAGS) -c -o $@ $<
$B/%.c.o: %.c Makefile config.mk | $(deps)
	$(call Q,CC)mkdir -p $(@D); $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
# A run of test_gpu says which kernels it tested (scripts/tested.sh).
$B/tests/test_gpu.c.o: CPPFLAGS += $(if $(EMU),-DEMULATED=1) -DKERNELS='"$(shell scripts/tested.sh hash)"'
$B/tests/test_gpu.c.o: $(wildcard kernels/cuda/*) kernels/op.h
# The compiler's resource report of each kernel stays beside its object.
$B/%.cu.o: %.cu Makefile config.mk | $(deps)
	$(call Q,NVCC)mkdir -p $(@D); $(NVCC) $(NVFLAGS) -c -o $@ $< 2>$@.report \
	    || { cat $@.report; false; }

tests: $(patsubst %,$B/tests/%,$(filter $(TEST)%,$(TESTS)))
test: all tests
	@$(if $(TEST)$(SAN),,$(mutants) sample)
	@scripts/test.sh $B $(TEST)
# Planted errors must make tests fail; `make test` tries a sample, but not sanitized.
mutants = CC="$(CC)" FLAGS="$(CPPFLAGS) $(CFLAGS)" LINK="$(LDFLAGS)" \
          LIBS="$(CHECK) $(LDLIBS) $(NET) $(ARCHIVE)" tests/mutants.sh $B
test-mutants: tests
	@$(mutants)
bench: all $(BENCH:%=$B/bench/%)
	@scripts/bench.sh $B $(TEST)
# draft-fetch against real S3 servers, and against more faults than `make test` tries.
test-servers: all
	@scripts/deps.sh test servers
	@THOROUGH=1 scripts/test.sh $B tool_s3
# Random faults and kills, RUNS of them; `make test` tries ten.
test-chaos: all
	@scripts/chaos.sh $B $(or $(RUNS),300)
# The peak memory of draft-fetch, held against --memory.
test-memory: all $B/bench/fastd
	@scripts/memory.py $B $(TEST)
# draft-fetch beside other S3 clients, on the fast server of bench/fastd.c.
bench-fetch: all $B/bench/fastd
	@scripts/deps.sh rivals
	@bench/bench_fetch.py $B $(ARGS)
# Every durable step of every stage fails once; a sample of it is part of `make test`.
$B/faults.so: tests/faults.c Makefile
	$(call Q,CC)mkdir -p $(@D); $(CC) -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -o $@ $<
$B/plant.so: tests/plant_malloc.c Makefile
	$(call Q,CC)mkdir -p $(@D); $(CC) -std=c11 -D_GNU_SOURCE -O2 -shared -fPIC -o $@ $< -ldl
test-faults: all $B/faults.so
	@scripts/faults.sh $B 1
# Ten thousand random data sets against a model in Python; `make test` tries a hundred.
.PHONY: test-pack
test-pack: all
	@scripts/deps.sh python
	@build/venv/bin/python tests/pack_model.py $B/bin/draft-pack 0 10000
RECIPE ?= recipes/demo.env
pipeline: all
	@BIN=$B/bin ./pipeline.sh $(RECIPE)
# The same drafter trained on zeros: what the target's states are worth.
demo-controls: all $B/bench/zero_aux
	@scripts/controls.sh $B $(RECIPE)
# The demo on a GPU beside the CPU's: the same states, curves and tau, bits that repeat.
gpu-demo: all $B/bench/near_aux $B/plant.so
	@scripts/gpu_demo.sh prepare $B $(RECIPE)
	@scripts/gpu_demo.sh run $(RECIPE)
# Planted errors in the kernels: each a program for a GPU (scripts/mutants_gpu.sh run), or
# in a build without CUDA found at once, on the CPU.
gpu-mutants: $B/tests/test_gpu
ifeq ($(CUDA),1)
	@CC="$(CC)" NVCC="$(NVCC)" LIBS="$(CHECK) $(LDLIBS)" scripts/mutants_gpu.sh prepare $B
else
	@CC="$(CC)" COMPILE="clang++ $(EMUFLAGS)" LIBS="$(CHECK) $(LDLIBS) $(NET) $(ARCHIVE)" \
	    scripts/mutants_emu.sh $B $(TEST)
endif
fuzz:
	@scripts/fuzz.sh $(BUILD) $(or $(FUZZ_TIME),60) $(TEST)
fuzz-targets: $(FUZZ:%=$B/fuzz/%)
lint:
	@scripts/lint.sh
format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/share/man/man1
	install $(TOOLS:%=$B/bin/draft-%) $(DESTDIR)$(PREFIX)/bin
	install -m 644 $(wildcard tools/*/*.1) $(DESTDIR)$(PREFIX)/share/man/man1
help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^-iquote/,$$d'

-include $(shell find $B -name '*.d' 2>/dev/null)
.SECONDARY:
.PHONY: all pipeline demo-controls gpu-demo test-faults deps test tests test-mutants test-servers test-chaos test-memory bench bench-fetch fuzz fuzz-targets lint format install help
