# config.mk - what a machine may want to change.  config.local.mk, not kept, overrides.
CC        ?= cc
CUDA_ARCH ?= 90 120
# The machine's toolkit, else the wheels that scripts/deps.sh cuda puts into build/cuda;
# those have lib/, not lib64/.
NVCC      ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc \
                 build/cuda/lib/python3*/site-packages/nvidia/cu13/bin/nvcc) nvcc)
CUDA_HOME ?= $(patsubst %/bin/,%,$(dir $(NVCC)))
CUDA_LIB  ?= $(abspath $(firstword $(wildcard $(CUDA_HOME)/lib64 $(CUDA_HOME)/lib)))
CUDA_INC  ?= $(CUDA_HOME)/include
PREFIX    ?= /usr/local
