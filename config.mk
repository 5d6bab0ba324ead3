# config.mk - what a machine may want to change.  config.local.mk, not kept, overrides.
CC        ?= cc
NVCC      ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) nvcc)
CUDA_ARCH ?= 90 120
CUDA_LIB  ?= $(dir $(NVCC))../lib64
CUDA_INC  ?= $(dir $(NVCC))../include
PREFIX    ?= /usr/local
