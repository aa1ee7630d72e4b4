/* Plays NVIDIA's libnvidia-ml.so.1 for Slurm's plugin. The GPUs are those that the file $GPUPLAN_NVML
   lists, a line each, and after a GPU the instances that it is cut into:
     gpu NUMBER NAME
     mig NUMBER SLICES MEMORY_MIB
   The records are those of nvml.h 12.4; codes are 0 success, 3 not supported, 6 not found. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL(name, ...) int nvml##name(__VA_ARGS__)
#define DEVICE(name, ...) CALL(Device##name, struct item *it, __VA_ARGS__)

struct item { int number, instances, slices; unsigned long long mib; char name[96]; };
struct pci { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; };
struct attributes { unsigned sms, engines[5], slices, compute; unsigned long long mib; };

static struct item items[256], *gpus[16];
static unsigned count;

static int text(char *to, unsigned size, const char *from) {
  snprintf(to, size, "%s", from);
  return 0;
}

CALL(Init_v2, void) {
  const char *path = getenv("GPUPLAN_NVML");
  FILE *file = path ? fopen(path, "r") : NULL;
  char line[256];
  int used = 0;
  count = 0;
  while (file && used < 256 && count < 16 && fgets(line, sizeof line, file)) {
    struct item *now = &items[used];
    memset(now, 0, sizeof *now);
    if (sscanf(line, "gpu %d %95[^\n]", &now->number, now->name) == 2) {
      gpus[count++] = now;
      used++;
    } else if (count && sscanf(line, "mig %d %d %llu", &now->number, &now->slices, &now->mib) == 3) {
      gpus[count - 1]->instances++;
      used++;
    }
  }
  if (file) fclose(file);
  return 0;
}

CALL(Shutdown, void) { return 0; }
const char *nvmlErrorString(int code) { return code == 6 ? "not found" : "not supported"; }
CALL(SystemGetDriverVersion, char *to, unsigned size) { return text(to, size, "580.95.05"); }
CALL(SystemGetNVMLVersion, char *to, unsigned size) { return text(to, size, "13.580.95.05"); }
CALL(DeviceGetCount_v2, unsigned *to) { *to = count; return 0; }
CALL(DeviceGetHandleByIndex_v2, unsigned index, struct item **to) {
  if (index >= count) return 6;
  *to = gpus[index];
  return 0;
}

DEVICE(GetName, char *to, unsigned size) { return text(to, size, it->name); }
DEVICE(GetUUID, char *to, unsigned size) {
  snprintf(to, size, "%s-%08x-0000-0000-0000-%012x", it->slices ? "MIG" : "GPU", it->number,
           (unsigned)(it - items));
  return 0;
}
DEVICE(GetMinorNumber, unsigned *to) { *to = it->number; return 0; }
DEVICE(GetPciInfo_v3, struct pci *to) {
  memset(to, 0, sizeof *to);
  to->bus = it->number + 1;
  snprintf(to->bus_id, sizeof to->bus_id, "00000000:%02X:00.0", to->bus);
  return 0;
}
DEVICE(GetCpuAffinity, unsigned size, unsigned long *to) { /* the one CPU that every machine has */
  memset(to, 0, size * sizeof *to);
  to[0] = 1;
  return 0;
}

DEVICE(GetMigMode, unsigned *now, unsigned *next) { *now = *next = it->instances > 0; return 0; }
DEVICE(GetMaxMigDeviceCount, unsigned *to) { *to = it->instances ? 7 : 0; return 0; }
DEVICE(GetMigDeviceHandleByIndex, unsigned index, struct item **to) {
  if ((int)index >= it->instances) return 6;
  *to = it + 1 + index;
  return 0;
}
DEVICE(GetGpuInstanceId, unsigned *to) { *to = it->number; return 0; }
DEVICE(GetComputeInstanceId, unsigned *to) { (void)it; *to = 0; return 0; }
DEVICE(GetAttributes_v2, struct attributes *to) {
  memset(to, 0, sizeof *to);
  to->slices = to->compute = it->slices;
  to->mib = it->mib;
  return 0;
}

/* Neither links, clocks nor processes. */
#define NONE(name) CALL(name, void) { return 3; }
NONE(DeviceGetNvLinkState)
NONE(DeviceGetNvLinkRemotePciInfo_v2)
NONE(DeviceGetApplicationsClock)
NONE(DeviceSetApplicationsClocks)
NONE(DeviceResetApplicationsClocks)
NONE(DeviceGetSupportedGraphicsClocks)
NONE(DeviceGetSupportedMemoryClocks)
NONE(DeviceGetComputeRunningProcesses_v3)
NONE(DeviceGetGraphicsRunningProcesses_v3)
NONE(DeviceGetProcessUtilization)
