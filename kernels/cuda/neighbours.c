/* SPDX-License-Identifier: MIT */
/* neighbours.c - who else is on the card, from NVIDIA's management library.
 *
 * The library belongs to the driver and is looked for when a program asks, so that none
 * depends on it.  Only counts are taken from it: processes that it cannot see, as those
 * of other containers, are not counted. */
#include <cuda_runtime.h>
#include <dlfcn.h>

#include "cuda.h"

enum { NVML_SUCCESS, NVML_ROOM = 64, NVML_PROCESS_BYTES = 24 };

/* The functions that are used, by their names in libnvidia-ml.so.1. */
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    int (*by_bus)(const char *bus, void **device);
    int (*compute)(void *device, unsigned *count, void *process);
    int (*graphics)(void *device, unsigned *count, void *process);
};

static bool find(struct nvml *n, void *library)
{
    const struct {
        void *to;
        const char *name;
    } list[] = {{&n->init, "nvmlInit_v2"},
                {&n->shutdown, "nvmlShutdown"},
                {&n->by_bus, "nvmlDeviceGetHandleByPciBusId_v2"},
                {&n->compute, "nvmlDeviceGetComputeRunningProcesses_v3"},
                {&n->graphics, "nvmlDeviceGetGraphicsRunningProcesses_v3"}};
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        void *f = dlsym(library, list[i].name);
        if (!f)
            return false;
        *(void **)list[i].to = f;
    }
    return true;
}

static int count(const struct nvml *n, const char *bus)
{
    char process[NVML_ROOM * NVML_PROCESS_BYTES];
    unsigned compute = NVML_ROOM, graphics = NVML_ROOM;
    void *device;
    if (n->by_bus(bus, &device) != NVML_SUCCESS)
        return 0;
    if (n->compute(device, &compute, process) != NVML_SUCCESS)
        compute = 0;
    if (n->graphics(device, &graphics, process) != NVML_SUCCESS)
        graphics = 0;
    return (int)(compute + graphics) - 1; // this process is one of them
}

int cuda_neighbours(const struct dev *d)
{
    struct nvml n;
    char bus[32];
    int others = 0;
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return 0;
    if (cudaDeviceGetPCIBusId(bus, sizeof bus, cuda_state(d)->index) == cudaSuccess &&
        find(&n, library) && n.init() == NVML_SUCCESS) {
        others = count(&n, bus);
        n.shutdown();
    }
    dlclose(library);
    return others > 0 ? others : 0;
}
