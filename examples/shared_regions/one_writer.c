// SPDX-License-Identifier: BSD-2-Clause
// How does one process show its memory to many others, which may only read it?
//
// usage: one_writer [-n VERSIONS]    the writer: prints the id of its region, waits for a line on
//                                    stdin, and then writes that many versions of a record
//        one_writer ID               a reader: takes copies of the record until the last version
//
// A reader maps the memory for reading only: a write by its processor ends it. The region is a
// sequence lock: the number of the version is odd while the writer changes the record, and a copy
// counts if the number was even and is still the same behind it.
#include <getopt.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { kWords = 128 };

// The memory of the region.
struct Record {
  _Atomic uint64_t sequence;  // twice the version, and one more while it is being written
  _Atomic uint64_t last;      // the version behind which no other one comes; 0: not known yet
  _Atomic uint64_t words[kWords];
};

static void require(int holds, const char* what) {
  if (holds) return;
  perror(what);
  exit(1);
}

static struct ibv_pd* open_domain(void) {
  struct ibv_device** const devices = ibv_get_device_list(NULL);
  require(devices != NULL && devices[0] != NULL, "no RDMA device");
  struct ibv_context* const context = ibv_open_device(devices[0]);
  require(context != NULL, "ibv_open_device");
  ibv_free_device_list(devices);
  struct ibv_pd* const pd = ibv_alloc_pd(context);
  require(pd != NULL, "ibv_alloc_pd");
  return pd;
}

static void write_version(struct Record* record, uint64_t version) {
  atomic_store_explicit(&record->sequence, 2 * version - 1, memory_order_relaxed);
  atomic_thread_fence(memory_order_release);
  for (int i = 0; i < kWords; ++i)
    atomic_store_explicit(&record->words[i], version + (uint64_t)i, memory_order_relaxed);
  atomic_store_explicit(&record->sequence, 2 * version, memory_order_release);
}

static void write_all(struct ibv_pd* pd, uint64_t versions) {
  struct ibv_exp_reg_mr_in in = {
      .pd = pd,
      .length = (size_t)sysconf(_SC_PAGESIZE),
      .exp_access = IBV_EXP_ACCESS_LOCAL_WRITE | IBV_EXP_ACCESS_ALLOCATE_MR |
                    IBV_EXP_ACCESS_SHARED_MR_USER_READ | IBV_EXP_ACCESS_SHARED_MR_GROUP_READ |
                    IBV_EXP_ACCESS_SHARED_MR_OTHER_READ};
  struct ibv_mr* const region = ibv_exp_reg_mr(&in);
  require(region != NULL, "ibv_exp_reg_mr");
  printf("%08x\n", region->handle);
  fflush(stdout);
  getchar();
  struct Record* const record = region->addr;
  for (uint64_t version = 1; version <= versions; ++version) write_version(record, version);
  atomic_store(&record->last, versions);
  require(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");  // the readers keep the memory
  printf("%lu versions written\n", (unsigned long)versions);
}

// Copies the record. Returns its version, or 0 when the writer came between.
static uint64_t copy(const struct Record* record, uint64_t* words) {
  const uint64_t before = atomic_load_explicit(&record->sequence, memory_order_acquire);
  for (int i = 0; i < kWords; ++i)
    words[i] = atomic_load_explicit(&record->words[i], memory_order_relaxed);
  atomic_thread_fence(memory_order_acquire);
  const uint64_t after = atomic_load_explicit(&record->sequence, memory_order_relaxed);
  return before == after && before % 2 == 0 ? before / 2 : 0;
}

static void read_all(struct ibv_pd* pd, uint32_t id) {
  struct ibv_exp_reg_shared_mr_in in = {.mr_handle = id, .pd = pd};  // no access but reading
  struct ibv_mr* const region = ibv_exp_reg_shared_mr(&in);
  require(region != NULL, "ibv_exp_reg_shared_mr");
  printf("attached\n");
  fflush(stdout);
  const struct Record* const record = region->addr;
  uint64_t words[kWords];
  uint64_t version = 0;
  unsigned long copies = 0;
  do {
    const uint64_t found = copy(record, words);
    if (found == 0) continue;
    require(found >= version, "an older version");
    version = found;
    for (int i = 0; i < kWords; ++i) require(words[i] == version + (uint64_t)i, "a torn copy");
    ++copies;
  } while (version == 0 || version != atomic_load(&record->last));
  printf("the last version is %lu\n", (unsigned long)version);
  fprintf(stderr, "%lu copies\n", copies);
  require(ibv_dereg_mr(region) == 0, "ibv_dereg_mr");
}

int main(int count, char** words) {
  uint64_t versions = 100000;
  for (int option; (option = getopt(count, words, "n:")) != -1;) {
    if (option != 'n') return 2;
    versions = strtoull(optarg, NULL, 0);
  }
  if (versions == 0) return 2;
  struct ibv_pd* const pd = open_domain();
  if (words[optind] == NULL) {
    write_all(pd, versions);
  } else {
    read_all(pd, (uint32_t)strtoul(words[optind], NULL, 16));
  }
  struct ibv_context* const context = pd->context;
  require(ibv_dealloc_pd(pd) == 0, "ibv_dealloc_pd");
  require(ibv_close_device(context) == 0, "ibv_close_device");
  return 0;
}
