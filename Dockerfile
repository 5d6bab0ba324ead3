# Dockerfile - a small image with the six programs.
#
#   docker build -t drafthorse .                                    CPU
#   docker build -t drafthorse:cuda --build-arg CUDA=1 .            sm_90 and sm_120
#   docker run --env-file recipes/demo.env drafthorse sh pipeline.sh
#
# The build stage installs what scripts/deps.sh lists (for CUDA the toolkit's wheels); the
# final stage holds the programs, the libraries that they load, the examples and recipes.
# It runs as any user and writes only below the working folder.
ARG BASE=docker.io/library/debian:12-slim
FROM ${BASE} AS build
ARG CUDA=0
WORKDIR /src
COPY scripts/deps.sh scripts/deps.sh
RUN scripts/deps.sh build && if [ "$CUDA" = 1 ]; then scripts/deps.sh cuda; fi
COPY . .
RUN make -j"$(nproc)" CUDA="$CUDA" all install DESTDIR=/out PREFIX=/usr

FROM ${BASE}
RUN apt-get update && apt-get install -y --no-install-recommends \
    ca-certificates libarchive13 libcurl4 libexpat1 libjansson4 libssl3 libxxhash0 \
    libzstd1 && rm -rf /var/lib/apt/lists/*
COPY --from=build /out /
COPY pipeline.sh /work/pipeline.sh
COPY recipes /work/recipes
COPY examples /work/examples
WORKDIR /work
ENV BIN=/usr/bin
USER 65532
